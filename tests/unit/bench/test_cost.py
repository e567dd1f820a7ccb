"""What Spark's own event log says of jobs, stages and shuffles is added up right."""

import pytest

from bench.cost import NothingFetched, read_fetched
from bench.event_log import Event, NothingRan, SparkCost, SparkMoments, spark_cost, spark_moments


def stage(number: int, tasks: int, **accumulables: str) -> Event:
    told = [{"ID": 1, "Name": f"internal.metrics.{name}", "Value": value} for name, value in accumulables.items()]
    return {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": {"Stage ID": number, "Number of Tasks": tasks, "Accumulables": told},
    }


JOB: Event = {"Event": "SparkListenerJobStart", "Job ID": 0, "Stage IDs": [0, 1]}
WRITES = {"shuffle.write.recordsWritten": 70, "shuffle.write.bytesWritten": 900}
READS = {"shuffle.read.recordsRead": 70, "shuffle.read.localBytesRead": 900, "resultSize": 5}


def test_stages_and_what_they_wrote_to_shuffles_are_added_up() -> None:
    told = [{"Event": "SparkListenerLogStart"}, JOB, stage(0, 4, **WRITES), stage(1, 2, **WRITES), JOB]
    assert spark_cost(told) == SparkCost(jobs=2, stages=2, tasks=6, shuffled_rows=140, shuffled_bytes=1800)


def test_what_was_read_from_a_shuffle_is_not_counted_again() -> None:
    told = [JOB, stage(0, 4, **WRITES), stage(1, 2, **READS)]
    assert spark_cost(told) == SparkCost(jobs=1, stages=2, tasks=6, shuffled_rows=70, shuffled_bytes=900)


def test_a_stage_that_was_skipped_is_none() -> None:
    assert spark_cost([JOB]).stages == 0


def task(launched: int) -> Event:
    return {"Event": "SparkListenerTaskStart", "Task Info": {"Launch Time": launched}}


SESSION: Event = {"Event": "SparkListenerExecutorAdded", "Timestamp": 12_500}


def test_the_first_task_is_the_one_that_was_launched_first() -> None:
    assert spark_moments([SESSION, JOB, task(14_000), task(13_250)]) == SparkMoments(session=12.5, first_task=13.25)


@pytest.mark.parametrize("told", [[], [SESSION, JOB], [task(1)]])
def test_a_program_that_read_nothing_has_no_first_byte(told: list[Event]) -> None:
    with pytest.raises(NothingRan, match="no task"):
        spark_moments(told)


def test_the_bytes_that_a_run_fetched_are_found_among_its_words() -> None:
    told = ["WARN something", '{"step": "scanning", "offsets": 9}', '{"step": "fetched", "bytes": 4711}', "bytes: 12"]
    assert read_fetched(told) == 4711


def test_a_run_that_fetched_nothing_or_twice_is_refused() -> None:
    once = '{"step": "fetched", "bytes": 4711}'
    for told in ([], ['{"step": "scanning"}'], [once, once]):
        with pytest.raises(NothingFetched, match="expected one line"):
            read_fetched(told)
