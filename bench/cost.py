"""What a reconciliation costs, told without a clock: a busy machine tells the same.

    python -m bench.cost --events 60000

One window of sides that agree, through the product's own reconciliation. Counts what the broker sent against what the
log holds, the rows that PostgreSQL read against those in the table, and from Spark's event log jobs, stages, tasks and
what they shuffled.
"""

import argparse
import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import psycopg

from bench.arms import FOLDER, run_ours
from bench.comparison import PARTS, begin_books, environment
from bench.data_set import AGREES, TOPIC, DataSize, make_empty, write_ledger, write_topic
from bench.event_log import SparkCost, recorded_events, spark_cost
from lab.servers.stack import LabStack, start_stack

_FETCHED = '{"step": "fetched"'
PROGRAM_LOG = FOLDER / "bench.ours_app.log"


class NothingFetched(LookupError):
    """The run did not say how much of the log it fetched."""


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
    with environment(stack), recorded_events() as recorded:
        make_empty(stack, size)
        contracts = begin_books(stack, times=1, without=PARTS)[AGREES]
        write_topic(stack, size)
        write_ledger(stack, size, (AGREES,))
        sent_before, rows_before = _bytes_written(stack), _rows_read(stack)
        answer = run_ours(contracts)["answer"]
        sent_bytes, rows_read = _bytes_written(stack) - sent_before, _rows_read(stack) - rows_before
        spark = spark_cost(recorded())
    return Cost(
        verdict=answer["verdict"],
        log_bytes=sum(part.stat().st_size for part in Path(stack.folder).rglob(f"{TOPIC}-*/*.log")),
        fetched_bytes=read_fetched(PROGRAM_LOG.read_text().splitlines()),
        sent_bytes=sent_bytes,
        ledger_rows=answer["ledger_rows"],
        ledger_rows_read=rows_read,
        spark=spark,
    )


def read_fetched(lines: Iterable[str]) -> int:
    """Bytes of the log that one run said it fetched, among whatever else its log holds. Raises NothingFetched."""
    told = [json.loads(line) for line in lines if line.startswith(_FETCHED)]
    if len(told) != 1:
        raise NothingFetched(
            f"expected one line {_FETCHED}...}} of the run, got {len(told)}; the log was read another way"
        )
    return int(told[0]["bytes"])


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
