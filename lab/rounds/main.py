"""The fault lab: real faults, mixed by seed, planted where the reconciler must find each under its own name.

    python -m lab.rounds.main
    python -m lab.rounds.main --seeds 1-20
    python -m lab.rounds.main --security scram
    python -m lab.rounds.main --format avro --dag
    python -m lab.rounds.main --ledger iceberg --dag

One stack for all seeds, and after it one of three brokers for the seeds that draw a fault which needs them. Prints the
score and stores it as build/lab.json; exits 1 when anything differs from the truth.

With a security the reconciler comes in by a door of its own (lab/doors): accounts, TLS, and the rights that
`tallystick grants` prints. The score must be the same; and behind the same door an Airflow under FAB judges one more
book, and shows it only to whom it may (lab/rounds/fronted_book.py).

With a format the services write all events in it, beside a schema registry where it needs one. The score must be the
same, without the faults of a repair: none is made there. With a ledger the contracts read their rows from it
(lab/rounds/kept_ledger.py); only `kind: postgres` has a round on three brokers. With --dag the last
window on one broker is judged by the contracts' DAGs, in an Airflow of its own; without, by the command line as all
others.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from lab.doors.door import Door, Security, open_door
from lab.product.command_line import CommandLine
from lab.rounds.fronted_book import Fronted, judge_in_front
from lab.rounds.kept_ledger import LedgerKind, kept_ledger
from lab.rounds.mixed_round import RoundResult, draw_cluster_faults, run_cluster_round, run_round
from lab.rounds.written_events import written_events
from lab.servers.kafka_cluster import BROKERS_MAX
from lab.servers.process import REPOSITORY
from lab.servers.stack import start_stack
from lab.services.event_format import EventFormat
from lab.soak.long_run import LongRun, measured_on
from lab.truth.score import COLUMNS, Counts, Score
from lab.truth.score_table import score_table, shown

FOLDER = REPOSITORY / "build" / "lab"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=_seeds, default=(1,), help="one seed, or a range such as 1-20")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="an ignored folder for data, logs and the truth")
    parser.add_argument(
        "--security", type=Security, choices=tuple(Security), help="how the reconciler logs in to Kafka"
    )
    parser.add_argument(
        "--format",
        type=EventFormat,
        choices=tuple(EventFormat),
        default=EventFormat.JSON,
        help="how the services write events",
    )
    parser.add_argument(
        "--ledger",
        type=LedgerKind,
        choices=tuple(LedgerKind),
        default=LedgerKind.POSTGRES,
        help="where the contracts find their rows",
    )
    parser.add_argument("--dag", action="store_true", help="have Airflow judge the last window of each contract")
    options = parser.parse_args()
    if options.security and options.ledger is not LedgerKind.POSTGRES:
        parser.error("--security: expected no --ledger beside it, whose connections are plain")
    folder: Path = options.folder.resolve()
    run = LongRun()
    rounds: list[RoundResult] = []
    fronted: list[Fronted] = []
    figures_file = folder.with_suffix(".json")

    def keep(result: RoundResult) -> None:
        """Tell and store each round as it ends: a later one may fail."""
        rounds.append(result)
        store()
        _tell(result, run.say)

    def store() -> None:
        figures = figures_of(rounds, asked=options.seeds, seconds=run.seconds, security=options.security)
        figures |= {"format": str(options.format), "ledger": str(options.ledger), "last_window_by_dag": options.dag}
        behind = {name: value for each in fronted for name, value in asdict(each).items()}
        figures |= {"behind_fab": behind} if fronted else {}
        figures["differs"] += [claim for each in fronted for claim in each.differs]
        figures_file.write_text(json.dumps(figures, indent=2) + "\n")

    shutil.rmtree(folder / "rounds", ignore_errors=True)
    with (
        written_events(options.format, folder / "registry"),
        _door(options.security, folder, 1) as door,
        start_stack(folder / "stack", door=door, ledger_version=options.ledger.postgres_version) as stack,
        kept_ledger(options.ledger, folder / "ledger", stack) as ledger,
    ):
        CommandLine(addresses=stack, folder=folder / "stack", door=door).migrate_store()
        run.say("broker and databases are up")
        for seed in options.seeds:
            round_folder = folder / "rounds" / str(seed)
            keep(run_round(stack, seed, round_folder, run.say, by_dag=options.dag, ledger=ledger))
        if door is not None:
            fronted.append(judge_in_front(stack, folder / "rounds" / "fronted", run.say))
            store()
            _tell_fronted(fronted[-1], run.say)
    drawn = [seed for seed in options.seeds if options.ledger.is_primary and draw_cluster_faults(seed).log_faults]
    if drawn:
        with (
            written_events(options.format, folder / "registry"),
            _door(options.security, folder, BROKERS_MAX) as door,
            start_stack(
                folder / "cluster", brokers=BROKERS_MAX, door=door, ledger_version=options.ledger.postgres_version
            ) as stack,
        ):
            CommandLine(addresses=stack, folder=folder / "cluster", door=door).migrate_store()
            run.say("three brokers and databases are up")
            for seed in drawn:
                keep(run_cluster_round(stack, seed, folder / "rounds" / f"{seed}-cluster", run.say))
    figures = json.loads(figures_file.read_text())
    run.console.print(_table(figures))
    for truth in sorted((folder / "rounds").glob("*/truth.json")):
        run.console.print(f"  truth    {shown(truth)}", highlight=False)
    run.console.print(f"  figures  {shown(figures_file)}", highlight=False)
    sys.exit(1 if figures["differs"] else 0)


def _door(security: Security | None, folder: Path, brokers: int) -> AbstractContextManager[Door | None]:
    return open_door(security, folder / "door", brokers=brokers) if security else nullcontext()


def figures_of(
    rounds: Sequence[RoundResult], *, asked: Sequence[int], seconds: float, security: Security | None = None
) -> dict[str, Any]:
    """What build/lab.json holds: all seeds together, by class, and round by round."""
    total = sum((each.score for each in rounds), Score())
    return {
        "seeds_asked": list(asked),
        "security": security or "plain",
        "seeds": sorted({each.seed for each in rounds}),
        **_counts(total.total),
        "classes": {name: _counts(counts) for name, counts in total.by_class.items()},
        "clean": {name: list(verdicts) for each in rounds for name, verdicts in each.clean.items()},
        "differs": list(total.differs),
        "rounds": [
            {"seed": each.seed, "brokers": each.brokers, **_counts(each.score.total), "seconds": each.seconds}
            for each in rounds
        ],
        "seconds": round(seconds, 1),
        **measured_on(),
    }


def _counts(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in COLUMNS}


def _tell(result: RoundResult, say: Any) -> None:
    total = result.score.total
    counted = ", ".join(f"{name} {getattr(total, name)}" for name in COLUMNS)
    say(f"[bold]seed {result.seed}[/bold]: {counted} ({result.seconds} s)")
    for claim in result.score.differs:
        say(f"  [red]differs:[/red] {claim}")


def _tell_fronted(result: Fronted, say: Any) -> None:
    verdicts, shown_to = ", ".join(result.verdicts), ", ".join(result.shown_to)
    say(f"[bold]behind FAB[/bold]: {verdicts}; its page is shown to {shown_to} ({result.seconds} s)")
    for claim in result.differs:
        say(f"  [red]differs:[/red] {claim}")


def _table(figures: dict[str, Any]) -> Table:
    seeds = ", ".join(str(seed) for seed in figures["seeds"])
    title = f"Planted and found, seed {seeds} ({figures['seconds']} s)"
    return score_table(title, figures, columns=COLUMNS)


def _seeds(text: str) -> tuple[int, ...]:
    first, _, last = text.partition("-")
    seeds = tuple(range(int(first), int(last or first) + 1))
    if not seeds or seeds[0] < 0:
        raise argparse.ArgumentTypeError(f"expected a seed such as 7, or a range such as 1-20, got {text!r}")
    return seeds


if __name__ == "__main__":
    main()
