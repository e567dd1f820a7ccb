"""No text that a user may write means anything to us: keys like those that we plant are keys like any other."""

from dataclasses import dataclass, replace

import pytest

from tallystick.matching.scan_result import CANARY
from tallystick.model.run_result import RunResult
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, SCAN_VARIABLE
from tallystick_spark import reconcile_app
from tests.stack.live_books import Event, LiveBooks, doubts

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

ALWAYS_EQUAL = ("H\u075c\u10b6\u07c4\u01f1\u063f\u056c\u0109", "h\u041bI'jMx\u01f1\u063f&a7s")
"""Two texts that xxhash64 gives the same hash, whatever its seed."""


@dataclass(frozen=True)
class Keyed(Event):
    """An event whose match key is any text."""

    @property
    def event_id(self) -> str:
        return self.payment


def keyed(*keys: str, amount_minor: int = 1000) -> tuple[Keyed, ...]:
    return tuple(Keyed(payment=key, leg="payment", amount_minor=amount_minor, currency="EUR") for key in keys)


def with_any_keys(books: LiveBooks) -> None:
    """The ledger's keys may be any text, and are none where somebody says so."""
    books.ledger.execute(
        f"ALTER TABLE {books.table} ALTER COLUMN event_id TYPE text, ALTER COLUMN event_id DROP NOT NULL"
    )


def found(result: RunResult) -> list[tuple[str, str]]:
    """(class, match key) of each break, in order."""
    return sorted((str(one.break_class), one.match_key) for one in result.breaks)


def read_again_in_every_way(books: LiveBooks, run: StoredRun, patch: pytest.MonkeyPatch) -> None:
    """By Kafka's client, and pair by pair: raises DigestChanged where that says anything else."""
    for way in (BY_CLIENT, PAIR_BY_PAIR):
        with patch.context() as within:
            within.setenv(SCAN_VARIABLE, way)
            reconcile_app.reread_cut(books.store, books.contract, books.connections, run.cut, run.result)


def test_copies_under_the_keys_of_planted_ones_are_judged_like_any_other(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the guard of older rows: it counts the rows that the totals count, so that none hides a deleted one."""
    with new_books(direction="topic_to_ledger") as books:
        with_any_keys(books)
        books.take_cut()
        books.both(*keyed("a", "b", f"{CANARY}equal", f"{CANARY}of-somebody"))
        books.produce(*keyed(f"{CANARY}row-alone", f"{CANARY}event-twice", f"{CANARY}event-twice"))
        books.post(*keyed(f"{CANARY}event-alone", amount_minor=99_999_900))
        books.post(*keyed(f"{CANARY}event-twice"))
        run = books.next_run()
        assert doubts(run) == []
        assert found(run.result) == [
            ("duplicate_in_topic_new_session", f"{CANARY}event-twice"),
            ("missing_in_ledger", f"{CANARY}row-alone"),
            ("phantom_in_ledger", f"{CANARY}event-alone"),
        ]
        assert (run.result.figures.topic_rows, run.result.figures.ledger_rows) == (7, 6)
        read_again_in_every_way(books, run, monkeypatch)

        books.both(*keyed("c", f"{CANARY}later"))
        quiet = books.next_run()
        assert (quiet.result.verdict, found(quiet.result), doubts(quiet)) == (Verdict.MATCHED, [], [])

        books.ledger.execute(f"DELETE FROM {books.table} WHERE event_id = 'a'")
        books.both(*keyed("d"))
        guarded = books.next_run()
        assert (guarded.result.verdict, doubts(guarded)) == (Verdict.INCONCLUSIVE, ["ledger_rewritten"])


@pytest.mark.parametrize(("direction", "slice_by"), [("topic_to_ledger", "xmin"), ("ledger_to_topic", "written_xid")])
def test_a_row_without_a_key_is_a_break_once_and_pairs_with_no_text(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch, direction: str, slice_by: str
) -> None:
    """NULL or empty, several of them, beside events whose keys say that there is none. It is not told again."""
    with new_books(direction=direction, ledger={"slice_by": slice_by}) as books:
        with_any_keys(books)
        books.take_cut()
        books.both(*keyed("a"))
        books.post(*keyed("to be null", "to be null", ""))
        books.ledger.execute(f"UPDATE {books.table} SET event_id = NULL WHERE event_id = 'to be null'")
        ids = books.ledger.execute(f"SELECT entry_id FROM {books.table} WHERE event_id IS NULL AND side = 'credit'")
        books.produce(*keyed(*(f"no key, row {row_id}" for (row_id,) in ids)))
        run = books.next_run()
        unpaired = "missing_in_ledger" if direction == "topic_to_ledger" else "phantom_in_topic"
        assert [name for name, _ in found(run.result)] == [unpaired] * 2 + ["row_without_key"] * 3
        assert {key for name, key in found(run.result) if name == "row_without_key"} == {""}
        assert doubts(run) == []
        assert len({one.break_id for one in run.result.breaks}) == 5
        read_again_in_every_way(books, run, monkeypatch)

        books.both(*keyed("b"))
        quiet = books.next_run()
        assert (quiet.result.verdict, found(quiet.result), doubts(quiet)) == (Verdict.MATCHED, [], [])


def test_keys_and_currencies_that_were_made_to_collide_are_told_apart(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the seed that is known to all, and under any; also where only who writes rows has chosen."""
    with new_books(direction="topic_to_ledger") as books:
        with_any_keys(books)
        books.take_cut()
        books.both(*keyed("a"))
        pairs = (("jCVRTAXHeCc56utV", "pjmm1jo3fL#$$%WM"), ALWAYS_EQUAL)
        for in_topic, in_ledger in pairs:
            books.produce(*keyed(in_topic, amount_minor=5_000_000))
            books.post(*keyed(in_ledger, amount_minor=5_000_000))
        books.produce(*keyed("forged", amount_minor=5_000_000))
        books.post(*(replace(one, currency="lQ4ar~`G") for one in keyed("forged", amount_minor=4_532)))
        run = books.next_run()
        assert found(run.result) == sorted(
            [("currency_mismatch", "forged")]
            + [("missing_in_ledger", in_topic) for in_topic, _ in pairs]
            + [("phantom_in_ledger", in_ledger) for _, in_ledger in pairs]
        )
        read_again_in_every_way(books, run, monkeypatch)
