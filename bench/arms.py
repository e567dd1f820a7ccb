"""The programs that the benchmark compares, each run in a process of its own.

  floor      Kafka's own consumer-perf-test on the topic and, at the same time, COPY TO of the ledger's columns:
             both sides read once, nothing done with them. Kept for one more release, beside raw
  raw        a warm process that fetches the topic's batches and drops them, beside two sessions of binary COPY
  naive      a Spark job as one writes it today: default source, from_json, JDBC, full outer join, counts
  datacompy  SparkSQLCompare on the same two frames
  duckdb     one warm process: librdkafka to Arrow, the ledger by ADBC, a full outer join in DuckDB
  bare       one Java class on Kafka's and PostgreSQL's own clients, with one hash map
  ours       cut, census, match, classes, stored verdict

An arm is a dictionary: the seconds of each run, their median when warm, and what the last run answered. One more, the
command itself, is in start_up.py.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bench.data_set import AGREES, TOPIC, DataSize
from bench.memory_peak import peak_of
from bench.spark_session import JARS
from lab.servers import process
from lab.servers.broker import DEFAULT_JARS
from lab.servers.stack import LabStack
from tallystick.connections.connections import environment_variable

FOLDER = process.REPOSITORY / "build" / "bench"
KAFKA, LEDGER = "kafka_bench", "ledger_bench"
_ARM_SECONDS_MAX = 3600
_BARE_JOIN = Path(__file__).with_name("java") / "BareJoin.java"


def read_both_sides(stack: LabStack, size: DataSize, times: int) -> dict[str, Any]:
    """The floor: seconds until both sides are read, by the slower of two processes that run at once."""
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


def run_ours(contracts: Sequence[Path]) -> dict[str, Any]:
    """A window of each contract, one after the other in one session."""
    return _run("bench.ours_app", *(word for path in contracts for word in ("--contract", str(path))))


def run_raw(stack: LabStack, times: int) -> dict[str, Any]:
    """The floor in a warm process, so many times."""
    return _run("bench.raw_app", *_sides(stack, AGREES, times))


def run_duckdb(stack: LabStack, table: str, times: int) -> dict[str, Any]:
    """The join by DuckDB, so many times in one process."""
    return _run("bench.duckdb_app", *_sides(stack, table, times))


def run_bare(stack: LabStack, table: str, times: int) -> dict[str, Any]:
    """The join by one Java class, so many times in one process; compiled before."""
    jars = f"{DEFAULT_JARS}/*:{next(JARS.glob('postgresql-*.jar'))}"
    subprocess.run(["javac", "-cp", jars, "-d", str(FOLDER), str(_BARE_JOIN)], check=True, timeout=_ARM_SECONDS_MAX)
    argv = ["java", "-Xmx4g", "-cp", f"{FOLDER}:{jars}", _BARE_JOIN.stem, stack.bootstrap_servers, TOPIC]
    return _run_command(_BARE_JOIN.stem, [*argv, environment_variable(LEDGER), table, str(times)])


def run_naive(stack: LabStack, table: str, times: int) -> dict[str, Any]:
    """The join, so many times in one session."""
    return _run("bench.naive_app", *_sides(stack, table, times))


def run_datacompy(stack: LabStack, table: str) -> dict[str, Any]:
    """Twice in one session, for it is slow: once cold and once warm."""
    return _run("bench.naive_app", *_sides(stack, table, 2), "--datacompy")


def _sides(stack: LabStack, table: str, times: int) -> list[str]:
    argv = ["--servers", stack.bootstrap_servers, "--dsn-from", environment_variable(LEDGER), "--table", table]
    return [*argv, "--times", str(times)]


def _read_topic(stack: LabStack, size: DataSize) -> float:
    started = time.perf_counter()
    settings = FOLDER / "consumer.properties"
    settings.write_text("isolation.level=read_committed\nreceive.buffer.bytes=1048576\n")
    argv = ["java", "-Xmx1g", "-cp", f"{DEFAULT_JARS}/*", "org.apache.kafka.tools.ConsumerPerformance"]
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


def _run(program: str, *argv: str) -> dict[str, Any]:
    return _run_command(program, [sys.executable, "-m", program, *argv, "--result"])


def _run_command(program: str, argv: Sequence[str]) -> dict[str, Any]:
    """Run one program; its runs, the first of which is cold, and the most memory that its processes held together.

    The last word it is given is where its figures go: a file of its own, since the tests run several programs at once.
    """
    result, log = FOLDER / f"{program}.json", FOLDER / f"{program}.log"
    started = time.perf_counter()
    with log.open("w") as words:
        child = subprocess.Popen([*argv, str(result)], cwd=process.REPOSITORY, stdout=words, stderr=subprocess.STDOUT)
        try:
            peak_mib = peak_of(child)
        finally:
            process.kill_tree(child)
    if child.returncode:
        raise SystemExit(f"{program} ended with {child.returncode}; its log is {log}")
    told = json.loads(result.read_text())
    cold = time.perf_counter() - started - sum(told["seconds"][1:])
    warm = told["seconds"][1:] or told["seconds"]
    return {**told, "warm_seconds": median(warm), "cold_process_seconds": cold, "peak_mib": peak_mib}
