"""The crash matrix of the compensating job: struck at every step, each effect must happen exactly once.

    python -m lab.crash.main
    python -m lab.crash.main --rounds 200 --seed 7
    python -m lab.crash.main --rounds 1 --seed 7.113     # round 113 of seed 7 alone

Real runs find events missing, doubled, not posted, and transactions hanging; then each round makes one plan of a few of
one kind, and its executor, a process of its own, is struck at one step of its protocol: killed, frozen while a second
one does the work, its broker, store or ledger killed, the answer to a request lost, its records refused, the log
expired; or while it lies dead one of its events is settled by a late original, by hand, by a write-off, or by another
contract. It is started again until it says that it has finished. Then another reader counts what was ever committed:
each event, reversal, posting or marker of the plan once, by the executor or by somebody else, never by both. Only where
a producer comes back and ends what hung, or a person has written a break off, is it right, and due, that nothing was
done and the executor says why.

Prints a line for each round, and stores the figures as build/crash.json, also every ten rounds. Exits 1 when an effect
stands twice, is lost without a word, or something else is told than what stands.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from lab.crash.books import find_all
from lab.crash.plan import plan_crashes
from lab.crash.run import CrashMatrix
from lab.crash.score import CRASH_COLUMNS, RoundEnd, crash_figures
from lab.product.command_line import CommandLine
from lab.servers.process import REPOSITORY
from lab.servers.stack import start_stack
from lab.soak.long_run import LongRun, measured_on
from lab.truth.score_table import shown

FOLDER = REPOSITORY / "build" / "crash"
_KEEP_EACH = 10
_RIGHT = ("events", "exactly_once", "refused_rightly", "refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="how many (default 200)")
    parser.add_argument(
        "--seed", type=_seed, default=(1, 1), help="draws them; 7.113: begin at its round 113 (default 1)"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="an ignored folder for data and logs")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"argument --rounds: got {options.rounds}; expected 1 or more")
    folder: Path = options.folder.resolve()
    run = LongRun()
    seed, first = options.seed
    rounds = plan_crashes(seed, options.rounds, first=first)
    figures_file = folder.with_suffix(".json")
    ends: list[RoundEnd] = []

    def keep(ends: Sequence[RoundEnd]) -> dict[str, Any]:
        figures = figures_of(ends, seed=seed, asked=len(rounds), seconds=run.seconds)
        figures_file.write_text(json.dumps(figures, indent=2) + "\n")
        return figures

    shutil.rmtree(folder / "books", ignore_errors=True)
    (folder / "books").mkdir(parents=True)
    with start_stack(folder / "stack") as stack:
        CommandLine(addresses=stack, folder=folder / "stack").migrate_store()
        run.say("broker and databases are up")
        books = find_all(stack, folder / "books", rounds, seed=seed)
        run.say(f"runs have found what there is to repair, of {len(books)} kinds")
        matrix = CrashMatrix(stack, books, folder / "books")
        for crash in rounds:
            ends.append(matrix.play(crash))
            _tell(ends, len(rounds), run.say)
            if len(ends) % _KEEP_EACH == 0:
                keep(ends)
        figures = keep(matrix.count_again(ends))
    run.console.print(_table(figures))
    for claim in figures["differs"]:
        run.console.print(f"  [red]differs:[/red] {claim}", highlight=False, soft_wrap=True)
    run.console.print(f"  figures  {shown(figures_file)}", highlight=False)
    sys.exit(1 if figures["differs"] else 0)


def figures_of(ends: Sequence[RoundEnd], *, seed: int, asked: int, seconds: float) -> dict[str, Any]:
    """What build/crash.json holds. rounds: those that are over; CRASH_COLUMNS count events."""
    return {
        "seed": seed,
        "rounds_asked": asked,
        "rounds": len(ends),
        **crash_figures(ends),
        "seconds": round(seconds, 1),
        **measured_on(),
    }


def _tell(ends: Sequence[RoundEnd], asked: int, say: Any) -> None:
    end = ends[-1]
    counted = ", ".join(
        f"{count} {column.replace('_', ' ')}" for column, count in end.counts.items() if column != "events"
    )
    mean = sum(each.seconds for each in ends) / len(ends)
    left = f"{mean:.1f} s a round, {mean * (asked - len(ends)) / 60:.0f} min left"
    cell = f"{end.kind}, {end.step}, {end.fault}"
    say(f"{len(ends)}/{asked}  round {end.name}  {cell}: {counted}; {end.starts} starts, {end.seconds} s; {left}")
    for claim in end.differs:
        say(f"  [red]differs:[/red] {claim}")


def _table(figures: dict[str, Any]) -> Table:
    table = Table(title=f"{figures['rounds']} rounds, seed {figures['seed']} ({figures['seconds']} s)")
    table.add_column("kind, step or fault", no_wrap=True)
    for heading in ("rounds", *_RIGHT, "wrong"):
        table.add_column(heading.replace("_", " "), justify="right")
    for group in ("by_kind", "by_step", "by_fault"):
        for name, counts in figures[group].items():
            table.add_row(name, *_cells(counts))
        table.add_section()
    table.add_row("all", *_cells(figures))
    return table


def _cells(counts: dict[str, Any]) -> tuple[str, ...]:
    """wrong: all that must be 0, in one column, so that a terminal of 80 columns shows the table whole."""
    wrong = sum(counts[column] for column in CRASH_COLUMNS if column not in _RIGHT)
    return tuple(str(count) for count in (counts["rounds"], *(counts[column] for column in _RIGHT), wrong))


def _seed(text: str) -> tuple[int, int]:
    """The seed, and the number of its first round."""
    seed, _, first = text.partition(".")
    return int(seed), int(first or 1)


if __name__ == "__main__":
    main()
