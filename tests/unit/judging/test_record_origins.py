"""Every break that needs to know who wrote a copy is told, in as few fetches as the log allows."""

import json
from dataclasses import replace

from tallystick.contract.event import EventFields
from tallystick.judging.record_origins import read_record_origins
from tallystick.kafka_log.batch_header import Marker
from tallystick.matching.evidence import LegsCase
from tallystick.matching.match_case import RecordLocation
from tallystick.model.census_values import BledBatch
from tallystick.model.open_item import ItemState
from tests.unit.anomalies.copies import item_at
from tests.unit.builders import (
    IN_TOPIC,
    LEDGER,
    NOON,
    T2L,
    TOPIC,
    census_of,
    contract_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    record_of,
    row,
    seen,
    slice_of,
)
from tests.unit.judging.origins import wanted
from tests.unit.synthetic_log import SyntheticLog


def test_a_duplicate_and_its_original_are_asked_for() -> None:
    assert wanted(evidence_of(row(1), event(11), event(12))) == {item_at(11), item_at(12)}
    earlier = evidence_of(event(12), row(1), carried=[item_of(event(3))], direction=T2L)
    assert wanted(earlier) == {item_at(3), item_at(12)}


def test_a_lone_event_and_the_event_of_an_unequal_pair_are_asked_for() -> None:
    assert wanted(evidence_of(event(11))) == {item_at(11)}
    assert wanted(evidence_of(event(11), direction=T2L)) == {item_at(11)}
    assert wanted(evidence_of(event(11), row(1, amount_minor=2))) == {item_at(11)}


def test_a_lone_row_asks_for_the_last_record_that_no_reader_may_see() -> None:
    aborted = [seen(IN_TOPIC, RecordLocation.ABORTED, 4), seen(IN_TOPIC, RecordLocation.ABORTED, 6)]
    assert wanted(evidence_of(row(1), lookup_hits=aborted)) == {item_at(6)}
    assert wanted(evidence_of(row(1))) == set()


def test_what_waits_or_is_matched_asks_for_nobody() -> None:
    assert wanted(evidence_of(event(11), lookup_hits=[seen(LEDGER, RecordLocation.PENDING, 1)])) == set()
    assert wanted(evidence_of(event(11), row(1))) == set()


def test_the_event_of_a_row_whose_break_was_repaired_is_asked_for_and_that_of_another_is_not() -> None:
    rows = [item_of(row(n, f"ev-{n}"), ItemState.BROKEN) for n in (1, 2)]
    evidence = evidence_of(event(11, "ev-1"), event(12, "ev-2"), carried=rows)
    assert wanted(evidence, rows[0].item_id) == {item_at(11)}


def test_a_torn_transaction_asks_for_all_its_legs_once_it_is_proven() -> None:
    case = LegsCase(
        transaction_key="pay-1",
        seen={"payout": (1_000, "EUR", item_at(11))},
        lookup_hits={
            "payout": (seen(IN_TOPIC, RecordLocation.SLICE, 11),),
            "fee": (seen(IN_TOPIC, RecordLocation.ABORTED, 4),),
        },
    )
    contract = contract_of(legs={"payout": TOPIC, "fee": "billing.fees"})
    assert wanted(evidence_of(contract=contract, incomplete=(case,))) == {item_at(11), item_at(4)}
    without_hit = replace(case, lookup_hits={"fee": case.lookup_hits["fee"]})
    assert wanted(evidence_of(contract=contract, incomplete=(without_hit,))) == {item_at(11), item_at(4)}
    early = deadlines_of(now_utc=NOON)
    assert wanted(evidence_of(contract=contract, incomplete=(case,), deadlines=early)) == set()


def test_a_row_whose_event_strayed_to_another_topic_asks_for_its_writer() -> None:
    stray = [seen(IN_TOPIC, RecordLocation.STRAY, 6, topic="billing.fees")]
    assert wanted(evidence_of(row(1), lookup_hits=stray)) == {item_at(6, "billing.fees")}


