"""An outage, and Airflow's own backfill after it: thirty windows must find what they would have found on time.

    python -m lab.soak.backfill --seed 1 --windows 30

Starts a real broker, ledger and Airflow, takes the baseline, and writes hours of traffic with a fault in each, while
nobody reconciles. Then `airflow backfill create` runs all the windows, and every fault must be found by the run of its
own window, once, under its class, and nothing else. Figures: build/backfill.json. Exits 1 when anything differs.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from lab.product.command_line import CommandLine
from lab.rounds.delivery_mode_round import prepare
from lab.rounds.round_contracts import payments_contract, write_contract
from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.process import REPOSITORY, wait_until
from lab.servers.stack import LabStack, start_stack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg
from lab.services.ledger import Ledger
from lab.services.workload import Workload, Writer
from lab.soak.long_run import LongRun, measured_on
from lab.truth.stored_verdicts import StoredRun, read_runs

FOLDER = REPOSITORY / "build" / "backfill"
FIGURES = REPOSITORY / "build" / "backfill.json"
BOOK = "outage"
_DAG = f"reconcile_{BOOK}"
_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
_SECONDS_A_WINDOW = 60

Found = Counter[tuple[int, str, str]]
"""(window, break class, event): copies."""


@dataclass
class Outage:
    """Hours of traffic with the timestamps that it would have had. truth: window by window, counted from 0."""

    desk: Workload
    begins: datetime
    truth: Found = field(default_factory=Counter)
    late: list[Event] = field(default_factory=list)  # the hour's last events, whose postings come in the next hour

    def write_hour(self, number: int) -> None:
        """Payments that agree, one whose postings come in the next hour, and one fault of each kind in turn."""
        hour = self.begins + number * _HOUR
        if number:
            self._post(self.late, at=hour + _MINUTE)
        for minute in range(1, 6):
            events = self._legs()
            self._publish(events, at=hour + minute * _MINUTE)
            self._post(events, at=hour + minute * _MINUTE)
        (self._lose, self._invent, self._double, self._mistake)[number % 4](number, hour + 30 * _MINUTE)
        self.late = self._legs()
        self._publish(self.late, at=hour + 58 * _MINUTE)

    def end(self) -> None:
        """The last hour's late postings."""
        self._post(self.late, at=datetime.now(UTC))

    def _lose(self, number: int, at: datetime) -> None:
        payment, invoice = self._legs()
        self._publish([payment, invoice], at=at)
        self._post([payment], at=at)
        self._planted(number, "missing_in_ledger", invoice)

    def _invent(self, number: int, at: datetime) -> None:
        payment, invoice = self._legs()
        self._publish([payment, invoice], at=at)
        self._post([payment, invoice], at=at)
        other = self.desk.payment().event(Leg.PAYMENT)
        self._post([other], at=at)
        self._planted(number, "phantom_in_ledger", other)

    def _double(self, number: int, at: datetime) -> None:
        events = self._legs()
        self._publish(events, at=at)
        self._publish(events[:1], at=at + _MINUTE)
        self._post(events, at=at)
        self._planted(number, "duplicate_in_topic_new_session", events[0])

    def _mistake(self, number: int, at: datetime) -> None:
        payment, invoice = self._legs()
        self._publish([payment, invoice], at=at)
        wrong = replace(payment.payment, amount_minor=payment.payment.amount_minor + 1)
        self._post([wrong.event(Leg.PAYMENT), invoice], at=at)
        self._planted(number, "amount_mismatch", payment)

    def _legs(self) -> list[Event]:
        payment = self.desk.payment()
        return [payment.event(leg) for leg in (Leg.PAYMENT, Leg.INVOICE)]

    def _publish(self, events: list[Event], *, at: datetime) -> None:
        """By a new process, outside transactions: a marker would carry today's timestamp."""
        writer: Writer = self.desk.idempotent()
        for event in events:
            writer.write(event, source=self.desk.source(), timestamp=int(at.timestamp() * 1000))

    def _post(self, events: list[Event], *, at: datetime) -> None:
        with self.desk.connection.transaction():
            for event in events:
                Ledger(self.desk.names).post(self.desk.connection, event, once=False, at=at)

    def _planted(self, number: int, break_class: str, event: Event) -> None:
        self.truth[number, break_class, str(event.event_id)] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="which payments are made")
    parser.add_argument("--windows", type=int, default=30, help="hours of the outage")
    options = parser.parse_args()
    run = LongRun()
    shutil.rmtree(FOLDER, ignore_errors=True)
    begins = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - (options.windows + 1) * _HOUR
    with start_stack(FOLDER / "stack") as stack, _airflow(stack) as airflow:
        run.say("broker, databases and Airflow are up")
        _backfill(airflow, begins - _HOUR, windows=1)
        baseline = _wait_judged(stack, 1, run.say)
        _backdate(stack, begins)
        truth = _write_outage(stack, begins, seed=options.seed, windows=options.windows)
        run.say(f"{options.windows} hours of traffic are written, with {sum(truth.values())} faults; nobody has looked")
        asked = time.monotonic()
        _backfill(airflow, begins, windows=options.windows)
        runs = _wait_judged(stack, options.windows + 1, run.say, told=baseline)[1:]
        figures = _figures(runs, truth, seed=options.seed, seconds=time.monotonic() - asked)
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    _show(run.console, figures)
    sys.exit(1 if figures["differs"] else 0)


