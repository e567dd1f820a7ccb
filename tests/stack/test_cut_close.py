"""A cut that nobody can judge is closed by a person, and the books go on; what stands in it is called nothing false."""

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import select
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.ledger.protocol import LedgerRefused
from tallystick.matching.closed_cut import DIGEST
from tallystick.model.finding_names import Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.store.plans.plan_store import read_audit
from tallystick.store.runs.cut_store import open_cut
from tallystick.store.schema import alert
from tests.stack.live_books import doubts, payment, payments

from .live import NewBooks


@pytest.mark.parametrize("direction", ["topic_to_ledger", "ledger_to_topic"])
def test_a_cut_that_fails_for_ever_is_closed_and_the_next_window_is_judged(
    new_books: NewBooks, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    with new_books(direction=direction) as books:
        monkeypatch.setenv("TALLYSTICK_STORE_DSN", books.store.url.render_as_string(hide_password=False))
        name = books.contract.name
        books.take_cut()
        books.both(*payments("matched before"))
        assert books.next_run().result.verdict is Verdict.MATCHED

        books.both(*payments("both closed"))
        books.produce(payment("event closed"))
        books.post(payment("row closed"))
        cut = books.take_cut()
        close = ["cut", "close", f"{name}/{cut.n}", "--by", "Ada Byron", "--reason", "the ledger refuses its reader"]
        untried = CliRunner().invoke(app, close)
        assert (untried.exit_code, "nobody has tried to judge it" in untried.stderr) == (2, True)
        books.ledger.execute(f"REVOKE SELECT ON {books.table} FROM tallystick_reader")
        for _ in range(2):
            with pytest.raises(LedgerRefused):
                books.judge(cut)

        closed = CliRunner().invoke(app, close)
        assert closed.exit_code == 0, closed.output
        run = books.stored_run(cut)
        assert (run.result.verdict, run.result.digest, doubts(run)) == (
            Verdict.INCONCLUSIVE,
            DIGEST,
            [Doubt.CUT_CLOSED],
        )
        assert "after 2 attempts: the ledger refuses its reader" in run.result.doubts[0].sentence
        assert f"{books.contract.legs['payment']}[" in run.result.doubts[0].sentence
        assert open_cut(books.store, name) is None
        (line,) = [one for one in read_audit(books.store, name) if one.event == "cut_closed"]
        assert line.actor == "Ada Byron"
        with books.store.connect() as connection:
            told = select(alert.c.topic).where(alert.c.contract == name, alert.c.cut_n == cut.n)
            assert list(connection.scalars(told)) == ["inconclusive"]
        assert CliRunner().invoke(app, close).exit_code == 2

        books.ledger.execute(f"GRANT SELECT ON {books.table} TO tallystick_reader")
        books.post(payment("event closed"))
        books.produce(payment("row closed"))
        books.both(*payments("matched after"))
        after = books.next_run()
        assert (after.result.verdict, after.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert doubts(after) == [Doubt.PARTNER_NOT_SETTLED]
        assert after.result.figures.matched_rows == 1
        states = {item.match_key: item.state for item in after.result.items}
        assert states == dict.fromkeys(
            (payment("event closed").event_id, payment("row closed").event_id), ItemState.UNDECIDABLE
        )
        assert books.judge_again(after).digest == after.result.digest

        books.both(*payments("and on"))
        assert books.next_run().result.verdict is Verdict.MATCHED
