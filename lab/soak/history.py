"""A year of daily windows: does a run cost more, the more windows lie behind it, with their rows and their log?

    python -m lab.soak.history --windows 365 --book payouts

Writes and judges window after window of one book, on a real broker and ledger, in one Spark session. Each holds two
hundred payments that agree and one whose partner comes a window late, so that every run breaks an item, looks it up in
all that the log retains, and clears the one before. Nothing is taken away meanwhile: neither rows, nor log, nor store.

Compares ten runs around the tenth with the last ten, step by step, and stores that as build/history.json. Exits 1 where
a window did not find what was planted in it.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from lab.faults.event_faults import Planted
from lab.product.command_line import CommandLine
from lab.product.spark_app import ENDS, STEPS, SparkApp
from lab.rounds.delivery_mode_round import prepare
from lab.rounds.round_contracts import payments_contract, payouts_contract, write_contract
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack, start_stack
from lab.services.delivery_mode import DeliveryMode
from lab.services.workload import Traffic, Workload
from lab.soak.late_partners import payout_late, posted_late
from lab.soak.long_run import LongRun, measured_on
from lab.truth.store_size import store_bytes
from lab.truth.stored_verdicts import read_runs

FOLDER = REPOSITORY / "build" / "history"
FIGURES = REPOSITORY / "build" / "history.json"
BOOKS: dict[str, tuple[str, Callable[..., dict[str, Any]], Callable[[Workload], Planted]]] = {
    "payouts": ("relay", payouts_contract, payout_late),
    "payments": ("billing", payments_contract, posted_late),
}
"""Book to its service, its contract and the fault of each of its windows."""
_PAYMENTS_A_WINDOW = 200
_COMPARED = 10

Say = Callable[[str], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=365, help="how many, at least 20 (default 365)")
    parser.add_argument(
        "--book", choices=sorted(BOOKS), default="payouts", help="payouts by written_xid, payments by xmin"
    )
    parser.add_argument("--seed", type=int, default=1, help="which payments are made (default 1)")
    options = parser.parse_args()
    if options.windows < 2 * _COMPARED:
        parser.error(f"argument --windows: got {options.windows}; expected {2 * _COMPARED} or more")
    run = LongRun()
    shutil.rmtree(FOLDER, ignore_errors=True)
    with start_stack(FOLDER / "stack") as stack:
        figures = _play(stack, options.book, seed=options.seed, windows=options.windows, say=run.say)
    figures["seconds"] = round(run.seconds, 1)
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    run.console.print(_table(figures))
    for claim in figures["differs"]:
        run.console.print(f"  [red]differs:[/red] {claim}", highlight=False)
    run.console.print(f"  figures  {FIGURES.relative_to(REPOSITORY)}", highlight=False)
    sys.exit(1 if figures["differs"] else 0)


def _play(stack: LabStack, book: str, *, seed: int, windows: int, say: Say) -> dict[str, Any]:
    service, new_contract, late_fault = BOOKS[book]
    name = f"history_{book}"
    prepare(stack, DeliveryMode.AT_LEAST_ONCE, seed, name)
    contract = write_contract(FOLDER / "contracts", new_contract(name, name))
    command_line = CommandLine(addresses=stack, folder=FOLDER / "stack")
    command_line.migrate_store()
    command_line.cut([contract])
    planted: Counter[tuple[int, str]] = Counter()
    took: list[dict[str, float]] = []
    sizes: list[int] = []
    with _spark_app(command_line) as session, Workload.open(stack, name, service, str(seed)) as desk:
        traffic, late = Traffic(desk), None
        for window in range(1, windows + 1):
            if late is not None:
                late()
            (traffic.payouts if book == "payouts" else traffic.payments)(_PAYMENTS_A_WINDOW)
            fault = late_fault(desk)
            late = fault.later
            planted.update((window, one.name) for one in fault.findings)
            took.append(_run(command_line, session, contract, window))
            sizes.append(store_bytes(stack.store_dsn))
            if window % _COMPARED == 0:
                say(f"window {window}: {median(one['run'] for one in took[-_COMPARED:]):.2f} s a run")
    found = Counter(
        {
            (run.cut_n, break_class): copies
            for run in read_runs(stack.store_dsn, name)
            for break_class, copies in _by_class(run.found).items()
        }
    )
    return {
        "book": book,
        "seed": seed,
        "windows": windows,
        "planted": planted.total(),
        "found": (planted & found).total(),
        "differs": [
            f"window {n}: {planted[n, one]} of {one} were planted, {found[n, one]} found"
            for n, one in sorted(planted.keys() | found.keys())
            if planted[n, one] != found[n, one]
        ],
        "events": windows * (_PAYMENTS_A_WINDOW + 1) * (1 if book == "payouts" else 2),
        "run_10": _medians(took[_COMPARED // 2 : _COMPARED // 2 + _COMPARED]),
        "run_last": _medians(took[-_COMPARED:]),
        "store_bytes_per_window_first": round((sizes[2 * _COMPARED - 1] - sizes[_COMPARED - 1]) / _COMPARED),
        "store_bytes_per_window": round((sizes[-1] - sizes[0]) / (windows - 1)),
        **measured_on(),
    }


@contextmanager
def _spark_app(command_line: CommandLine) -> Iterator[SparkApp]:
    app = SparkApp(command_line, "session")
    try:
        yield app
    finally:
        app.end()


def _run(command_line: CommandLine, session: SparkApp, contract: Path, n: int) -> dict[str, float]:
    """Cut and judge one window. Seconds of the cut, of the run from order to commit, and up to each of its steps."""
    began = time.monotonic()
    command_line.cut([contract])
    ordered = last = time.monotonic()
    took = {"cut": ordered - began}
    session.order(contract, n)
    while (step := session.wait_for({*STEPS, *ENDS})["step"]) not in ENDS:
        now = time.monotonic()
        took[step], last = now - last, now
    if step != "committed":
        raise RuntimeError(f"window {n}: {step}; expected committed\n{session.log_tail}")
    now = time.monotonic()
    return {**took, step: now - last, "run": now - ordered}


def _by_class(found: Counter[tuple[str, str]]) -> Counter[str]:
    classes: Counter[str] = Counter()
    for (break_class, _), copies in found.items():
        classes[break_class] += copies
    return classes


def _medians(took: Sequence[dict[str, float]]) -> dict[str, float]:
    return {step: round(median(one[step] for one in took), 3) for step in took[0]}


def _table(figures: dict[str, Any]) -> Table:
    first, last = figures["run_10"], figures["run_last"]
    table = Table(title=f"{figures['windows']} windows of {figures['book']}, median seconds ({figures['seconds']} s)")
    for heading in ("", f"runs around {_COMPARED}", f"last {_COMPARED}", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    for step in first:
        ratio = last[step] / first[step] if first[step] else 1.0
        table.add_row(step, f"{first[step]:.3f}", f"{last[step]:.3f}", f"{ratio:.2f}")
    table.add_section()
    table.add_row(
        "bytes of store a window",
        str(figures["store_bytes_per_window_first"]),
        str(figures["store_bytes_per_window"]),
        "",
    )
    table.add_row("planted, found", str(figures["planted"]), str(figures["found"]), "")
    return table


if __name__ == "__main__":
    main()
