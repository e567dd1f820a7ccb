"""The log around a break: what became of each batch, taken for few breaks, and never more than a little of the log."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import OffsetNotInLog
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.report.log_excerpt import (
    BATCHES_EACH_SIDE,
    STRIPS_PER_CLASS_MAX,
    LogStrip,
    position_of,
    read_strip,
    strip_of,
    with_strips,
)
from tests.unit.builders import PART, TOPIC
from tests.unit.synthetic_log import SyntheticLog


@pytest.fixture
def log() -> SyntheticLog:
    """0-1 committed by 7, 2 its marker; 3 aborted by 8, 4 its marker; 5 plain; 6 open by 9."""
    written = SyntheticLog()
    written.append(b"a", b"b", producer_id=7, transactional=True)
    written.end_transaction(7, Marker.COMMIT)
    written.append(b"c", producer_id=8, epoch=3, transactional=True)
    written.end_transaction(8, Marker.ABORT, epoch=3)
    written.append(b"d")
    written.append(b"e", producer_id=9, transactional=True)
    return written


def a_break(n: int = 1, *, amount_minor: int = 100, **evidence: Any) -> Break:
    return Break(
        break_id=UUID(int=n),
        break_class=BreakClass.PHANTOM_IN_TOPIC,
        match_key=f"ev-{n}",
        transaction_key="pay-1",
        leg="payout",
        amount_minor=amount_minor,
        currency="EUR",
        copies=1,
        story="",
        evidence=evidence,
    )


def test_each_batch_is_told_by_what_became_of_it(log: SyntheticLog) -> None:
    strip = read_strip(log.fetch, PART, 3)
    assert [(one.kafka_offset_start, one.kafka_offset_end, one.kind) for one in strip.batches] == [
        (0, 2, "committed"),
        (2, 3, "commit marker"),
        (3, 4, "aborted"),
        (4, 5, "abort marker"),
        (5, 6, "plain"),
        (6, 7, "open"),
    ]
    assert [(one.producer_id, one.producer_epoch) for one in strip.batches][2:5] == [(8, 3), (8, 3), (-1, -1)]


@pytest.mark.parametrize("offset", [0, 5, 20, 39, 40, 99])
@pytest.mark.parametrize("fetch_batches", [1, 3, 1_000])
def test_five_batches_on_each_side_and_no_more(offset: int, fetch_batches: int) -> None:
    written = SyntheticLog(fetch_batches=fetch_batches)
    for _ in range(100):
        written.append(b"x")
    strip = read_strip(written.fetch, PART, offset)
    expected = range(max(0, offset - BATCHES_EACH_SIDE), min(100, offset + BATCHES_EACH_SIDE + 1))
    assert [one.kafka_offset_start for one in strip.batches] == list(expected)


def test_batches_too_long_for_the_first_look_are_found_by_the_next() -> None:
    written = SyntheticLog()
    for _ in range(10):
        written.append(*[b"x"] * 40)
    strip = read_strip(written.fetch, PART, 250)
    assert [one.kafka_offset_start for one in strip.batches] == [40, 80, 120, 160, 200, 240, 280, 320, 360]


def test_a_log_that_begins_close_before_has_fewer() -> None:
    written = SyntheticLog(log_start=50)
    for _ in range(3):
        written.append(b"x")
    assert [one.kafka_offset_start for one in read_strip(written.fetch, PART, 51).batches] == [50, 51, 52]


def test_above_the_lso_all_is_open(log: SyntheticLog) -> None:
    log.append(b"f")
    assert [one.kind for one in read_strip(log.fetch, PART, 7).batches][-2:] == ["open", "open"]


def test_what_has_left_the_log_has_no_strip_and_fails_nothing() -> None:
    written = SyntheticLog(log_start=50)
    written.append(b"x")
    gone, there = a_break(1, at=f"topic:{TOPIC}:0:3"), a_break(2, at=f"topic:{TOPIC}:0:50")
    with pytest.raises(OffsetNotInLog):
        read_strip(written.fetch, PART, 3)
    assert [strip_of(one) is not None for one in with_strips(written.fetch, [gone, there])] == [False, True]


def test_a_strip_is_the_same_after_the_store(log: SyntheticLog) -> None:
    strip = read_strip(log.fetch, PART, 3)
    assert LogStrip.from_json(strip.to_json()) == strip


def test_only_the_largest_of_a_class_are_drawn_and_nothing_else_of_a_break_changes(log: SyntheticLog) -> None:
    breaks = [a_break(n, amount_minor=n, at=f"topic:{TOPIC}:0:3") for n in range(1, 30)]
    other = replace(breaks[0], break_id=UUID(int=99), break_class=BreakClass.AMOUNT_MISMATCH)
    drawn = with_strips(log.fetch, [*breaks, other])
    assert [one.amount_minor for one in drawn if strip_of(one) and one.break_class is breaks[0].break_class] == list(
        range(30 - STRIPS_PER_CLASS_MAX, 30)
    )
    assert strip_of(drawn[-1])
    assert [replace(one, evidence={}) for one in drawn] == [replace(one, evidence={}) for one in (*breaks, other)]
    assert log.fetches < 100


def test_breaks_on_topics_that_cannot_be_fetched_are_not_drawn_and_take_no_place_of_those_that_are(
    log: SyntheticLog,
) -> None:
    elsewhere = [a_break(n, amount_minor=900, at="topic:billing.requests:0:3") for n in range(STRIPS_PER_CLASS_MAX)]
    here = a_break(99, at=f"topic:{TOPIC}:0:3")
    drawn = with_strips(log.fetch, [*elsewhere, here], not_on=["billing.requests"])
    assert [strip_of(one) is not None for one in drawn] == [False] * STRIPS_PER_CLASS_MAX + [True]
    drawn = with_strips(log.fetch, [*elsewhere, here])
    assert [strip_of(one) is not None for one in drawn] == [True] * STRIPS_PER_CLASS_MAX + [False]


@pytest.mark.parametrize(
    ("evidence", "offset"),
    [
        ({"at": f"topic:{TOPIC}:0:17", "original": f"topic:{TOPIC}:0:3"}, 17),
        ({"at": "ledger:5", "found_elsewhere": [{"at": "ledger:6"}, {"at": f"topic:{TOPIC}:0:12"}]}, 12),
        ({"seen_legs": {"fee": f"topic:{TOPIC}:0:4"}}, 4),
        ({"at": "ledger:5", "session": "topic:", "other": "topic:x:y:z"}, None),
        ({"at": "ledger:5"}, None),
    ],
)
def test_a_break_is_drawn_where_its_own_record_lies_or_the_first_that_it_names(
    evidence: dict[str, Any], offset: int | None
) -> None:
    found = position_of(a_break(**evidence))
    assert found == (None if offset is None else (PART, offset))
