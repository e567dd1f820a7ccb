"""Faults that nobody planted: old Kafkas make them, and each must be found under its own class.

    python -m lab.natural.main
    python -m lab.natural.main --only late_record

Needs the jars of requirements/old_jars.lock (setup/old_jars.py). Prints a table and stores it as build/natural.json;
exits 1 when a fault did not happen, or was called otherwise than it is.
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from lab.natural.late_record import LATE_RECORD
from lab.natural.natural_fault import Happened, NaturalBook, NaturalFault
from lab.natural.partial_cleaning import BROKER_SETTINGS, PARTIAL_CLEANING
from lab.natural.reused_buffer import REUSED_BUFFER
from lab.natural.tiered_aborts import TIERED_ABORTS, tiered_settings
from lab.natural.two_coordinators import TWO_COORDINATORS
from lab.product.command_line import CommandLine
from lab.rounds.delivery_mode_round import prepare
from lab.rounds.mixed_round import LEGAL_NOTICES
from lab.rounds.round_contracts import write_contract
from lab.servers.broker import DEFAULT_JARS
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack, start_stack
from lab.services.delivery_mode import DeliveryMode
from lab.soak.long_run import LongRun, measured_on
from lab.truth.score import score
from lab.truth.score_table import shown
from lab.truth.stored_findings import read_contract

FOLDER = REPOSITORY / "build" / "natural"
OLD_JARS = REPOSITORY / ".jars" / "old"


@dataclass(frozen=True, kw_only=True)
class World:
    """One stack, and the faults that happen in it. jars: of its brokers; client_jars: of the producers.

    settings: of its brokers, given a folder and their jars.
    """

    name: str
    faults: tuple[NaturalFault, ...]
    jars: Path
    client_jars: Path
    brokers: int = 1
    settings: Callable[[Path, Path], Mapping[str, str]] = lambda folder, jars: {}


KAFKA_3_1, KAFKA_3_9 = OLD_JARS / "kafka_3_1", OLD_JARS / "kafka_3_9"
WORLDS = (
    World(
        name="kafka_3_9",
        faults=(LATE_RECORD, TIERED_ABORTS, TWO_COORDINATORS),
        jars=KAFKA_3_9,
        client_jars=KAFKA_3_9,
        settings=tiered_settings,
    ),
    World(
        name="kafka_3_1",
        faults=(PARTIAL_CLEANING,),
        jars=KAFKA_3_1,
        client_jars=KAFKA_3_1,
        settings=lambda folder, jars: BROKER_SETTINGS,
    ),
    World(name="three_brokers", faults=(REUSED_BUFFER,), jars=DEFAULT_JARS, client_jars=KAFKA_3_9, brokers=3),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the payments; the faults are always the same")
    parser.add_argument("--only", nargs="+", default=(), help="names of faults")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="an ignored folder for data and logs")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run = LongRun()
    rows: list[dict[str, Any]] = []
    for world in WORLDS:
        faults = [fault for fault in world.faults if not options.only or fault.name in options.only]
        if faults:
            rows += _play(world, faults, folder / world.name, options.seed, run)
    figures = {"seed": options.seed, "faults": rows, "seconds": round(run.seconds, 1), **measured_on()}
    figures_file = folder.with_suffix(".json")
    figures_file.write_text(json.dumps(figures, indent=2) + "\n")
    run.console.print(_table(rows))
    run.console.print(f"  figures  {shown(figures_file)}", highlight=False)
    sys.exit(0 if rows and all(row["agrees"] for row in rows) else 1)


def _play(world: World, faults: Sequence[NaturalFault], folder: Path, seed: int, run: LongRun) -> list[dict[str, Any]]:
    """Let the faults happen in a stack of their own, one after the other, and have all of them judged at once."""
    run.say(f"{world.name}: starting")
    settings = world.settings(folder / "tier", world.jars)
    with start_stack(folder, jars=world.jars, brokers=world.brokers, broker_settings=settings) as stack:
        command_line = CommandLine(addresses=stack, folder=folder)
        command_line.migrate_store()
        books = [_book(world, stack, fault, folder, seed) for fault in faults]
        contracts = [
            write_contract(folder / "contracts", fault.contract(book.name))
            for fault, book in zip(faults, books, strict=True)
        ]
        command_line.reconcile(contracts)
        happened: list[Happened] = []
        seconds: list[float] = []
        for fault, book in zip(faults, books, strict=True):
            started = time.monotonic()
            happened.append(fault.happen(book))
            seconds.append(time.monotonic() - started)
            run.say(f"{fault.name}: {happened[-1].on_the_log}")
        command_line.reconcile(contracts)
        return [
            _row(fault, one, stack.store_dsn, book.name, took)
            for fault, book, one, took in zip(faults, books, happened, seconds, strict=True)
        ]


def _book(world: World, stack: LabStack, fault: NaturalFault, folder: Path, seed: int) -> NaturalBook:
    prepare(stack, DeliveryMode.AT_LEAST_ONCE, seed, fault.name)
    return NaturalBook(
        stack=stack,
        name=fault.name,
        dice=random.Random(f"{fault.name}:{seed}"),
        jars=world.client_jars,
        folder=folder,
    )


def _row(fault: NaturalFault, happened: Happened, store_dsn: str, contract: str, seconds: float) -> dict[str, Any]:
    """What build/natural.json says of one fault: what was due, and what was said."""
    stored = read_contract(store_dsn, contract)
    found = [one for one in stored.findings if one.name not in LEGAL_NOTICES]
    scored = score(happened.due, found, allowed=[(contract, name) for name in fault.allowed])
    return {
        "fault": fault.name,
        "issue": fault.issue,
        "made_with": fault.made_with,
        "on_the_log": happened.on_the_log,
        "due": _names(happened.due),
        "found": _names(found),
        "verdicts": list(stored.verdicts),
        "unseen": fault.unseen,
        "agrees": not scored.differs,
        "differs": list(scored.differs),
        "seconds": round(seconds, 1),
    }


def _names(findings: Sequence[Any]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for one in findings:
        counted[one.name] = counted.get(one.name, 0) + one.copies
    return dict(sorted(counted.items()))


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="Faults that nobody planted")
    for heading in ("fault", "made with", "on the log", "said", "right"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        said = "\n".join(f"{name} {copies}" for name, copies in row["found"].items()) or "nothing"
        table.add_row(row["issue"], row["made_with"], row["on_the_log"], said, "yes" if row["agrees"] else "no")
    return table


if __name__ == "__main__":
    main()
