"""A reader that lets aborted records through is caught by the other one, which follows the log's own batches."""

import pytest

from tallystick.model.finding_names import Doubt
from tallystick.model.verdict import Verdict
from tallystick_spark.readers import topic_frame
from tests.stack.live_books import doubts, payments

from .live import NewBooks


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("leaks", [True, False])
def test_a_reader_of_uncommitted_records_makes_a_doubt_and_a_reader_of_committed_ones_none(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch, leaks: bool
) -> None:
    """The aborted event is all that tells the two readers apart."""
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.produce(*payments("undone"), abort=True)
        books.both(*payments("a", "b"))
        if leaks:
            monkeypatch.setattr(topic_frame, "ISOLATION", "read_uncommitted")
        run = books.next_run()
        assert (Doubt.READERS_DISAGREE in doubts(run)) is leaks
        assert (run.result.verdict is Verdict.MATCHED) is not leaks
        (census,) = [one for one in run.result.figures.census if one.aborted]
        told = [one.details for one in run.result.doubts if one.details["partition"] == census.partition]
        seen = (census.readable_records, census.readable_records + census.aborted)
        assert [(one["spark_rows"], one["client_rows"]) for one in told] == ([seen] if leaks else [])