def _airflow(stack: LabStack) -> Any:
    """Its schedule begins tomorrow, so that nothing but the backfill makes a run."""
    prepare(stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=BOOK)
    CommandLine(addresses=stack, folder=FOLDER / "stack").migrate_store()
    contract = payments_contract(BOOK, BOOK)
    contract["kafka"] = {"connection": "kafka_billing"}  # as the lab's Airflow names them
    contract["ledger"] |= {"connection": "ledger_billing", "columns": {"written_at": "posted_at"}}
    contract |= {"schedule": "0 * * * *", "partner_grace_cap_seconds": 0}
    contract["start_date"] = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    write_contract(FOLDER / "contracts", contract)
    settings = AirflowSettings(home=FOLDER / "airflow", contracts=FOLDER / "contracts", artifacts=FOLDER / "artifacts")
    settings.home.mkdir(parents=True)
    return start_airflow(settings, stack)


def _backfill(airflow: AirflowStack, begins: datetime, *, windows: int) -> None:
    """Airflow's own command. It takes the first moments of windows, both included."""
    airflow.wait_dag(_DAG)
    last = begins + (windows - 1) * _HOUR
    airflow.run_command(
        "backfill", "create", "--dag-id", _DAG, "--from-date", begins.isoformat(), "--to-date", last.isoformat(),
        "--max-active-runs", "1",
    )  # fmt: skip


def _backdate(stack: LabStack, begins: datetime) -> None:
    """Give the books the age that they would have: the last look at both sides was when the outage began."""
    with psycopg.connect(stack.store_owner_dsn) as connection:
        connection.execute("DELETE FROM tallystick.sample WHERE contract = %s", [BOOK])
        moved = "UPDATE tallystick.cut SET marked_at_utc = %s, now_utc = %s WHERE contract = %s"
        connection.execute(moved, [begins, begins, BOOK])


def _write_outage(stack: LabStack, begins: datetime, *, seed: int, windows: int) -> Found:
    with Workload.open(stack, BOOK, "billing", f"outage-{seed}") as desk:
        outage = Outage(desk, begins)
        for number in range(windows):
            outage.write_hour(number)
        outage.end()
        return outage.truth


def _wait_judged(stack: LabStack, count: int, say: Any, *, told: Sequence[StoredRun] = ()) -> list[StoredRun]:
    """All runs, once there are so many; each is told of as it comes."""
    seen = list(told)

    def judged() -> bool:
        runs = read_runs(stack.store_dsn, BOOK)
        for run in runs[len(seen) :]:
            say(f"window {run.cut_n} is [bold]{run.verdict}[/bold]")
        seen[:] = runs
        return len(runs) >= count

    wait_until(judged, what=f"{count} verdicts", deadline_seconds=120 + count * _SECONDS_A_WINDOW, every_seconds=1)
    return seen


def _figures(runs: list[StoredRun], truth: Found, *, seed: int, seconds: float) -> dict[str, Any]:
    """Cut n is that of window n - 1: the baseline has the hour before."""
    found: Found = Counter()
    for run in runs:
        for (break_class, event), copies in run.found.items():
            found[run.cut_n - 1, break_class, event] += copies
    lost, false = truth - found, found - truth
    return {
        "seed": seed,
        "windows": len(runs),
        "planted": sum(truth.values()),
        "found": sum((truth & found).values()),
        "lost": sum(lost.values()),
        "false": sum(false.values()),
        "differs": [
            *(f"window {n}: {name} of {event} was planted and not found there" for n, name, event in sorted(lost)),
            *(f"window {n}: {name} of {event} was found and not planted there" for n, name, event in sorted(false)),
        ],
        "classes": dict(sorted(Counter(name for _, name, _ in truth.elements()).items())),
        "verdicts": dict(Counter(run.verdict for run in runs)),
        "seconds": round(seconds, 1),
        "seconds_a_window": round(seconds / len(runs), 1),
        **measured_on(),
    }


def _show(console: Console, figures: dict[str, Any]) -> None:
    table = Table(title=f"{figures['windows']} windows backfilled by Airflow (seed {figures['seed']})")
    for name in ("planted", "found", "lost", "false", "seconds"):
        table.add_column(name, justify="right")
    table.add_row(*(str(figures[name]) for name in ("planted", "found", "lost", "false", "seconds")))
    console.print(table)
    for claim in figures["differs"]:
        console.print(f"  [red]differs:[/red] {claim}", highlight=False)
    console.print(f"  figures  {FIGURES.relative_to(REPOSITORY)}", highlight=False)


if __name__ == "__main__":
    main()
