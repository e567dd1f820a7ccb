"""An input topic in the ledger's part: what a look-up by offset, log and index says, and what comes of it.

Each claim stands beside its twin, one fact away.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.anomalies.breaks.phantom import phantom_in_topic
from tallystick.anomalies.doubts.held import partner_not_settled
from tallystick.anomalies.registry import RULES, findings_of
from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.judging.canary_cases import name_of
from tallystick.kafka_log.log_walk import Outcome
from tallystick.ledger.input_topics import input_kafka
from tallystick.ledger.key_index import IndexedCopy, ReadableIndexes
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry, LookupHit, RecordLocation
from tallystick.matching.record_location import locate_input, needs_input
from tallystick.matching.scan_result import input_row_id, ledger_item_id, topic_item_id
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import NoticeFound
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide
from tallystick.pipeline.lookups import LookUps
from tallystick.pipeline.run_history import index_hits
from tests.unit.builders import (
    HOUR,
    INPUT,
    MINUTE,
    NOON,
    T2T,
    TOPIC,
    case_of,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    record_of,
    row,
    seen,
    slice_of,
)

LEDGER = ItemSide.LEDGER
INPUT_CUT = cut_of(slice_of(10, 20), slice_of(10, 20, topic=INPUT))
BASELINE = cut_of(slice_of(4, 4), slice_of(4, 4, topic=INPUT), n=0)


def an_input(offset: int, key: str = "ev-1", **changes: object) -> Entry:
    """An input of the cut, in the ledger's part."""
    plain = row(offset, key)
    return replace(plain, item_id=ledger_item_id(input_row_id(INPUT, 0, offset)), **changes)


def seen_input(place: RecordLocation, offset: int = 7) -> LookupHit:
    return LookupHit(side=LEDGER, place=place, item_id=ledger_item_id(input_row_id(INPUT, 0, offset)))


def found(*copies: Entry, lookup_hits: Iterable[LookupHit] = (), **changes: object) -> set[BreakClass | Doubt]:
    evidence = evidence_of(*copies, direction=T2T, cut=INPUT_CUT, lookup_hits=lookup_hits, **changes)
    return named(evidence)


def named(evidence: Evidence) -> set[BreakClass | Doubt]:
    findings = [one for rule in RULES for one in rule.judge(evidence)]
    return {name_of(one) for one in findings if not isinstance(one, NoticeFound)}


MISSING, PHANTOM = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, BreakClass.PHANTOM_IN_TOPIC
TWICE_ON_TOPIC, TWICE_ON_INPUT = BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN, BreakClass.DUPLICATE_IN_LEDGER


# Counter-examples.


def test_an_output_that_comes_again_windows_later_is_a_duplicate_and_no_phantom() -> None:
    earlier = (seen_input(RecordLocation.EARLIER_SLICE), seen(ItemSide.TOPIC, RecordLocation.EARLIER_SLICE, 7))
    assert found(event(12), lookup_hits=earlier) == {TWICE_ON_TOPIC}
    assert found(event(12)) == {PHANTOM}


def test_an_output_whose_input_stands_before_the_first_cut_is_not_decidable_and_no_phantom() -> None:
    assert found(event(12), lookup_hits=[seen_input(RecordLocation.BEFORE_BASELINE, 3)]) == set()
    assert found(event(12), lookup_hits=[seen_input(RecordLocation.ABORTED, 3)]) == {PHANTOM}


def test_a_key_that_input_and_output_both_have_again_windows_later_is_a_duplicate() -> None:
    earlier = (seen_input(RecordLocation.EARLIER_SLICE), seen(ItemSide.TOPIC, RecordLocation.EARLIER_SLICE, 7))
    assert found(an_input(12), event(12), lookup_hits=earlier) == {TWICE_ON_INPUT}
    assert found(an_input(12), event(12)) == set()


def test_an_output_whose_input_has_expired_is_a_duplicate_where_the_index_knows_it_and_else_nobody_can_say() -> None:
    unseen = deadlines_of(inputs_out_of_sight=True)
    assert found(event(12), lookup_hits=[seen_input(RecordLocation.EARLIER_SLICE)], deadlines=unseen) == {
        TWICE_ON_TOPIC
    }
    (told,) = findings_of(partner_not_settled, evidence_of(event(12), direction=T2T, cut=INPUT_CUT, deadlines=unseen))
    assert "Of 1 output no input is known" in told.sentence
    assert found(event(12), deadlines=unseen) == {told.doubt} == {Doubt.PARTNER_NOT_SETTLED}
    assert found(an_input(12), deadlines=unseen) == {MISSING}


def test_a_late_output_pairs_with_an_input_that_has_expired_since_it_was_read() -> None:
    waits = an_input(7)
    carried = item_of(waits, cut_n=1)
    unseen = deadlines_of(inputs_out_of_sight=True)
    assert (
        found(event(12), lookup_hits=[seen_input(RecordLocation.EARLIER_SLICE)], carried=[carried], deadlines=unseen)
        == set()
    )


# What is held.


def test_an_output_whose_input_is_held_waits_and_is_no_phantom() -> None:
    assert found(event(12), lookup_hits=[seen_input(RecordLocation.PENDING, 22)]) == set()
    held = deadlines_of(ledger_settled_until_utc=NOON)
    assert found(event(12), deadlines=held) == {Doubt.PARTNER_NOT_SETTLED}


