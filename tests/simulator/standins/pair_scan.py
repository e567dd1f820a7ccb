"""The match pair by pair of topic_to_topic, by plain dictionaries: the same words as `frame_match.scan_slices` uses.

Walk and decoding are the product's. What Spark's expressions count is counted in Python here; that both say the same of
the same copies, tests/spark/test_simulated_pairs.py holds.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tallystick.contract.contract import Contract
from tallystick.judging.canaries import canary_events, canary_rows
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.kafka_log.fetch import Fetch
from tallystick.matching.evidence import UnreadableRecord
from tallystick.matching.match_case import Entry
from tallystick.matching.scan_result import CANARY_PARTITION, UNREADABLE_SAMPLE, CanaryScan, SliceScan
from tallystick.model.cut import Cut
from tallystick.model.findings import total_money
from tallystick.model.offsets import TopicPartition
from tallystick.pipeline.run_history import inputs_of_before
from tallystick_spark import scan as real
from tallystick_spark.matching.frame_match import ledger_copy, topic_copy
from tallystick_spark.readers.event_columns import read_events
from tests.simulator.standins import lean_scan
from tests.simulator.standins.key_index import IndexWriter, keys_in_indexes
from tests.simulator.standins.lean_scan import Read
from tests.simulator.standins.same import Same

Copy = Mapping[str, Any]
"""An event or a row, by the names of its fields."""


def scan_inputs(
    fetch: Fetch, asked: real.CutToScan, keys_to_include: Collection[str], indexes: Any, to: Any
) -> SliceScan:
    """Read both sides' topics, write and ask the key index, and pair."""
    contract, cut = asked.contract, asked.cut
    outputs, inputs = _read(fetch, contract, cut, contract.topics), _read(fetch, contract, cut, contract.input_topics)
    keys = set(keys_to_include)
    keys |= _keys_below(inputs.events, inputs_of_before(cut, asked.baseline, contract.input_topics))
    if indexes is not None:
        keys |= keys_in_indexes((one["match_key"] for one in inputs.events), indexes.paths)
    if to is not None:
        writer = IndexWriter(folder=to.folder, seed=to.seed)
        writer.add_events(outputs.events)
        writer.add_events(inputs.events, side="ledger")
    found = pair(outputs, inputs, contract, keys, possible_ms=asked.possible_ms)
    return replace(found, canaries=_canaries(Same(contract)))


def _keys_below(events: Iterable[Copy], ends: Mapping[TopicPartition, int]) -> set[str]:
    """As `key_index_frame.keys_below`."""
    places = ((TopicPartition(topic=one["topic"], partition=one["partition"]), one) for one in events if ends)
    return {one["match_key"] for part, one in places if one["kafka_offset"] < ends.get(part, 0)}


def _read(fetch: Fetch, contract: Contract, cut: Cut, topics: Collection[str]) -> Read:
    slices = real.slices_on(cut, topics)
    fields = contract.event_on(next(iter(topics)))
    return lean_scan.read_topics(fetch, slices, EventDecoder(fields, several_legs=len(contract.legs) > 1), None)


def pair(
    outputs: Read,
    inputs: Read,
    contract: Contract,
    keys_to_include: Collection[str],
    *,
    possible_ms: tuple[int, int] | None,
) -> SliceScan:
    """Collect every copy of each key that is not one event and one equal input, or is to be included."""
    rows = [as_row(one, contract) for one in inputs.events]
    events_home, rows_home = exceptions(outputs.events, rows, contract.legs, keys_to_include)
    copies = (*map(topic_copy, events_home), *map(ledger_copy, rows_home))
    money = total_money((row["currency"], row["amount_minor"]) for row in rows)
    exceptional = total_money((row["currency"], row["amount_minor"]) for row in rows_home)
    return SliceScan(
        rows_by_partition=dict(sorted(outputs.rows_by_partition.items())),
        ledger_rows=len(rows),
        matched_rows=len(rows) - len(rows_home),
        matched_money={currency: amount - exceptional.get(currency, 0) for currency, amount in money.items()},
        copies=copies,
        incomplete=tuple(map(topic_copy, lacking_a_leg(outputs.events, contract.legs))),
        unreadable_count=len(outputs.unreadable),
        unreadable_sample=(*_sample(outputs), *_sample(inputs)),
        content_digests={"topic": str(outputs.content), "ledger": str(inputs.content), "inputs": str(inputs.content)},
        topic_money=total_money((one["currency"], one["amount_minor"]) for one in outputs.events),
        ledger_money=money,
        record_times=(
            (*lean_scan._record_times(outputs, possible_ms), *lean_scan._record_times(inputs, possible_ms))
            if possible_ms
            else ()
        ),
        canaries=_NO_CANARIES,
        input_rows_by_partition=dict(sorted(inputs.rows_by_partition.items())),
        input_unreadable_count=len(inputs.unreadable),
    )


