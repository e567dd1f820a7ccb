"""One measurement: a data set by seed on a real broker and a real PostgreSQL, and all programs on it in turn."""

import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.answers import disagreements, expected_answers, ratios
from bench.arms import (
    FOLDER,
    KAFKA,
    LEDGER,
    read_both_sides,
    run_bare,
    run_datacompy,
    run_duckdb,
    run_naive,
    run_ours,
    run_raw,
)
from bench.data_set import (
    AGREES,
    BROKEN,
    TOPIC,
    DataSize,
    make_empty,
    plant_amounts,
    plant_copies,
    write_both,
)
from bench.machine import machine
from bench.ours_app import take_cut
from bench.start_up import run_command
from lab.servers.postgres import STORE_ROLE
from lab.servers.stack import LabStack, start_stack
from lab.soak.long_run import LongRun
from tallystick.connections.connections import environment_variable
from tallystick.contract.contract import load_contract
from tallystick.store.engine import connect_store, migrate, open_store

NAIVE, DATACOMPY, DUCKDB, BARE = "naive", "datacompy", "duckdb", "bare"
BROKEN_TABLE, PLANTED, COMMAND = "broken", "planted", "command"
PARTS = (NAIVE, DATACOMPY, DUCKDB, BARE, BROKEN_TABLE, PLANTED, COMMAND)
"""What a measurement can do without."""
_COMMAND_TIMES = 3


def measure(
    run: LongRun, size: DataSize, *, times: int, naive_times: int | None = None, without: Collection[str] = ()
) -> dict[str, Any]:
    """Write the data set and run each arm so many times in its session; returns all figures, as `build/` keeps them.

    naive_times: of naive alone, where that takes long; once is cold. With a hot key only the table that agrees is
    there: any other fault would be counted once for each pair of copies.
    """
    left_out = {*without, BROKEN_TABLE, PLANTED, COMMAND} if size.hot_key_copies > 1 else {*without}
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    run.say("starting a broker and two databases")
    with start_stack(FOLDER / "lab") as stack, environment(stack):
        make_empty(stack, size)
        contracts = begin_books(stack, times, without=left_out)
        tables = (AGREES,) if BROKEN_TABLE in left_out else (AGREES, BROKEN)
        run.say(f"writing {size.events:,} events, and as many rows of {' and of '.join(tables)}")
        wrong_rows = write_both(stack, size, tables)
        arms: dict[str, Any] = {}
        for name, arm in _arms(stack, size, contracts, times, naive_times or times, left_out):
            arms[name] = arm
            run.say(f"{name}: {_in_words(arm)}")
    expected = expected_answers(wrong_rows, events=size.events, hot_key_copies=size.hot_key_copies)
    return {
        "size": asdict(size),
        "times": times,
        "wrong_rows": wrong_rows,
        "arms": arms,
        "ratios": ratios(arms),
        "disagreements": disagreements(arms, expected),
        **machine(),
    }


def begin_books(
    stack: LabStack, times: int, *, without: Collection[str], commands: int = _COMMAND_TIMES
) -> dict[str, list[Path]]:
    """Contracts on each table, for the command and for the planted faults; each begins here, before any event."""
    migrate(connect_store(stack.store_owner_dsn), grant_to=STORE_ROLE)
    counts = {AGREES: times, BROKEN: times, COMMAND: commands, PLANTED: 2}
    left_out = {BROKEN if part == BROKEN_TABLE else part for part in without}
    contracts = {
        name: [_contract(BROKEN if name == BROKEN else AGREES, f"{name.replace('.', '_')}_{n}") for n in range(count)]
        for name, count in counts.items()
        if name not in left_out
    }
    engine = open_store(stack.store_dsn)
    for path in (path for paths in contracts.values() for path in paths):
        take_cut(engine, load_contract(path))
    return contracts


def _arms(
    stack: LabStack,
    size: DataSize,
    contracts: Mapping[str, Sequence[Path]],
    times: int,
    naive_times: int,
    without: Collection[str],
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "floor", read_both_sides(stack, size, times)
    yield "raw", run_raw(stack, times)
    for table, suffix in ((AGREES, ""), (BROKEN, "_broken")):
        if table == BROKEN and BROKEN_TABLE in without:
            continue
        yield f"ours{suffix}", run_ours(contracts[table])
        if NAIVE not in without:
            yield f"naive{suffix}", run_naive(stack, table, naive_times)
        if DATACOMPY not in without:
            yield f"datacompy{suffix}", run_datacompy(stack, table)
        if DUCKDB not in without:
            yield f"duckdb{suffix}", run_duckdb(stack, table, times)
        if BARE not in without:
            yield f"bare{suffix}", run_bare(stack, table, times)
    if COMMAND not in without:
        yield "command", run_command(contracts[COMMAND], FOLDER / "command.log")
    if PLANTED not in without:
        amounts, copies = contracts[PLANTED]
        plant_amounts(stack, size)
        yield "ours_planted", run_ours([amounts])
        plant_copies(stack, size)
        yield "ours_doubled", run_ours([copies])


def _in_words(arm: Mapping[str, Any]) -> str:
    seconds = ", ".join(f"{one:.2f}" for one in arm["seconds"])
    return f"{arm['warm_seconds']:.2f} s, of {seconds}" if "warm_seconds" in arm else f"cold, {seconds} s"


def _contract(table: str, name: str) -> Path:
    path = FOLDER / f"{name}.yaml"
    path.write_text(json.dumps(contract_document(table, name)))
    return path


def contract_document(table: str, name: str) -> dict[str, Any]:
    """The benchmark's contract on one of its tables."""
    return {
        "contract": name,
        "version": 1,
        "owner": "bench",
        "direction": "topic_to_ledger",
        "schedule": "0 * * * *",
        "start_date": "2026-01-01T00:00:00Z",
        "kafka": {"connection": KAFKA},
        "legs": {"payment": TOPIC},
        "ledger": {"connection": LEDGER, "table": table, "slice_by": "written_xid"},
        "partner_grace_seconds": 0,
    }


@contextmanager
def environment(stack: LabStack) -> Iterator[None]:
    """What a task of ours finds in its environment, for the programs that are started from here."""
    given = {
        "TALLYSTICK_STORE_DSN": stack.store_dsn,
        environment_variable(KAFKA): json.dumps({"bootstrap.servers": stack.bootstrap_servers}),
        environment_variable(LEDGER): stack.ledger_reader_dsn,
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