def test_an_input_that_is_held_is_told_by_its_own_partition() -> None:
    cut = cut_of(slice_of(10, 20), slice_of(10, 20, mark=25, topic=INPUT))
    (told,) = [one for rule in RULES for one in rule.judge(evidence_of(direction=T2T, cut=cut))]
    assert told.sentence.startswith(f"{INPUT}[0]: 5 offsets could not be read")


def test_the_output_of_an_aborted_input_says_that_its_service_read_uncommitted_data() -> None:
    for lookup_hits, told in (((seen_input(RecordLocation.ABORTED, 14),), True), ((), False)):
        (phantom,) = findings_of(
            phantom_in_topic, evidence_of(event(12), direction=T2T, cut=INPUT_CUT, lookup_hits=lookup_hits)
        )
        assert ("was aborted" in phantom.story) is told


# Look-ups.


@pytest.mark.parametrize(
    ("offset", "outcome", "place"),
    [
        (3, Outcome.COMMITTED, RecordLocation.BEFORE_BASELINE),
        (4, Outcome.COMMITTED, RecordLocation.EARLIER_SLICE),
        (10, Outcome.PLAIN, RecordLocation.SLICE),
        (20, Outcome.COMMITTED, RecordLocation.PENDING),
        (20, Outcome.OPEN, RecordLocation.PENDING),
        (12, Outcome.ABORTED, RecordLocation.ABORTED),
    ],
)
def test_an_input_lies_where_its_offset_says(offset: int, outcome: Outcome, place: RecordLocation) -> None:
    part = TopicPartition(topic=INPUT, partition=0)
    record = replace(record_of(event(offset)), topic_partition=part, outcome=outcome)
    hit = locate_input(record, INPUT_CUT, BASELINE)
    assert (hit.side, hit.place, hit.item_id) == (LEDGER, place, f"ledger:{INPUT}:0:{offset}")


NOW = {"now_utc": NOON + HOUR, "new_copies_due_utc": NOON + MINUTE}


@pytest.mark.parametrize(
    ("copies", "indexed", "due_utc", "asked"),
    [
        ((event(12),), (), NOON, True),
        ((event(12),), (), NOON + 2 * HOUR, False),  # within its grace
        ((event(12),), (seen_input(RecordLocation.EARLIER_SLICE),), NOON + 2 * HOUR, True),
        ((an_input(12),), (), NOON, False),
        ((an_input(12), event(12)), (), NOON, False),
        ((an_input(12), event(12), event(13)), (), NOON, True),
    ],
)
def test_the_input_log_is_asked_only_where_outputs_outnumber_inputs(
    copies: tuple[Entry, ...], indexed: tuple[LookupHit, ...], due_utc: object, asked: bool
) -> None:
    assert needs_input(case_of(*copies), indexed, **NOW | {"new_copies_due_utc": due_utc}) is asked


class _Index(ReadableIndexes):
    def look_up(self, match_keys: object) -> dict[str, tuple[IndexedCopy, ...]]:
        return {"a": (IndexedCopy(f"ledger:{INPUT}:0:4", 3), IndexedCopy(topic_item_id(TOPIC, 0, 7), 3))}


def test_what_the_index_knows_was_read_by_an_earlier_cut_on_its_side() -> None:
    lookup_hits = index_hits(_Index(artifacts=Path()), ["a"])["a"]
    assert [(one.side, one.place, one.item_id) for one in lookup_hits] == [
        (LEDGER, RecordLocation.EARLIER_SLICE, f"ledger:{INPUT}:0:4"),
        (ItemSide.TOPIC, RecordLocation.EARLIER_SLICE, f"topic:{TOPIC}:0:7"),
    ]
    assert lookup_hits[0].detail == {"read_by_cut": 3}


def test_what_the_look_ups_answered_about_the_index_is_read_back() -> None:
    answered = LookUps(
        topic_settled_until_utc=None,
        ledger_settled_until_utc=None,
        older_rows=None,
        inputs_out_of_sight=True,
        lost_indexes=(3, 4),
    )
    assert LookUps.from_json(answered.to_json()) == answered
    older = answered.to_json()
    del older["inputs_out_of_sight"], older["lost_indexes"]
    assert LookUps.from_json(older) == replace(answered, inputs_out_of_sight=False, lost_indexes=())


# The contract.


def test_an_input_is_read_by_the_outputs_keys_where_nothing_else_is_said() -> None:
    contract = contract_of(T2T, event={"match_key": "event_id", "currency": "iso"})
    plain = contract.input_event
    assert (plain.match_key, plain.currency, plain.amount_unit) == ("event_id", "iso", "minor")
    assert plain.leg == plain.match_key  # of a contract with one leg none is asked for
    ledger = contract.ledger.model_copy(update={"event": contract.ledger.event.model_copy(update={"match_key": "id"})})
    several = contract.model_copy(update={"ledger": ledger, "legs": {"payout": TOPIC, "fee": "billing.fees"}})
    assert (several.input_event.match_key, several.input_event.leg) == ("id", "leg")
    assert several.event_on(INPUT) == several.input_event
    assert several.event_on(TOPIC) == several.event


def test_the_input_topics_are_reached_by_their_own_connection() -> None:
    outputs, inputs = {"bootstrap.servers": "out:9092"}, '{"bootstrap.servers": "in:9092"}'
    connections = Connections(kafka=KafkaSettings(outputs), ledger_dsn=inputs)
    assert input_kafka(contract_of(T2T), connections).bootstrap_servers == "in:9092"