_NO_CANARIES = CanaryScan(copies=(), incomplete=(), unreadable=0)


def as_row(event: Copy, contract: Contract) -> dict[str, Any]:
    """As `ledger_frame.input_rows`: an input in a ledger's shape. Where the contract has one leg, it is of that one."""
    only_leg = min(contract.legs) if len(contract.legs) == 1 else None
    return {
        "row_id": f"{event['topic']}:{event['partition']}:{event['kafka_offset']}",
        "match_key": event["match_key"],
        "transaction_key": event["transaction_key"],
        "leg": only_leg or event["leg"],
        "amount_minor": event["amount_minor"],
        "currency": event["currency"],
        "written_ms": None,
    }


def exceptions(
    events: Sequence[Copy], rows: Sequence[Copy], legs: Mapping[str, str], keys_to_include: Collection[str]
) -> tuple[list[Copy], list[Copy]]:
    """Copies of keys that are no simple pair, that somebody asks for, or whose event names a leg of another topic."""
    of_key: dict[str, tuple[list[Copy], list[Copy]]] = {}
    for number, side in enumerate((events, rows)):
        for one in side:
            of_key.setdefault(one["match_key"], ([], []))[number].append(one)
    wanted = {key for key, (some, others) in of_key.items() if not _is_simple(some, others)} | set(keys_to_include)
    wanted |= {one["match_key"] for one in events if legs.get(one["leg"], one["topic"]) != one["topic"]}
    return (
        [one for one in events if one["match_key"] in wanted],
        [one for one in rows if one["match_key"] in wanted],
    )


def _is_simple(events: Sequence[Copy], rows: Sequence[Copy]) -> bool:
    return (len(events), len(rows)) == (1, 1) and all(
        events[0][name] == rows[0][name] for name in ("amount_minor", "currency")
    )


def lacking_a_leg(events: Sequence[Copy], legs: Mapping[str, str]) -> list[Copy]:
    """Events of transactions that lack a leg in this cut. Which leg an event is, its topic says."""
    if len(legs) < 2:
        return []
    seen: dict[str, set[str]] = {}
    for one in events:
        seen.setdefault(one["transaction_key"], set()).add(one["topic"])
    return [one for one in events if len(seen[one["transaction_key"]]) < len(legs)]


def _sample(read: Read) -> Iterable[UnreadableRecord]:
    for topic, partition, at in sorted(read.unreadable)[:UNREADABLE_SAMPLE]:
        yield UnreadableRecord(topic=topic, partition=partition, kafka_offset=at)


@lru_cache(maxsize=64)
def _canaries(contract: Same[Contract]) -> CanaryScan:
    """What comes home of planted copies, which are compared with each other only."""
    planted = canary_events(contract.it)
    decoder = EventDecoder(contract.it.event, several_legs=len(contract.it.legs) > 1)
    read = read_events(decoder, [one.value for one in planted]).to_pylist()
    events = [
        {**fields, "topic": one.topic, "partition": CANARY_PARTITION, "kafka_offset": one.kafka_offset, "written_ms": 0}
        for one, fields in zip(planted, read, strict=True)
    ]
    readable = [one for one in events if one["readable"]]
    rows = [{**vars(row), "written_ms": None} for row in canary_rows(contract.it)]
    home, rows_home = exceptions(readable, rows, contract.it.legs, ())
    copies: tuple[Entry, ...] = (*map(topic_copy, home), *map(ledger_copy, rows_home))
    torn = tuple(map(topic_copy, lacking_a_leg(readable, contract.it.legs)))
    return CanaryScan(copies=copies, incomplete=torn, unreadable=len(events) - len(readable))
