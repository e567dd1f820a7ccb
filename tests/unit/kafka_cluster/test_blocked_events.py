"""What is held is counted per producer: its own events, those that merely stand behind it, and what was aborted not."""

import json

import pytest

from tallystick.contract.event import EventFields
from tallystick.kafka_cluster.blocked_events import read_held_events
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import BlockedEvents
from tallystick.kafka_log.batch_header import Marker
from tests.unit.builders import PART, offsets
from tests.unit.synthetic_log import SyntheticLog

HOLDER, BEHIND = 7, 8


def value(amount: object = 1_000, currency: object = "EUR") -> bytes:
    return json.dumps({"event_id": "ev-1", "amount_minor": amount, "currency": currency}).encode()


def log_with_holder(*values: bytes) -> SyntheticLog:
    """Two events below the LSO, then the holder's."""
    log = SyntheticLog()
    log.append(value(), value())
    log.append(*(values or (value(500),)), producer_id=HOLDER, transactional=True)
    return log


def read(log: SyntheticLog, **limits: int) -> list[BlockedEvents]:
    holder = OpenTransaction(
        topic_partition=PART,
        producer_id=HOLDER,
        producer_epoch=0,
        kafka_offset_start=log.lso,
        transactional_id="",
        started_ms=None,
        timeout_ms=None,
    )
    fields = EventFields()
    return list(read_held_events(log.fetch, offsets(log.lso, log.end, topic=PART.topic), fields, [holder], **limits))


def test_the_holder_and_those_behind_it_are_counted_apart() -> None:
    log = log_with_holder(value(500), value(250, "USD"))
    log.append(value(70), producer_id=BEHIND, transactional=True)
    log.end_transaction(BEHIND, Marker.COMMIT)
    log.append(value(3), value(4))
    found = [(one.producer_id, one.events, dict(one.money), one.holds) for one in read(log)]
    assert found == [
        (HOLDER, 2, {"EUR": 500, "USD": 250}, True),
        (BEHIND, 1, {"EUR": 70}, False),
        (-1, 2, {"EUR": 7}, False),
    ]


def test_what_was_aborted_behind_the_holder_is_not_held() -> None:
    log = log_with_holder()
    log.append(value(70), producer_id=BEHIND, transactional=True)
    log.end_transaction(BEHIND, Marker.ABORT)
    assert [one.producer_id for one in read(log)] == [HOLDER]
    log.append(value(80), producer_id=BEHIND, transactional=True)
    assert [(one.producer_id, dict(one.money)) for one in read(log)] == [(HOLDER, {"EUR": 500}), (BEHIND, {"EUR": 80})]


def test_what_lies_below_the_lso_is_not_held() -> None:
    (found,) = read(log_with_holder())
    assert (found.kafka_offset_start, found.events, found.complete) == (2, 1, True)


@pytest.mark.parametrize(
    "odd", [b"no json", b"[]", b"null", value("ten"), value(1.5), value(True), json.dumps({"amount_minor": 5}).encode()]
)
def test_an_event_whose_money_nobody_can_read_is_counted_without(odd: bytes) -> None:
    (found,) = read(log_with_holder(odd, value(500)))
    assert (found.events, dict(found.money)) == (2, {"EUR": 500})


def test_a_backlog_beyond_the_limit_is_said_to_be_cut_off() -> None:
    log = log_with_holder()
    for _ in range(5):
        log.append(value(70), producer_id=BEHIND, transactional=True)
    limit = len(log.batches[1].raw) + 2 * len(log.batches[2].raw)
    assert [(one.events, one.complete) for one in read(log, bytes_max=limit)] == [(1, False), (2, False)]
    assert [(one.events, one.complete) for one in read(log)] == [(1, True), (5, True)]
