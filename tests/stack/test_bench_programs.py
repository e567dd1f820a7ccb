"""The floor and the strongest rivals of `make bench` read all, and answer what was written; on a small data set."""

import shutil
import uuid
from collections.abc import Iterator

import pytest

from bench.answers import disagreements, expected_answers
from bench.arms import FOLDER, run_bare, run_duckdb, run_raw
from bench.comparison import environment
from bench.data_set import AGREES, BROKEN, DataSize, make_empty, plant_copies, write_ledger, write_topic
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack, start_stack

pytestmark = pytest.mark.lab

SIZE = DataSize(events=5_000, transaction_events=100, wrong_percent=5)


@pytest.fixture(scope="module")
def written() -> Iterator[tuple[LabStack, dict[str, int]]]:
    """Servers with both sides, and how many rows of the broken table are wrong. They are of this module alone, since
    the benchmark's topic and tables have one name."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = REPOSITORY / "build" / "tests" / f"bench-{uuid.uuid4().hex[:8]}"
    try:
        with start_stack(folder) as stack, environment(stack):
            make_empty(stack, SIZE)
            write_topic(stack, SIZE)
            yield stack, write_ledger(stack, SIZE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_floor_reads_every_offset_and_every_row(written: tuple[LabStack, dict[str, int]]) -> None:
    stack, _ = written
    answer = run_raw(stack, times=2)["answer"]
    assert answer == {"unread_offsets": 0, "ledger_rows": SIZE.events}


def test_the_rivals_count_what_was_written_wrong_and_find_nothing_where_the_sides_agree(
    written: tuple[LabStack, dict[str, int]],
) -> None:
    stack, wrong_rows = written
    assert set(wrong_rows) == {"missing_in_ledger", "missing_in_topic", "different"}
    arms = {
        f"{name}{suffix}": run(stack, table, 1)
        for table, suffix in ((AGREES, ""), (BROKEN, "_broken"))
        for name, run in (("duckdb", run_duckdb), ("bare", run_bare))
    }
    assert disagreements(arms, expected_answers(wrong_rows, events=SIZE.events, hot_key_copies=1)) == []


def test_a_key_that_stands_twice_on_both_sides_is_paired_copy_by_copy(
    written: tuple[LabStack, dict[str, int]],
) -> None:
    stack, _ = written
    plant_copies(stack, SIZE)
    arms = {"raw": run_raw(stack, 1), "duckdb": run_duckdb(stack, AGREES, 1), "bare": run_bare(stack, AGREES, 1)}
    assert disagreements(arms, expected_answers({}, events=SIZE.events + 1, hot_key_copies=2)) == []
