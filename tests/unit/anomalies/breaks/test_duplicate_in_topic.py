"""Why an event stands twice is told from who wrote the copies, and said to be unknown where that does not tell."""

from dataclasses import replace

import pytest

from tallystick.anomalies.breaks.duplicate_in_topic import original_item_id, tell_cause
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.record import LogRecord
from tallystick.kafka_log.transaction_span import TransactionSpan
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tests.unit.anomalies.builders import COPY, ORIGINAL, by_action, doubled
from tests.unit.anomalies.copies import COMPENSATED, NEW_SESSION, doubled_in_topic, written
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import IN_TOPIC, L2T, LEDGER, T2L, event, evidence_of, item_of, record_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE,
            fires=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
            twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY, session="relay-2")),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED}),
        ),
        Pair(
            name=BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
            fires=doubled(original=record_of(ORIGINAL, producer_id=7), copy=record_of(COPY, producer_id=8)),
            twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
        ),
        Pair(
            name=BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE,
            fires=doubled(
                original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
                copy=replace(record_of(COPY, producer_id=7, source="in:0:4", session="relay-2"), producer_epoch=1),
            ),
            twin=doubled(
                original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
                copy=replace(record_of(COPY, producer_id=8, source="in:0:4", session="relay-2"), producer_epoch=1),
            ),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED}),
        ),
        Pair(
            name=BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED,
            fires=doubled(
                original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
                copy=record_of(COPY, producer_id=8, source="in:0:4", session="relay-2"),
            ),
            twin=doubled(
                original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
                copy=record_of(COPY, producer_id=8, source="in:0:5", session="relay-2"),
            ),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION}),
        ),
        Pair(
            name=BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED,
            fires=doubled(
                original=by_action(record_of(ORIGINAL, producer_id=7), "a-1"), copy=record_of(COPY, producer_id=8)
            ),
            twin=doubled(original=record_of(ORIGINAL, producer_id=7), copy=record_of(COPY, producer_id=8)),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION}),
        ),
        Pair(
            name=BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN,
            fires=doubled(original=record_of(ORIGINAL, session=None), copy=record_of(COPY)),
            twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
        ),
    )


RETRY = BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE

REPROCESSED = BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED
CAUSE_UNKNOWN = BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN
ZOMBIE = BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE

CONSTANT, MOVING = MarkerProtocol.CONSTANT_EPOCH, MarkerProtocol.EPOCH_PER_TRANSACTION


@pytest.mark.parametrize(
    ("original", "extra", "cause"),
    [
        pytest.param(written(), written(), RETRY, id="no producer id, same session"),
        pytest.param(written(), written(session="relay-2"), REPROCESSED, id="no producer id, another session"),
        pytest.param(written(session=None), written(), CAUSE_UNKNOWN, id="no producer id, one session unknown"),
        pytest.param(
            written(source="in:0:4"),
            written(source="in:0:9", session="relay-2"),
            NEW_SESSION,
            id="no producer id, another input, another session",
        ),
        pytest.param(
            written(source="in:0:4"), written(source="in:0:9"), NEW_SESSION, id="no producer id, another input"
        ),
        pytest.param(
            written(source="in:0:4", session=None),
            written(source="in:0:9"),
            CAUSE_UNKNOWN,
            id="no producer id, another input, one session unknown",
        ),
        pytest.param(
            written(source="in:0:4"),
            written(source="in:0:4", session="relay-2"),
            REPROCESSED,
            id="no producer id, the same input, another session",
        ),
        pytest.param(
            written(), written(source="in:0:9", session="relay-2"), REPROCESSED, id="no producer id, one input named"
        ),
        pytest.param(written(session=None), written(session=None), CAUSE_UNKNOWN, id="no producer id, no session"),
        pytest.param(written(), written(producer_id=7), CAUSE_UNKNOWN, id="one producer id, same session"),
        pytest.param(written(producer_id=7), written(session="relay-2"), CAUSE_UNKNOWN, id="one id, another session"),
        pytest.param(
            written(producer_id=7, source="in:0:4"),
            written(source="in:0:4", session="relay-2"),
            REPROCESSED,
            id="one producer id, the same input, another session",
        ),
        pytest.param(
            written(producer_id=7, source="in:0:4"),
            written(source="in:0:4"),
            CAUSE_UNKNOWN,
            id="one producer id, the same input, same session",
        ),
        pytest.param(
            written(producer_id=7, source="in:0:4"),
            written(source="in:0:9", session="relay-2"),
            NEW_SESSION,
            id="one producer id, another input, another session",
        ),
        pytest.param(
            written(producer_id=7, source="in:0:4"),
            written(session="relay-2"),
            CAUSE_UNKNOWN,
            id="one producer id, one input named, another session",
        ),
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
        pytest.param(None, written(), CAUSE_UNKNOWN, id="the original has left the log"),
        pytest.param(written(), None, CAUSE_UNKNOWN, id="the copy has left the log"),
    ],
)
def test_the_cause_is_told_from_the_producers(
    original: LogRecord | None, extra: LogRecord | None, cause: BreakClass
) -> None:
    assert tell_cause(extra, original) is cause


