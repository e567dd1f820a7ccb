"""Why an event stands twice is told from who wrote the copies, and said to be unknown where that does not tell."""

import pytest

from tallystick.break_class import BreakClass
from tallystick.classes.duplicate_in_topic import duplicate_in_topic, original_item_id, tell_cause
from tallystick.log_record import LogRecord
from tallystick.pairing import Place
from tallystick.run_result import Break

from .builders import IN_TOPIC, L2T, LEDGER, T2L, event, evidence_of, item_of, record_of, row, seen

RETRY = BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE
NEW_SESSION = BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION
REPROCESSED = BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED
UNKNOWN = BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN

ORIGINAL, COPY = event(11), event(12)


def written(copy: object = COPY, **by: object) -> LogRecord:
    return record_of(copy, **by)


@pytest.mark.parametrize(
    ("original", "extra", "cause"),
    [
        pytest.param(written(), written(), RETRY, id="no producer id, same session"),
        pytest.param(written(), written(session="relay-2"), REPROCESSED, id="no producer id, another session"),
        pytest.param(written(session=None), written(), UNKNOWN, id="no producer id, one session unknown"),
        pytest.param(written(session=None), written(session=None), UNKNOWN, id="no producer id, no session"),
        pytest.param(written(), written(producer_id=7), RETRY, id="one producer id, same session"),
        pytest.param(written(producer_id=7), written(session="relay-2"), REPROCESSED, id="one id, another session"),
        pytest.param(written(producer_id=7), written(producer_id=8), NEW_SESSION, id="two producer ids"),
        pytest.param(written(producer_id=7), written(producer_id=7), NEW_SESSION, id="the application sent it twice"),
        pytest.param(
            written(producer_id=7, source="in:0:4"),
            written(producer_id=8, source="in:0:4", session="relay-2"),
            REPROCESSED,
            id="the same input, another process",
        ),
        pytest.param(
            written(producer_id=7, source="in:0:4"),
            written(producer_id=8, source="in:0:4"),
            NEW_SESSION,
            id="the same input, the same process",
        ),
        pytest.param(
            written(producer_id=7, source="in:0:4", session=None),
            written(producer_id=8, source="in:0:4", session=None),
            NEW_SESSION,
            id="the same input, by nobody knows whom",
        ),
        pytest.param(
            written(producer_id=7),
            written(producer_id=8, session="relay-2"),
            NEW_SESSION,
            id="no input named, another process",
        ),
        pytest.param(None, written(), UNKNOWN, id="the original has left the log"),
        pytest.param(written(), None, UNKNOWN, id="the copy has left the log"),
    ],
)
def test_the_cause_is_told_from_the_producers(
    original: LogRecord | None, extra: LogRecord | None, cause: BreakClass
) -> None:
    assert tell_cause(extra, original) is cause


def found(*copies: object, **about: object) -> list[Break]:
    return list(duplicate_in_topic(evidence_of(*copies, **about)))


def test_each_extra_copy_is_a_break_of_its_own_with_its_own_money() -> None:
    breaks = found(row(1), event(11), event(12), event(13))
    assert [one.evidence["at"][-2:] for one in breaks] == ["12", "13"]
    assert [(one.amount_minor, one.copies) for one in breaks] == [(1_000, 1), (1_000, 1)]
    assert len({one.break_id for one in breaks}) == 2


def test_a_duplicate_says_whether_the_ledger_followed_it() -> None:
    (alone,) = found(event(11), event(12), row(1), direction=T2L)
    assert alone.evidence["partner"] is None
    assert alone.story.endswith("and the ledger has no row for it.")
    (followed,) = found(event(11), event(12), row(1), row(2), direction=T2L)
    assert followed.evidence["partner"] == "ledger:2"
    assert followed.story.endswith("and the ledger posted it too.")


def test_the_original_of_an_earlier_cut_is_found_by_the_look_up() -> None:
    (one,) = found(event(12), sightings=[seen(LEDGER, Place.EARLIER_SLICE, 1), seen(IN_TOPIC, Place.EARLIER_SLICE, 3)])
    assert one.evidence["original"] == "topic:billing.payouts:0:3"


def test_an_original_that_has_left_the_log_is_not_named() -> None:
    (one,) = found(event(12), sightings=[seen(LEDGER, Place.EARLIER_SLICE, 1)])
    assert one.evidence["original"] == ""
    assert "repeats an earlier copy" in one.story
    assert one.break_class is UNKNOWN


def test_an_aborted_copy_is_not_the_original() -> None:
    (one,) = found(event(12), sightings=[seen(LEDGER, Place.EARLIER_SLICE, 1), seen(IN_TOPIC, Place.ABORTED, 3)])
    assert one.evidence["original"] == ""


@pytest.mark.parametrize("carried_first", [True, False])
def test_a_carried_event_is_the_original_of_a_new_one(carried_first: bool) -> None:
    """Whatever their offsets: they may lie in two partitions."""
    old, new = event(90 if carried_first else 3), event(12)
    evidence = evidence_of(new, row(1), direction=T2L, carried=[item_of(old)])
    (residue,) = [one for outcome in evidence.outcomes for one in outcome.residues]
    assert (residue.copy.item_id, original_item_id(residue)) == (new.item_id, old.item_id)


def test_the_ledgers_duplicate_is_not_the_topics() -> None:
    assert found(row(1), row(2), event(11), direction=L2T) == []
