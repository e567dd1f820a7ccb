"""The soak: windows of live traffic with faults, while runs and servers are killed, and the sum must equal the truth.

    python -m lab.soak.main
    python -m lab.soak.main --windows 200 --seed 7

Two books are written without a pause while windows of them are cut and judged in turn, in one long-lived Spark
session. One run in ten is a process of its own, killed at a step it announces; broker, ledger and store are killed and
restarted; two runs and two cuts meet; stored cuts are read again and cleared in random order. In the end each fault
must have been reported once, in its own window, each late partner have cleared its item once, and each offset and row
be counted once.

Prints a line for each window and the score at the end, and stores it as build/soak.json, also every ten windows; exits
1 when anything differs from the truth. A seed draws the same faults, kills and rereads again.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from lab.product.command_line import CommandLine
from lab.servers.process import REPOSITORY
from lab.servers.stack import start_stack
from lab.soak.long_run import LongRun, measured_on
from lab.soak.soak_run import SoakResult, run_soak
from lab.soak.soak_score import SOAK_COLUMNS
from lab.truth.score_table import score_table, shown

FOLDER = REPOSITORY / "build" / "soak"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=200, help="in all; two books take turns (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="draws faults, kills and rereads (default 1)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="an ignored folder for data, logs and the truth")
    options = parser.parse_args()
    if options.windows < 1:
        parser.error(f"argument --windows: got {options.windows}; expected 1 or more")
    folder: Path = options.folder.resolve()
    run = LongRun()
    figures_file = folder.with_suffix(".json")

    def keep(result: SoakResult) -> None:
        figures = figures_of(result, asked=options.windows, seconds=run.seconds)
        figures_file.write_text(json.dumps(figures, indent=2) + "\n")
        run.say(f"[bold]so far[/bold]: {', '.join(f'{name} {figures[name]}' for name in SOAK_COLUMNS)}")

    shutil.rmtree(folder / "books", ignore_errors=True)
    with start_stack(folder / "stack") as stack:
        CommandLine(addresses=stack, folder=folder / "stack").migrate_store()
        run.say("broker and databases are up")
        books = folder / "books"
        result = run_soak(stack, seed=options.seed, windows=options.windows, folder=books, say=run.say, keep=keep)
    keep(result)
    figures = json.loads(figures_file.read_text())
    run.console.print(_table(figures))
    for claim in figures["differs"]:
        run.console.print(f"  [red]differs:[/red] {claim}", highlight=False, soft_wrap=True)
    run.console.print(f"  truth    {shown(books / 'truth.json')}", highlight=False)
    run.console.print(f"  figures  {shown(figures_file)}", highlight=False)
    sys.exit(1 if figures["differs"] else 0)


def figures_of(result: SoakResult, *, asked: int, seconds: float) -> dict[str, Any]:
    """What build/soak.json holds. windows: those that are over; kills: of runs and of servers."""
    windows = len(result.seconds)
    done = result.done
    return {
        "seed": result.seed,
        "windows_asked": asked,
        "windows": windows,
        "kills": sum(count for name, count in done.items() if name.endswith("killed")),
        "restarts": sum(count for name, count in done.items() if name.endswith("restarted")),
        "offsets": result.offsets,
        "records": result.records,
        "rows": result.rows,
        **{name: getattr(result.score, name) for name in SOAK_COLUMNS},
        "cleared": result.cleared,
        "verdicts": dict(sorted(result.verdicts.items())),
        "done": dict(sorted(done.items())),
        "classes": {name: dict(counts) for name, counts in result.score.by_class.items()},
        "differs": list(result.score.differs),
        "seconds": round(seconds, 1),
        "seconds_per_window_first_ten": _mean(result.seconds[:10]),
        "seconds_per_window_last_ten": _mean(result.seconds[-10:]),
        "store_bytes_per_window": round(result.store_bytes / windows),
        **measured_on(),
    }


def _mean(seconds: tuple[float, ...]) -> float:
    return round(sum(seconds) / len(seconds), 2)


def _table(figures: dict[str, Any]) -> Table:
    title = f"{figures['windows']} windows, seed {figures['seed']} ({figures['seconds']} s)"
    table = score_table(title, figures, columns=SOAK_COLUMNS)
    for name in ("kills", "restarts", "offsets", "records", "rows", "cleared"):
        table.add_row(name, str(figures[name]))
    for name, count in figures["done"].items():
        table.add_row(name, str(count))
    return table


if __name__ == "__main__":
    main()