def test_a_row_whose_event_lies_in_a_transaction_that_is_still_open_asks_for_its_writer() -> None:
    still_open = [seen(IN_TOPIC, RecordLocation.OPEN, 6)]
    assert wanted(evidence_of(row(1), direction=T2L, lookup_hits=still_open)) == {item_at(6)}
    elsewhere = [seen(IN_TOPIC, RecordLocation.PENDING, 6)]
    assert wanted(evidence_of(row(1), direction=T2L, lookup_hits=elsewhere)) == set()


def test_an_event_on_the_topic_of_another_leg_asks_for_its_writer() -> None:
    contract = contract_of(T2L, legs={"payout": TOPIC, "fee": "billing.fees"})
    assert wanted(evidence_of(event(11, leg="fee"), direction=T2L, contract=contract)) == {item_at(11)}


def test_each_record_of_a_batch_that_bled_into_another_transaction_is_asked_for() -> None:
    batch = BledBatch(
        kafka_offset_start=12, kafka_offset_end=14, producer_id=7, producer_epoch=1, span_epoch=2, marker_offset=None
    )
    census = census_of(slice_of(10, 20))
    assert wanted(evidence_of(census=(replace(census, bled=(batch,)),))) == {item_at(12), item_at(13)}
    assert wanted(evidence_of(census=(census,))) == set()


def value(key: str) -> bytes:
    return json.dumps({"event_id": key, "payment_id": "pay-1", "leg": "payout", "amount_minor": 7}).encode()


def test_record_origins_carry_the_transactions_span_and_planted_copies_have_none() -> None:
    log = SyntheticLog()
    log.append(value("ev-0"))
    log.append(value("ev-1"), value("ev-2"), producer_id=7, epoch=3, sequence=5, transactional=True)
    log.end_transaction(7, Marker.ABORT, epoch=4)
    found = read_record_origins(
        log.fetch, [item_at(0), item_at(2), item_at(99), f"topic:{TOPIC}:-1:4"], lambda topic: contract_of().event
    )
    assert sorted(found) == [item_at(0), item_at(2)]
    assert found[item_at(0)].span is None
    span = found[item_at(2)].as_json()["span"]
    assert (span["first_offset"], span["marker"], span["marker_offset"], span["marker_epoch"]) == (1, "abort", 3, 4)


def test_of_a_record_that_was_read_before_the_transaction_alone_is_looked_for() -> None:
    log = SyntheticLog()
    log.append(value("ev-0"), producer_id=7, transactional=True)
    log.end_transaction(7, Marker.COMMIT)
    before = replace(record_of(event(0)), match_key="as it was read before")
    (found,) = read_record_origins(
        log.fetch, [item_at(0)], lambda topic: contract_of().event, {item_at(0): before}
    ).values()
    assert (found.match_key, found.span and found.span.marker) == ("as it was read before", Marker.COMMIT)


def test_a_record_that_was_read_before_is_kept_though_it_has_left_the_log() -> None:
    log, before = SyntheticLog(), record_of(event(0))
    assert read_record_origins(log.fetch, [item_at(0)], lambda topic: contract_of().event) == {}
    found = read_record_origins(
        log.fetch, [item_at(0)], lambda topic: contract_of().event, {item_at(0): before, item_at(1): before}
    )
    assert found == {item_at(0): before}


def test_each_topics_events_are_read_by_its_own_fields() -> None:
    log, asked = SyntheticLog(), list[str]()
    log.append(value("ev-0"))

    def event_on(topic: str) -> EventFields:
        asked.append(topic)
        return contract_of(event={"match_key": "payment_id"} if topic == "billing.fees" else {}).event

    found = read_record_origins(log.fetch, [item_at(0), item_at(0, "billing.fees")], event_on)
    assert {name: one.match_key for name, one in found.items()} == {
        item_at(0): "ev-0",
        item_at(0, "billing.fees"): "pay-1",
    }
    assert sorted(asked) == ["billing.fees", TOPIC]


def test_two_hundred_thousand_breaks_are_not_as_many_fetches() -> None:
    log = SyntheticLog(fetch_batches=500)
    for number in range(1_000):
        log.append(*[value(f"ev-{number}-{one}") for one in range(20)], producer_id=7)
    found = read_record_origins(
        log.fetch, [item_at(offset) for offset in range(0, 20_000, 2)], lambda topic: contract_of().event
    )
    assert len(found) == 10_000
    assert log.fetches <= 5
