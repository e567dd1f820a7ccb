"""The key index where a ledger stands beside a topic: what log and ledger have forgotten, the books still know."""

import shutil
from dataclasses import replace
from typing import Any

import pytest

from tallystick.alerting.policy import alerts_for
from tallystick.connections.connections import artifacts_folder
from tallystick.ledger.key_index import is_whole
from tallystick.model.finding_names import Doubt
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, SCAN_VARIABLE
from tallystick_spark import reconcile_app
from tests.stack.live_books import doubts, expected, kinds, payment, payments

from .live import NewBooks
from .retention import SENT_AGAIN, expire

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.parametrize(
    ("direction", "way"),
    [
        ("ledger_to_topic", None),
        ("topic_to_ledger", None),
        ("topic_to_ledger", BY_CLIENT),
        ("ledger_to_topic", PAIR_BY_PAIR),
    ],
)
def test_what_is_paid_again_after_archiving_and_retention_is_a_duplicate(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch, direction: str, way: str | None
) -> None:
    if way is not None:
        monkeypatch.setenv(SCAN_VARIABLE, way)
    both, event, retained = payments("paid again", "sent again", "paid again while the log has the first")
    with new_books(direction=direction, ledger={"slice_by": "written_xid"}) as books:
        books.take_cut()
        books.both(both, event)
        first = books.next_run()
        assert first.result.verdict is Verdict.MATCHED
        assert first.result.key_index is not None
        assert first.result.key_index.copies == 2
        expire(books)
        books.both(retained)
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.ledger.execute(f"DELETE FROM {books.table}")
        books.both(both, retained, payment("new"))
        books.produce(event)
        again = books.next_run()
        assert kinds(again) == expected(
            (SENT_AGAIN, both), (SENT_AGAIN, event), ("duplicate_in_topic_new_session", retained)
        )
        assert again.result.figures.matched_rows == 1
        assert books.judge_again(again).digest == again.result.digest
        if way is None:
            shutil.rmtree(artifacts_folder() / "key_index" / books.contract.name / "cut=1")
            books.both(payment("later"))
            lost = books.next_run()
            assert (lost.result.verdict, doubts(lost)) == (Verdict.INCONCLUSIVE, [Doubt.KEY_INDEX_LOST])


def test_what_is_paid_again_after_archiving_beyond_the_index_is_not_seen(new_books: NewBooks) -> None:
    """As docs/guarantees.md says, and though the log retains the first: a pair that agrees is held against no log."""
    with new_books(direction="topic_to_ledger", ledger={"slice_by": "written_xid", "index_windows": 1}) as books:
        books.take_cut()
        books.both(*payments("beyond", "a"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.both(payment("within"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        archived = books.contract.model_copy(
            update={"ledger": books.contract.ledger.model_copy(update={"earlier_rows": "archived"})}
        )
        books.ledger.execute(f"DELETE FROM {books.table}")
        books.both(*payments("beyond", "within"))
        run = replace(books, contract=archived).next_run()
        assert kinds(run) == expected(("duplicate_in_topic_new_session", payment("within")))
        assert (run.result.figures.matched_rows, doubts(run)) == (1, [])


def test_a_run_that_finds_its_verdict_stored_leaves_the_index_of_the_one_that_stored_it(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        cut = books.take_cut()

        def behind_another_run(*arguments: Any, **told: Any) -> Any:
            monkeypatch.setattr(reconcile_app, "alerts_for", alerts_for)
            books.judge(cut)
            return alerts_for(*arguments, **told)

        monkeypatch.setattr(reconcile_app, "alerts_for", behind_another_run)
        stored = books.judge(cut)
        assert stored.attempt == 2 and stored.result.key_index is not None
        assert is_whole(artifacts_folder(), stored.result.key_index)
