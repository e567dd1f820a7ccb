"""How dear is the whole proof, beside reading the two sides once and beside what people use today?

    python -m bench.side_by_side --events 3000000 --times 4

Builds one data set by seed on a real broker and a real PostgreSQL, and runs in turn, each in a process of its own:

  floor      Kafka's own consumer-perf-test on the topic and, at the same time, COPY TO of the ledger's columns:
             both sides read once, nothing done with them
  naive      a Spark job as one writes it today: default source, from_json, JDBC, full outer join, counts
  datacompy  SparkSQLCompare on the same two frames
  ours       cut, census, match, classes, stored verdict

Ratios count, absolute times drift: all of them are medians of warm runs of this one run. Writes build/bench.json.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from rich.table import Table

from bench.data_set import AGREES, BROKEN, TOPIC, DataSize, make_empty, write_ledger, write_topic
from bench.memory_peak import peak_of
from bench.ours_app import take_cut
from lab.long_run import LongRun, measured_on
from lab.process import REPOSITORY
from lab.stack import LabStack, start_stack
from tallystick.connections import environment_variable
from tallystick.contract import load_contract
from tallystick.store.engine import connect_store, migrate, open_store

FOLDER = REPOSITORY / "build" / "bench"
FIGURES = REPOSITORY / "build" / "bench.json"
_KAFKA, _LEDGER = "kafka_bench", "ledger_bench"
_DSN = environment_variable(_LEDGER)
_ARM_SECONDS_MAX = 3600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=DataSize.events, help="committed events (default 3000000)")
    parser.add_argument("--partitions", type=int, default=2, help="of the topic (default 2)")
    parser.add_argument("--filler-bytes", type=int, default=0, help="text that nobody asks for, in each event")
    parser.add_argument("--hot-percent", type=int, default=0, help="share of the events on partition 0 beyond its own")
    parser.add_argument("--times", type=int, default=4, help="runs in one session; the first is cold (default 4)")
    parser.add_argument("--seed", type=int, default=1, help="which events are made (default 1)")
    parser.add_argument("--without", choices=("datacompy",), action="append", default=[], help="leave an arm out")
    given = parser.parse_args()
    size = DataSize(
        events=given.events,
        partitions=given.partitions,
        filler_bytes=given.filler_bytes,
        hot_partition_percent=given.hot_percent,
        seed=given.seed,
    )
    run = LongRun()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    run.say("starting a broker and two databases")
    with start_stack(FOLDER / "lab") as stack, _environment(stack):
        migrate(connect_store(stack.store_dsn))
        make_empty(stack, size)
        contracts = {table: [_contract(table, number) for number in range(given.times)] for table in (AGREES, BROKEN)}
        engine = open_store(stack.store_dsn)
        for path in (path for paths in contracts.values() for path in paths):
            take_cut(engine, load_contract(path))
        run.say(f"writing {size.events:,} events and twice as many rows")
        write_topic(stack, size)
        wrong = write_ledger(stack, size)
        figures: dict[str, Any] = {"size": asdict(size), "times": given.times, "wrong_rows": wrong}
        for name, arm in _arms(stack, size, contracts, given.times, given.without):
            figures[name] = arm()
            run.say(f"{name}: {_in_words(figures[name])}")
    figures |= {"ratios": ratios(figures), "seconds": round(run.seconds, 1), **measured_on()}
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    run.console.print(table_of(figures))
    problems = disagreements(figures)
    for problem in problems:
        run.console.print(f"[red]differs:[/red] {problem}", highlight=False)
    sys.exit(1 if problems else 0)


def _arms(
    stack: LabStack, size: DataSize, contracts: Mapping[str, Sequence[Path]], times: int, without: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    for table, suffix in ((AGREES, ""), (BROKEN, "_broken")):
        if not suffix:
            yield "floor", lambda: _floor(stack, size, times)
        yield f"ours{suffix}", lambda table=table: _ours(contracts[table])
        yield f"naive{suffix}", lambda table=table: _naive(stack, table, times)
        if "datacompy" not in without and not suffix:
            yield "datacompy", lambda table=table: _naive(stack, table, 2, "--datacompy")


def _floor(stack: LabStack, size: DataSize, times: int) -> dict[str, Any]:
    """Seconds until both sides are read, by the slower of two processes that run at once."""
    seconds, topic, ledger = [], [], []
    for _ in range(times):
        started = time.perf_counter()
        with ThreadPoolExecutor(2) as beside:
            consumer = beside.submit(_read_topic, stack, size)
            rows = beside.submit(_read_ledger, stack)
            topic.append(consumer.result())
            ledger.append(rows.result())
        seconds.append(time.perf_counter() - started)
    return {"seconds": seconds, "warm_seconds": median(seconds), "topic_seconds": topic, "ledger_seconds": ledger}


def _read_topic(stack: LabStack, size: DataSize) -> float:
    started = time.perf_counter()
    settings = FOLDER / "consumer.properties"
    settings.write_text("isolation.level=read_committed\nreceive.buffer.bytes=1048576\n")
    classpath = f"{REPOSITORY / '.jars' / 'broker'}/*"
    argv = ["java", "-Xmx1g", "-cp", classpath, "org.apache.kafka.tools.ConsumerPerformance"]
    argv += ["--bootstrap-server", stack.bootstrap_servers, "--topic", TOPIC, "--messages", str(size.events)]
    argv += ["--consumer.config", str(settings), "--timeout", "60000"]
    subprocess.run(argv, check=True, capture_output=True, timeout=_ARM_SECONDS_MAX)
    return time.perf_counter() - started


def _read_ledger(stack: LabStack) -> float:
    started = time.perf_counter()
    query = f"COPY (SELECT entry_id, event_id, payment_id, leg, amount_minor, currency FROM {AGREES}) TO STDOUT"
    with psycopg.connect(stack.ledger_reader_dsn) as reader, reader.cursor() as cursor, cursor.copy(query) as rows:
        for _ in rows:
            pass
    return time.perf_counter() - started


def _ours(contracts: Sequence[Path]) -> dict[str, Any]:
    return _measure("bench.ours_app", *(word for path in contracts for word in ("--contract", str(path))))


def _naive(stack: LabStack, table: str, times: int, *more: str) -> dict[str, Any]:
    argv = ["--servers", stack.bootstrap_servers, "--dsn-from", _DSN, "--table", table, "--times", str(times)]
    return _measure("bench.naive_app", *argv, *more)


def _measure(program: str, *argv: str) -> dict[str, Any]:
    """Run one program; its runs, the first of which is cold, and the most memory that its processes held together."""
    result, log = FOLDER / "result.json", FOLDER / f"{program}.log"
    started = time.perf_counter()
    with log.open("w") as words:
        child = subprocess.Popen(
            [sys.executable, "-m", program, *argv, "--result", str(result)],
            cwd=REPOSITORY,
            stdout=words,
            stderr=subprocess.STDOUT,
        )
        peak_mib = peak_of(child)
    if child.returncode:
        raise SystemExit(f"{program} ended with {child.returncode}; its log is {log}")
    told = json.loads(result.read_text())
    cold = time.perf_counter() - started - sum(told["seconds"][1:])
    warm = told["seconds"][1:] or told["seconds"]
    return {**told, "warm_seconds": median(warm), "cold_process_seconds": cold, "peak_mib": peak_mib}


def ratios(figures: Mapping[str, Any]) -> dict[str, float]:
    """Ours over each of the others, by medians of warm runs; cold: whole processes."""
    warm = {name: arm["warm_seconds"] for name, arm in figures.items() if isinstance(arm, dict) and "seconds" in arm}
    found = {
        "ours_over_floor": warm["ours"] / warm["floor"],
        "ours_broken_over_floor": warm["ours_broken"] / warm["floor"],
        "ours_over_naive": warm["ours"] / warm["naive"],
        "ours_broken_over_naive_broken": warm["ours_broken"] / warm["naive_broken"],
        "ours_over_naive_cold": figures["ours"]["cold_process_seconds"] / figures["naive"]["cold_process_seconds"],
    }
    if "datacompy" in warm:
        found["ours_over_datacompy"] = warm["ours"] / warm["datacompy"]
    return {name: round(value, 3) for name, value in found.items()}


def disagreements(figures: Mapping[str, Any]) -> list[str]:
    """What an arm answered that is not what was written. A fast answer that is wrong counts for nothing."""
    wrong, found = figures["wrong_rows"], []
    if figures["ours"]["answer"]["verdict"] != "MATCHED":
        found.append(f"ours: {figures['ours']['answer']}; expected MATCHED")
    if any(figures["naive"]["answer"].values()):
        found.append(f"naive: {figures['naive']['answer']}; expected nothing")
    breaks = figures["ours_broken"]["answer"]["breaks"]
    if sum(breaks.values()) != sum(wrong.values()):
        found.append(f"ours: {breaks}; expected {wrong} by kind")
    if figures["naive_broken"]["answer"] != {"missing_in_ledger": 0, "missing_in_topic": 0, "different": 0} | wrong:
        found.append(f"naive: {figures['naive_broken']['answer']}; expected {wrong}")
    return found


def table_of(figures: Mapping[str, Any]) -> Table:
    """The arms, a line each."""
    table = Table("program", "warm, s", "cold process, s", "peak, MiB", "over the floor")
    floor = figures["floor"]["warm_seconds"]
    for name, arm in figures.items():
        if isinstance(arm, dict) and "warm_seconds" in arm:
            cold, peak = arm.get("cold_process_seconds"), arm.get("peak_mib")
            table.add_row(
                name,
                f"{arm['warm_seconds']:.2f}",
                "" if cold is None else f"{cold:.1f}",
                "" if peak is None else f"{peak:,}",
                f"{arm['warm_seconds'] / floor:.2f}",
            )
    return table


def _in_words(arm: Mapping[str, Any]) -> str:
    return f"{arm['warm_seconds']:.2f} s, of {', '.join(f'{one:.2f}' for one in arm['seconds'])}"


def _contract(table: str, number: int) -> Path:
    name = f"{table.replace('.', '_')}_{number}"
    path = FOLDER / f"{name}.yaml"
    document = {
        "contract": name,
        "version": 1,
        "owner": "bench",
        "direction": "topic_to_ledger",
        "schedule": "0 * * * *",
        "start_date": "2026-01-01T00:00:00Z",
        "kafka": {"connection": _KAFKA},
        "legs": {"payment": TOPIC},
        "ledger": {"connection": _LEDGER, "table": table, "slice_by": "written_xid"},
        "partner_grace_seconds": 0,
    }
    path.write_text(json.dumps(document))
    return path


@contextmanager
def _environment(stack: LabStack) -> Iterator[None]:
    """What a task of ours finds in its environment, for the programs that are started from here."""
    given = {
        "TALLYSTICK_STORE_DSN": stack.store_dsn,
        environment_variable(_KAFKA): json.dumps({"bootstrap.servers": stack.bootstrap_servers}),
        _DSN: stack.ledger_reader_dsn,
        "TALLYSTICK_ARTIFACTS_DIR": str(FOLDER / "artifacts"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    before = dict(os.environ)
    os.environ.update(given)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    main()
