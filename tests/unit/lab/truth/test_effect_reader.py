"""Whoever counts the effects of a crash matrix counts each once, and tells what is no repair of anything."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.truth.effect_reader import EventReader, MarkerReader, PostReader, ReversalReader
from tallystick.kafka_log.batch_header import Marker
from tests.unit.synthetic_log import SyntheticLog


def record(offset: int, amount_minor: int, *, reverses: str | None = None, event_id: str = "pay-7") -> Any:
    return SimpleNamespace(
        topic="payouts",
        partition=0,
        offset=offset,
        value=json.dumps({"event_id": event_id, "amount_minor": amount_minor}).encode(),
        headers=[] if reverses is None else [("tallystick-reverses", reverses.encode())],
    )


def counted(reader: EventReader, *records: Any) -> dict[str, int]:
    for one in records:
        reader.count(one)
    return dict(reader.copies)


def test_each_event_counts_once() -> None:
    reader = EventReader("nowhere", [])
    assert counted(reader, record(0, 700), record(1, 700), record(2, 5, event_id="pay-8")) == {"pay-7": 2, "pay-8": 1}


def test_of_two_copies_and_a_reversal_the_reversal_counts() -> None:
    reader = ReversalReader("nowhere", [])
    assert counted(reader, record(0, 700), record(1, 700), record(2, -700, reverses="topic:payouts:0:1")) == {
        "pay-7": 1
    }
    assert reader.wrong == []


@pytest.mark.parametrize(
    "reversal",
    [
        record(2, -700, reverses="topic:payouts:0:9"),
        record(2, 700, reverses="topic:payouts:0:1"),
        record(2, -700, reverses="topic:payouts:0:1", event_id="pay-8"),
    ],
    ids=["another place", "the same sign", "another event"],
)
def test_a_reversal_that_names_no_copy_of_its_event_is_told(reversal: Any) -> None:
    reader = ReversalReader("nowhere", [])
    counted(reader, record(0, 700), record(1, 700), reversal)
    (sentence,) = reader.wrong
    assert sentence.startswith("topic:payouts:0:2 takes back ")


def test_a_debit_and_a_credit_are_one_posting_and_one_without_the_other_is_told() -> None:
    reader = PostReader("nowhere", "billing")
    assert reader.count([("pay-7", 1, 1), ("pay-8", 2, 2)]) == {"pay-7": 1, "pay-8": 2}
    assert reader.wrong == []
    assert reader.count([("pay-7", 1, 0)]) == {"pay-7": 1}
    assert reader.wrong == ["event pay-7 has 1 debit and 0 credit rows"]


def test_abort_markers_count_by_producer_over_all_segments_and_commits_do_not(tmp_path: Path) -> None:
    log = SyntheticLog()
    for producer_id in (7, 8, 9):
        log.append(b"{}", producer_id=producer_id, transactional=True)
    log.end_transaction(7, Marker.ABORT)
    log.end_transaction(8, Marker.COMMIT)
    log.end_transaction(9, Marker.ABORT)
    log.end_transaction(9, Marker.ABORT)
    for first in (0, 4):
        segment = b"".join(batch.raw for batch in log.batches[first : first + 4])
        (tmp_path / f"{first:020}.log").write_bytes(segment)
    assert MarkerReader(tmp_path).read() == {"7": 1, "9": 2}
