"""How fast the census classifies batch headers, and how much memory that takes: a million and ten millions of them.

    python -m bench.census_headers

The bytes are made as they are asked for, so what grows with the log is the census' own. Each size runs in a process of
its own, since a process never gives its peak back. Writes build/bench_census.json; fails where memory grows.
"""

import argparse
import json
import resource
import struct
import subprocess
import sys
import time
from pathlib import Path

from tallystick.kafka_log.fetch import Fetch, FetchedLog
from tallystick.kafka_log.offset_census import take_census
from tallystick.model.offsets import OffsetRange, TopicPartition

SIZES = (1_000_000, 10_000_000)
MAY_GROW_MIB = 16
RESULT = Path("build/bench_census.json")

_HEADER = struct.Struct(">qiibIhiqqqhii")
_MARKER_BODY = bytes.fromhex("2000000008") + struct.pack(">hh", 0, 1) + bytes.fromhex("0c000000000000")
_PRODUCERS, _BATCHES_OF_ONE, _RECORDS = 500, 3, 10
_ABORTED_OF_A_HUNDRED = 5
_BATCHES_OF_AN_ANSWER = _PRODUCERS * (_BATCHES_OF_ONE + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", type=int, help="measure one size, in this process")
    headers = parser.parse_args().headers
    if headers is not None:
        print(json.dumps(measure(headers)))
        return
    results = [_in_a_process(size) for size in SIZES]
    for result in results:
        print(f"{result['headers']:>12,} headers {result['seconds']:>8.1f} s {result['peak_rss_mib']:>8.1f} MiB")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(results, indent=2) + "\n")
    grown = results[-1]["peak_rss_mib"] - results[0]["peak_rss_mib"]
    if grown > MAY_GROW_MIB:
        sys.exit(f"memory grew by {grown:.1f} MiB from {SIZES[0]:,} to {SIZES[-1]:,} headers")


def _in_a_process(headers: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.census_headers", "--headers", str(headers)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(output)
    return result


def measure(headers: int) -> dict[str, float]:
    """Take the census of so many batches. Raises AssertionError where it counts wrongly."""
    answers = headers // _BATCHES_OF_AN_ANSWER
    fetch, offsets_of_an_answer = synthetic_fetch()
    started = time.perf_counter()
    census = take_census(
        fetch,
        OffsetRange(topic="bench", partition=0, kafka_offset_start=0, kafka_offset_end=answers * offsets_of_an_answer),
    )
    seconds = time.perf_counter() - started
    aborted = _PRODUCERS * _ABORTED_OF_A_HUNDRED // 100
    records = _BATCHES_OF_ONE * _RECORDS
    assert (census.aborted, census.committed, census.unexplained) == (
        answers * aborted * records,
        answers * (_PRODUCERS - aborted) * records,
        0,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"headers": headers, "seconds": round(seconds, 2), "peak_rss_mib": round(peak, 1)}


def synthetic_fetch() -> tuple[Fetch, int]:
    """A log that answers in whole rounds of all producers' transactions, interleaved; and the offsets of one answer."""
    answer, places, aborted, offset = bytearray(), [], [], 0
    for number in range(_BATCHES_OF_ONE + 1):
        for producer_id in range(_PRODUCERS):
            is_marker, aborts = number == _BATCHES_OF_ONE, producer_id % 100 < _ABORTED_OF_A_HUNDRED
            count = 1 if is_marker else _RECORDS
            if aborts and number == 0:
                aborted.append((producer_id, offset))
            places.append((len(answer), offset))
            answer += _batch(offset, count, producer_id, is_marker=is_marker, aborts=aborts)
            offset += count

    def fetch(topic_partition: TopicPartition, at: int, read_committed: bool) -> FetchedLog:
        base = at // offset * offset
        for position, relative in places:
            struct.pack_into(">q", answer, position, base + relative)
        return FetchedLog(
            records=bytes(answer),
            high_watermark=1 << 62,
            lso=1 << 62,
            log_start=0,
            aborted=tuple((producer_id, base + first) for producer_id, first in aborted),
        )

    return fetch, offset


def _batch(offset: int, count: int, producer_id: int, *, is_marker: bool, aborts: bool) -> bytes:
    """A header as the log holds it; of a marker its key and value too. The census reads no more."""
    body = bytearray(_MARKER_BODY if is_marker else b"")
    if is_marker and aborts:
        struct.pack_into(">hh", body, 5, 0, 0)
    attributes = 0x30 if is_marker else 0x10
    length = _HEADER.size - 12 + len(body)
    fields = (offset, length, 0, 2, 0, attributes, count - 1, 0, 0, producer_id, 0, -1 if is_marker else 0, count)
    return _HEADER.pack(*fields) + body


if __name__ == "__main__":
    main()
