"""What a reconciliation costs, told without a clock: a busy machine tells the same.

    python -m bench.cost --events 60000

One window of sides that agree, through the product's own reconciliation. Counts what the broker sent against what the
log holds, the rows that PostgreSQL read against those in the table, and from Spark's event log jobs, stages, tasks and
what they shuffled.
"""

import argparse
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg

from bench.arms import FOLDER, run_ours
from bench.comparison import begin_books, environment
from bench.data_set import AGREES, TOPIC, DataSize, make_empty, write_ledger, write_topic
from lab.stack import LabStack, start_stack

_SHUFFLED_ROWS = "internal.metrics.shuffle.write.recordsWritten"
_SHUFFLED_BYTES = "internal.metrics.shuffle.write.bytesWritten"


_FETCHED = '{"step": "fetched"'
PROGRAM_LOG = FOLDER / "bench.ours_app.log"


class NothingFetched(LookupError):
    """The run did not say how much of the log it fetched."""


@dataclass(frozen=True, kw_only=True)
class SparkCost:
    """Of one application, skipped stages left out. shuffled_rows: records written to any shuffle."""

    jobs: int
    stages: int
    tasks: int
    shuffled_rows: int
    shuffled_bytes: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one reconciliation took from either side, beside what is there.

    fetched_bytes: of the log, by the app's own reader, as it says. sent_bytes: all that the broker's process wrote
    meanwhile, so the sample that Kafka's own client reads again is in it, and whatever else was asked.
    """

    verdict: str
    log_bytes: int
    fetched_bytes: int
    sent_bytes: int
    ledger_rows: int
    ledger_rows_read: int
    spark: SparkCost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=60_000, help="committed events (default 60000)")
    given = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    with start_stack(FOLDER / "lab") as stack:
        print(json.dumps(asdict(measure_cost(stack, DataSize(events=given.events))), indent=2))


def measure_cost(stack: LabStack, size: DataSize) -> Cost:
    """Write the data set and reconcile it once, in a process of its own, on a stack where nobody else works."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with environment(stack), _event_log() as event_log:
        make_empty(stack, size)
        contracts = begin_books(stack, times=1)[AGREES]
        write_topic(stack, size)
        write_ledger(stack, size, (AGREES,))
        sent_before, rows_before = _bytes_written(stack), _rows_read(stack)
        answer = run_ours(contracts)["answer"]
        sent_bytes, rows_read = _bytes_written(stack) - sent_before, _rows_read(stack) - rows_before
        spark = read_event_log(line for file in event_log.iterdir() for line in file.read_text().splitlines())
    return Cost(
        verdict=answer["verdict"],
        log_bytes=sum(part.stat().st_size for part in Path(stack.folder).rglob(f"{TOPIC}-*/*.log")),
        fetched_bytes=read_fetched(PROGRAM_LOG.read_text().splitlines()),
        sent_bytes=sent_bytes,
        ledger_rows=answer["ledger_rows"],
        ledger_rows_read=rows_read,
        spark=spark,
    )


def read_event_log(lines: Iterable[str]) -> SparkCost:
    """Add up one application's event log, a JSON object a line."""
    counts: Counter[str] = Counter()
    for line in lines:
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            counts["jobs"] += 1
        elif event["Event"] == "SparkListenerStageCompleted":
            stage = event["Stage Info"]
            counts["stages"] += 1
            counts["tasks"] += stage["Number of Tasks"]
            for one in stage["Accumulables"]:
                counts[one["Name"]] += int(one["Value"]) if one["Name"] in (_SHUFFLED_ROWS, _SHUFFLED_BYTES) else 0
    return SparkCost(
        jobs=counts["jobs"],
        stages=counts["stages"],
        tasks=counts["tasks"],
        shuffled_rows=counts[_SHUFFLED_ROWS],
        shuffled_bytes=counts[_SHUFFLED_BYTES],
    )


def read_fetched(lines: Iterable[str]) -> int:
    """Bytes of the log that one run said it fetched, among whatever else its log holds. Raises NothingFetched."""
    told = [json.loads(line) for line in lines if line.startswith(_FETCHED)]
    if len(told) != 1:
        raise NothingFetched(
            f"expected one line {_FETCHED}...}} of the run, got {len(told)}; the log was read another way"
        )
    return int(told[0]["bytes"])


@contextmanager
def _event_log() -> Iterator[Path]:
    """Spark reads its defaults from a folder that a variable names; so the program itself need not know."""
    with TemporaryDirectory() as folder:
        events, settings = Path(folder, "events"), Path(folder, "spark-defaults.conf")
        events.mkdir()
        settings.write_text(
            f"spark.eventLog.enabled true\nspark.eventLog.dir {events.as_uri()}\n"
            "spark.eventLog.rolling.enabled false\nspark.eventLog.compress false\n"
        )
        os.environ["SPARK_CONF_DIR"] = folder
        try:
            yield events
        finally:
            del os.environ["SPARK_CONF_DIR"]


def _bytes_written(stack: LabStack) -> int:
    """By the broker's process, to sockets and files, since it began; of files there are few while nobody produces."""
    assert stack.broker.child is not None
    return psutil.Process(stack.broker.child.pid).io_counters().write_chars


def _rows_read(stack: LabStack) -> int:
    """From the ledger's table, by scan or index, since it was made; a backend has told all once it has ended."""
    with psycopg.connect(stack.ledger_admin_dsn) as admin:
        query = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relid = %s::regclass"
        row = admin.execute(query, (AGREES,)).fetchone()
    assert row is not None
    return int(row[0])


if __name__ == "__main__":
    main()