def generation(
    epoch: int,
    protocol: MarkerProtocol | None = None,
    *,
    session: str | None = None,
    producer_id: int = 7,
    source: str | None = None,
) -> LogRecord:
    """A transactional record of one generation of a transactional.id."""
    span = protocol and TransactionSpan(
        first_offset=11,
        first_is_certain=True,
        marker=None,
        marker_offset=None,
        marker_epoch=None,
        marker_timestamp_ms=None,
        coordinator_epoch=None,
        protocol=protocol,
    )
    record = written(producer_id=producer_id, session=session, source=source)
    return replace(record, producer_epoch=epoch, span=span or None)


@pytest.mark.parametrize(
    ("original", "extra", "cause"),
    [
        pytest.param(generation(0, CONSTANT), generation(1, CONSTANT), ZOMBIE, id="one id, two epochs, version 1"),
        pytest.param(generation(0), generation(1, CONSTANT), ZOMBIE, id="one of the two tells the version"),
        pytest.param(
            generation(4, MOVING, session="a"), generation(7, MOVING, session="b"), ZOMBIE, id="version 2, two sessions"
        ),
        pytest.param(
            generation(4, MOVING, session="a"), generation(7, MOVING, session="a"), NEW_SESSION, id="version 2, resent"
        ),
        pytest.param(generation(4, MOVING), generation(5, MOVING), NEW_SESSION, id="version 2, no session"),
        pytest.param(generation(0), generation(1), NEW_SESSION, id="nobody tells the version or the session"),
        pytest.param(
            generation(0, CONSTANT), generation(0, CONSTANT), NEW_SESSION, id="one epoch: the same generation"
        ),
        pytest.param(
            generation(0, CONSTANT),
            generation(1, CONSTANT, producer_id=8),
            NEW_SESSION,
            id="two producer ids: two transactional ids",
        ),
        pytest.param(
            generation(0, session="a", source="in:0:4"),
            generation(1, session="b", source="in:0:4"),
            ZOMBIE,
            id="the same input, by the next generation",
        ),
        pytest.param(
            generation(0, session="a", source="in:0:4"),
            generation(1, session="b", source="in:0:4", producer_id=8),
            REPROCESSED,
            id="the same input, by another transactional id",
        ),
        pytest.param(
            replace(generation(0, session="a"), is_transactional=False),
            replace(generation(1, session="b"), is_transactional=False),
            NEW_SESSION,
            id="no transaction, so no transactional id",
        ),
        pytest.param(
            replace(generation(0, session="a"), is_transactional=False),
            generation(1, session="b"),
            NEW_SESSION,
            id="one of the two was in no transaction",
        ),
    ],
)
def test_two_generations_of_one_transactional_id_are_a_zombie(
    original: LogRecord, extra: LogRecord, cause: BreakClass
) -> None:
    assert tell_cause(extra, original) is cause
    assert tell_cause(original, extra) is cause


@pytest.mark.parametrize("by", [{}, {"producer_id": 7}, {"session": None}])
def test_a_copy_of_ours_beside_one_that_is_not_is_our_repair_whoever_came_first(by: dict[str, object]) -> None:
    plain, ours = written(**by), by_action(written(producer_id=8), "a-1")
    assert tell_cause(plain, ours) is COMPENSATED
    assert tell_cause(ours, plain) is COMPENSATED


