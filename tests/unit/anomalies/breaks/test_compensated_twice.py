"""C1: one action that stands twice, and not two that stand once each."""

import pytest

from tallystick.anomalies.breaks.compensated_twice import compensated_twice
from tallystick.anomalies.breaks.duplicate_in_topic import duplicate_in_topic
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.builders import COPY, ORIGINAL, by_action, doubled
from tests.unit.anomalies.copies import COMPENSATED, NEW_SESSION, item_at, written
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import IN_TOPIC, LEDGER, T2L, event, evidence_of, item_of, record_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.COMPENSATED_TWICE,
            fires=doubled(
                original=by_action(record_of(ORIGINAL, producer_id=7), "a-1"),
                copy=by_action(record_of(COPY, producer_id=8), "a-1"),
            ),
            twin=doubled(
                original=by_action(record_of(ORIGINAL, producer_id=7), "a-1"),
                copy=by_action(record_of(COPY, producer_id=8), "a-2"),
            ),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION}),
        ),
    )


TWICE = BreakClass.COMPENSATED_TWICE


def doubled_classes(*records: LogRecord) -> list[BreakClass]:
    """One row, and copies at 11, 12, ... by these."""
    copies = [event(11 + number) for number in range(len(records))]
    record_origins = {copy.item_id: record for copy, record in zip(copies, records, strict=True)}
    evidence = evidence_of(row(1), *copies, record_origins=record_origins)
    return [
        one.break_class
        for one in (*findings_of(duplicate_in_topic, evidence), *findings_of(compensated_twice, evidence))
    ]


def test_one_action_that_stands_twice_is_compensated_twice_also_beside_the_original() -> None:
    plain, ours = written(producer_id=7), by_action(written(producer_id=8), "a-1")
    assert doubled_classes(ours, ours) == [TWICE]
    assert doubled_classes(plain, ours, ours) == [COMPENSATED, TWICE]
    assert doubled_classes(ours, plain, ours) == [COMPENSATED, TWICE]


@pytest.mark.parametrize(("actions", "first"), [(("", "a", "a"), 12), (("a", "", "a"), 11)])
def test_what_it_repeats_is_the_first_copy_of_its_action(actions: tuple[str, ...], first: int) -> None:
    copies = [event(11), event(12), event(13)]
    record_origins = {
        copy.item_id: by_action(record_of(copy, producer_id=7), action) if action else record_of(copy, producer_id=7)
        for copy, action in zip(copies, actions, strict=True)
    }
    evidence = evidence_of(row(1), *copies, record_origins=record_origins)
    (twice,) = findings_of(compensated_twice, evidence)
    assert twice.evidence["original"] == item_at(first)
    assert twice.evidence["original_identity"]["at"] == item_at(first)
    assert twice.evidence["across_windows"] is False


@pytest.mark.parametrize("looked_up", [True, False])
def test_a_first_copy_of_an_earlier_window_is_told_as_one(looked_up: bool) -> None:
    copies = [event(3), event(12)]
    record_origins = {copy.item_id: by_action(record_of(copy, producer_id=7), "a-1") for copy in copies}
    seen_there = [seen(LEDGER, RecordLocation.EARLIER_SLICE, 1), seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3)]
    evidence = (
        evidence_of(copies[1], lookup_hits=seen_there, record_origins=record_origins)
        if looked_up
        else evidence_of(copies[1], row(1), direction=T2L, carried=[item_of(copies[0])], record_origins=record_origins)
    )
    (twice,) = findings_of(compensated_twice, evidence)
    assert (twice.evidence["original"], twice.evidence["across_windows"]) == (item_at(3), True)


def test_two_actions_that_stand_once_each_are_not() -> None:
    plain = written(producer_id=7)
    assert doubled_classes(by_action(plain, "a-1"), by_action(plain, "a-2")) == [NEW_SESSION]


def test_one_action_of_two_keys_is_not() -> None:
    copies = [event(11), event(12), event(13, key="ev-2"), event(14, key="ev-2")]
    records = [by_action(written(producer_id=7), action) for action in ("a-1", "a-2", "a-1", "a-2")]
    record_origins = {copy.item_id: record for copy, record in zip(copies, records, strict=True)}
    evidence = evidence_of(row(1), row(2, key="ev-2"), *copies, record_origins=record_origins)
    assert list(findings_of(compensated_twice, evidence)) == []
