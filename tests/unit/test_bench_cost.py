"""What Spark's own event log says of jobs, stages and shuffles is added up right."""

import json
from typing import Any

import pytest

from bench.cost import NothingFetched, SparkCost, read_event_log, read_fetched


def stage(number: int, tasks: int, **accumulables: str) -> dict[str, Any]:
    told = [{"ID": 1, "Name": f"internal.metrics.{name}", "Value": value} for name, value in accumulables.items()]
    return {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": {"Stage ID": number, "Number of Tasks": tasks, "Accumulables": told},
    }


def lines(*events: dict[str, Any]) -> list[str]:
    return [json.dumps(event) + "\n" for event in events]


JOB = {"Event": "SparkListenerJobStart", "Job ID": 0, "Stage IDs": [0, 1]}
WRITES = {"shuffle.write.recordsWritten": 70, "shuffle.write.bytesWritten": 900}
READS = {"shuffle.read.recordsRead": 70, "shuffle.read.localBytesRead": 900, "resultSize": 5}


def test_stages_and_what_they_wrote_to_shuffles_are_added_up() -> None:
    told = lines({"Event": "SparkListenerLogStart"}, JOB, stage(0, 4, **WRITES), stage(1, 2, **WRITES), JOB)
    assert read_event_log(told) == SparkCost(jobs=2, stages=2, tasks=6, shuffled_rows=140, shuffled_bytes=1800)


def test_what_was_read_from_a_shuffle_is_not_counted_again() -> None:
    told = lines(JOB, stage(0, 4, **WRITES), stage(1, 2, **READS))
    assert read_event_log(told) == SparkCost(jobs=1, stages=2, tasks=6, shuffled_rows=70, shuffled_bytes=900)


def test_a_stage_that_was_skipped_is_none() -> None:
    assert read_event_log(lines(JOB)).stages == 0


def test_the_bytes_that_a_run_fetched_are_found_among_its_words() -> None:
    told = ["WARN something", '{"step": "scanning", "offsets": 9}', '{"step": "fetched", "bytes": 4711}', "bytes: 12"]
    assert read_fetched(told) == 4711


def test_a_run_that_fetched_nothing_or_twice_is_refused() -> None:
    once = '{"step": "fetched", "bytes": 4711}'
    for told in ([], ['{"step": "scanning"}'], [once, once]):
        with pytest.raises(NothingFetched, match="expected one line"):
            read_fetched(told)