def test_copies_that_differ_are_called_so_and_equal_ones_are_not() -> None:
    def doubled_with(digest: str) -> Break:
        record_origins = {
            ORIGINAL.item_id: replace(written(producer_id=7), value_digest="aa"),
            COPY.item_id: replace(written(producer_id=8), value_digest=digest),
        }
        (one,) = doubled_in_topic(row(1), ORIGINAL, COPY, record_origins=record_origins)
        return one

    assert doubled_with("bb").evidence["payload_differs"] is True
    assert "not equal, byte by byte" in doubled_with("bb").story
    assert doubled_with("aa").evidence["payload_differs"] is False
    assert "not equal" not in doubled_with("aa").story


def test_whether_they_differ_is_not_said_where_one_has_left_the_log() -> None:
    (one,) = doubled_in_topic(row(1), ORIGINAL, COPY, record_origins={COPY.item_id: written()})
    assert one.evidence["payload_differs"] is None


def test_an_original_of_an_earlier_window_is_said_to_be_of_one_and_one_of_this_is_not() -> None:
    (here,) = doubled_in_topic(row(1), event(11), event(12))
    (carried,) = doubled_in_topic(event(12), row(1), direction=T2L, carried=[item_of(event(3))])
    (looked_up,) = doubled_in_topic(event(12), lookup_hits=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)])
    assert [one.evidence["across_windows"] for one in (here, carried, looked_up)] == [False, True, True]
    assert ["of an earlier window" in one.story for one in (here, carried, looked_up)] == [False, True, True]


def test_each_extra_copy_is_a_break_of_its_own_with_its_own_money() -> None:
    breaks = doubled_in_topic(row(1), event(11), event(12), event(13))
    assert [one.evidence["at"][-2:] for one in breaks] == ["12", "13"]
    assert [(one.amount_minor, one.copies) for one in breaks] == [(1_000, 1), (1_000, 1)]
    assert len({one.break_id for one in breaks}) == 2


def test_a_duplicate_says_whether_the_ledger_followed_it() -> None:
    (alone,) = doubled_in_topic(event(11), event(12), row(1), direction=T2L)
    assert alone.evidence["partner"] is None
    assert alone.story.endswith("and the ledger has no row of its own for it.")
    (followed,) = doubled_in_topic(event(11), event(12), row(1), row(2), direction=T2L)
    assert followed.evidence["partner"] == "ledger:2"
    assert followed.story.endswith("and the ledger posted it too.")


def test_the_original_of_an_earlier_cut_is_found_by_the_look_up() -> None:
    (one,) = doubled_in_topic(
        event(12),
        lookup_hits=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1), seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3)],
    )
    assert one.evidence["original"] == "topic:billing.payouts:0:3"


def test_an_original_that_has_left_the_log_is_not_named() -> None:
    (one,) = doubled_in_topic(event(12), lookup_hits=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)])
    assert one.evidence["original"] == ""
    assert "repeats an earlier copy" in one.story
    assert one.break_class is CAUSE_UNKNOWN


def test_an_aborted_copy_is_not_the_original() -> None:
    (one,) = doubled_in_topic(
        event(12),
        lookup_hits=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1), seen(IN_TOPIC, RecordLocation.ABORTED, 3)],
    )
    assert one.evidence["original"] == ""


@pytest.mark.parametrize("carried_first", [True, False])
def test_a_carried_event_is_the_original_of_a_new_one(carried_first: bool) -> None:
    """Whatever their offsets: they may lie in two partitions."""
    old, new = event(90 if carried_first else 3), event(12)
    evidence = evidence_of(new, row(1), direction=T2L, carried=[item_of(old)])
    (residue,) = [one for outcome in evidence.outcomes for one in outcome.residues]
    assert (residue.copy.item_id, original_item_id(residue)) == (new.item_id, old.item_id)


def test_the_ledgers_duplicate_is_not_the_topics() -> None:
    assert doubled_in_topic(row(1), row(2), event(11), direction=L2T) == []
