"""The main job, shown: one workload, three delivery modes, the same faults, and what a reconciler finds of them.

    python -m lab.demo.main --seed 1
    python -m lab.demo.main --follow

Starts a real broker and ledger, begins the books, and breaks real services while Airflow and its Spark server start;
lets the scheduler reconcile each mode once its traffic has ended, says each verdict as it comes, has a person's
approval given over Airflow's REST API for what can be repaired, and compares every finding with the lab's own truth.
With --follow you are that person: it says where the page, the report and the plan are, waits until you approve it in
Airflow's own page, shows the window that verifies the repair, and stays up until you press Enter.
Exits 1 when anything differs. Figures: build/demo.json. Everything stops at the end; reports stay under build/demo/.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.demo.demo_contracts import KINDS, contract_name, every_contract, write_contracts
from lab.demo.demo_table import show
from lab.product.command_line import CommandLine
from lab.rounds.delivery_mode_round import Round, prepare, run_traffic
from lab.servers.airflow import AirflowStack, start_airflow_beside
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.alert_receiver import Pager, start_pager
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack, start_stack
from lab.services.delivery_mode import DeliveryMode
from lab.soak.long_run import measured_on
from lab.truth.console_consumer import read_topic
from lab.truth.stored_verdicts import Found, StoredRun, expected, open_items, read_runs
from lab.truth.truth import Fault, Truth

FOLDER = REPOSITORY / "build" / "demo"
FIGURES = REPOSITORY / "build" / "demo.json"
_EXACTLY_ONCE = DeliveryMode.EXACTLY_ONCE
_REPAIRED = (DeliveryMode.AT_MOST_ONCE, "payouts")
_PATIENCE_SECONDS = 300
_ANSWER_SECONDS_MAX = 3600  # for a person who reads first
_TASK_ENDED = ("success", "failed", "upstream_failed")


class DemoFailed(RuntimeError):
    """The demo cannot go on: a run stored no verdict."""


@dataclass
class Demo:
    """What the demo runs on, and what it has seen so far. starting: Airflow, which starts beside the first traffic."""

    stack: LabStack
    starting: Future[AirflowStack]
    pager: Pager
    seed: int
    follow: bool
    console: Console
    started: float
    truths: dict[DeliveryMode, Truth] = field(default_factory=dict)
    windows: dict[str, datetime] = field(default_factory=dict)
    runs: list[tuple[str, str]] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)

    @property
    def airflow(self) -> AirflowStack:
        """Airflow, waited for where it does not run yet. Raises AirflowDidNotStart."""
        return self.starting.result()

    def say(self, text: str) -> None:
        self.console.print(
            f"[dim]{time.monotonic() - self.started:6.1f} s[/dim]  {text}", highlight=False, soft_wrap=True
        )

    def say_address(self, started: Future[AirflowStack]) -> None:
        """Say where Airflow answers. One that did not start is told by whoever needs it."""
        if started.exception() is None:
            airflow = started.result()
            self.say(f"Airflow answers at {airflow.base_url} (log in as admin / {airflow.passwords['admin']})")

    def trigger(self, mode: DeliveryMode, kind: str) -> str:
        """Ask the scheduler for the window since the last one of this contract; returns the run's id."""
        name = contract_name(mode, kind)
        self.airflow.wait_dag(f"reconcile_{name}")
        start, self.windows[name] = self.windows[name], datetime.now(UTC)
        run_id = self.airflow.trigger(f"reconcile_{name}", interval=(start, self.windows[name]))
        self.runs.append((f"reconcile_{name}", run_id))
        return run_id

    def start_windows(self, mode: DeliveryMode) -> list[tuple[str, str]]:
        """Ask for one window of both contracts; returns once both cuts are fixed: what comes later is not in them."""
        asked = [(kind, self.trigger(mode, kind)) for kind in KINDS]
        for kind, run_id in asked:
            dag_id = f"reconcile_{contract_name(mode, kind)}"
            self.airflow.wait_task(dag_id, run_id, "cut", *_TASK_ENDED, deadline_seconds=_PATIENCE_SECONDS)
        return asked

    def wait_windows(self, mode: DeliveryMode, asked: list[tuple[str, str]]) -> list[StoredRun]:
        """The verdicts of both contracts, payments first."""
        return [self.wait_verdict(mode, kind, run_id) for kind, run_id in asked]

    def wait_verdict(self, mode: DeliveryMode, kind: str, run_id: str) -> StoredRun:
        """The verdict that the run stored: a run is judged by its row, never by Airflow's state alone."""
        name = contract_name(mode, kind)
        dag_id = f"reconcile_{name}"
        self.airflow.wait_task(dag_id, run_id, "reconcile", *_TASK_ENDED, deadline_seconds=_PATIENCE_SECONDS)
        stored = read_runs(self.stack.store_dsn, name)
        if not stored or stored[-1].scheduler_run_id != run_id:
            raise DemoFailed(f"{dag_id} {run_id} stored no verdict; its log ends:\n{self._log_tail(dag_id, run_id)}")
        self.say(f"{name}: window {stored[-1].cut_n} is [bold]{stored[-1].verdict}[/bold]{_why(stored[-1])}")
        return stored[-1]

    def expect(self, true: bool, claim: str) -> None:
        """Note a claim that does not hold; the demo goes on, so that all of them are seen."""
        if not true:
            self.differs.append(claim)
            self.say(f"[red]differs:[/red] {claim}")

    def pause(self, text: str) -> None:
        """Wait for Enter, where somebody is there to press it."""
        if sys.stdin.isatty():
            self.console.input(f"{text} ")

    def _log_tail(self, dag_id: str, run_id: str) -> str:
        states = self.airflow.task_states(dag_id, run_id)
        failed = next((task for task, state in states.items() if state == "failed"), "reconcile")
        return self.airflow.task_log(dag_id, run_id, failed)[-3000:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="which payments are made, and which of them are hit")
    parser.add_argument("--follow", action="store_true", help="approve the repair yourself, in Airflow's own page")
    arguments = parser.parse_args()
    console = Console()
    shutil.rmtree(FOLDER, ignore_errors=True)
    contracts = FOLDER / "contracts"
    write_contracts(contracts)
    started = time.monotonic()
    with ExitStack() as parts:
        console.print("Starting a broker, two databases and Airflow ...")
        stack = parts.enter_context(start_stack(FOLDER / "lab"))
        pager = parts.enter_context(start_pager(FOLDER / "pages.jsonl"))
        settings = AirflowSettings(
            home=FOLDER / "airflow",
            contracts=contracts,
            artifacts=FOLDER / "artifacts",
            webhook=pager.address,
            warm_spark=True,
            look_every_seconds=0.2,
        )
        settings.home.mkdir(parents=True)
        starting = parts.enter_context(start_airflow_beside(settings, stack))
        demo = Demo(stack, starting, pager, arguments.seed, arguments.follow, console, started)
        starting.add_done_callback(demo.say_address)
        run_demo(demo, begin_books(demo, contracts))
        figures = conclude(demo)
        show(console, figures, pages_file=FOLDER / "pages.jsonl", figures_file=FIGURES)
        if demo.follow:
            demo.pause("Look around; Enter stops everything.")
    console.print("Airflow, its databases and the broker are stopped; reports stay under build/demo/.")
    sys.exit(1 if figures["differs"] else 0)


def begin_books(demo: Demo, contracts: Path) -> dict[DeliveryMode, Round]:
    """Make topics and tables of each mode, and the baseline of each contract, by the command line: no Airflow yet."""
    with ThreadPoolExecutor(1) as pool:
        rounds = pool.submit(_prepare_rounds, demo.stack, demo.seed)
        command = CommandLine(
            addresses=demo.stack,
            folder=Path(demo.stack.folder),
            kafka="kafka_billing",
            ledgers={"ledger_billing": demo.stack.ledger_reader_dsn},
        )
        command.migrate_store()
        prepared = rounds.result()
    command.cut(sorted(contracts.glob("*.yaml")))
    begun = datetime.now(UTC)
    demo.windows |= {contract_name(mode, kind): begun for mode, kind in every_contract()}
    demo.say(f"{len(demo.windows)} contracts: their books begin")
    return prepared


def run_demo(demo: Demo, rounds: dict[DeliveryMode, Round]) -> None:
    """Traffic with faults in each mode, one after the other; verdicts beside that, as they come; one repair."""
    judging: dict[DeliveryMode, Future[list[StoredRun]]] = {}
    with ThreadPoolExecutor(len(rounds)) as beside:
        for mode, round_ in rounds.items():
            demo.say(f"[bold]{mode}[/bold]: traffic, and the faults")
            with run_traffic(round_, progress=lambda text: demo.say(f"  {text}")) as running:
                if mode is _EXACTLY_ONCE:
                    check_held(demo, demo.wait_windows(mode, demo.start_windows(mode)))
                demo.truths[mode] = running.release()
            demo.truths[mode].write(FOLDER / "truth" / f"{mode}.json")
            # Both cuts are fixed before the next mode's transactions are held: they would hold this ledger's horizon.
            judging[mode] = beside.submit(demo.wait_windows, mode, demo.start_windows(mode))
        for mode, verdicts in judging.items():
            check_found(demo, mode, verdicts.result())
    repair(demo)


def check_held(demo: Demo, runs: Iterable[StoredRun]) -> None:
    """While something is held, nothing is called missing, and nothing is called fine."""
    for run in runs:
        demo.expect(run.verdict == "INCONCLUSIVE", f"{run.contract}: {run.verdict} while held; expected INCONCLUSIVE")
        demo.expect(any(doubt.startswith("held_by") for doubt in run.doubts), f"{run.contract}: no doubt names a hold")


def check_found(demo: Demo, mode: DeliveryMode, runs: Iterable[StoredRun]) -> None:
    """Each planted fault under its class, and nothing else."""
    wanted_verdict = "MATCHED" if mode is _EXACTLY_ONCE else "BROKEN"
    for run, kind in zip(runs, KINDS, strict=True):
        truth = expected(one for one in demo.truths[mode].anomalies if one.contract == kind)
        found: Found = sum((one.found for one in read_runs(demo.stack.store_dsn, run.contract)), Counter())
        for (break_class, event), copies in sorted((truth - found).items()):
            demo.expect(False, f"{run.contract}: {break_class} of {event} was planted and not found ({copies})")
        for (break_class, event), copies in sorted((found - truth).items()):
            demo.expect(False, f"{run.contract}: {break_class} of {event} was found and not planted ({copies})")
        demo.expect(run.verdict == wanted_verdict, f"{run.contract}: {run.verdict}; expected {wanted_verdict}")


def repair(demo: Demo) -> None:
    """A person approves the plan over Airflow's REST API; the next window shows that the books agree."""
    mode, kind = _REPAIRED
    name = contract_name(mode, kind)
    dag_id = f"compensate_{name}"
    missing = [one for one in demo.truths[mode].anomalies if one.break_class.startswith("missing_in_topic")]
    run_id = demo.airflow.wait_run_where(dag_id, lambda _: True, what="the offered plan", deadline_seconds=60)[
        "dag_run_id"
    ]
    if demo.follow:
        state = let_a_person_approve(demo, name, dag_id, run_id)
    else:
        demo.say(f"{dag_id}: approver says yes to {len(missing)} payouts, over REST")
        demo.airflow.approve(dag_id, run_id)
        state = demo.airflow.wait_run(dag_id, run_id)
    demo.expect(state == "success", f"{dag_id} {run_id}: {state}; expected success")
    verified = demo.wait_verdict(mode, kind, verifying := demo.trigger(mode, kind))
    if demo.follow:
        demo.say(f"  the window that verifies it: {demo.airflow.base_url}/dags/reconcile_{name}/runs/{verifying}")
    still_broken = open_items(demo.stack.store_dsn, name, "broken")
    demo.expect(verified.verdict == "MATCHED", f"{name}: {verified.verdict} after the repair; expected MATCHED")
    demo.expect(still_broken == 0, f"{name}: {still_broken} breaks are open after the repair; expected 0")
    copies = Counter(json.loads(line)["event_id"] for line in read_topic(demo.stack, f"{mode}.payouts"))
    for anomaly in missing:
        got = copies[anomaly.event_id]
        demo.expect(got == 1, f"{mode}.payouts: a console consumer reads {anomaly.event_id} {got} times; expected once")
    if all(copies[anomaly.event_id] == 1 for anomaly in missing):
        demo.say(f"a console consumer reads each of the {len(missing)} republished payouts once")


def let_a_person_approve(demo: Demo, name: str, dag_id: str, run_id: str) -> str:
    """Say where everything is, and return how the run ended once somebody has answered it in Airflow's page."""
    demo.airflow.wait_task(dag_id, run_id, "approve", "awaiting_input")
    found_by, found_in = next(one for one in reversed(demo.runs) if one[0] == f"reconcile_{name}")
    demo.airflow.wait_run(found_by, found_in)
    (page,) = [page for page in demo.pager.pages() if page["details"]["contract"] == name][-1:]
    report = max((FOLDER / "artifacts" / "reports" / name).glob("*.html"), key=lambda path: int(path.stem))
    demo.say("[bold]It is 3 in the morning, and you are on call.[/bold]")
    demo.say(f"  1. the page    {page['summary']}")
    demo.say(f"  2. the report  {report.as_uri()}")
    demo.say(f"  3. the plan    {demo.airflow.base_url}/dags/{dag_id}/runs/{run_id}/tasks/approve/required_actions")
    demo.say(f"     log in as   approver / {demo.airflow.passwords['approver']}, read it, and choose Approve")
    return demo.airflow.wait_run(dag_id, run_id, deadline_seconds=_ANSWER_SECONDS_MAX)


def conclude(demo: Demo) -> dict[str, Any]:
    """Wait for reports and pages, compare what is the same for all modes, and write the figures."""
    demo.say("waiting for the last reports and pages")
    for dag_id, run_id in demo.runs:
        demo.airflow.wait_run(dag_id, run_id)
    modes = {str(mode): _mode_figures(demo, mode) for mode in DeliveryMode}
    _check_faults(demo)
    aborted = modes[str(_EXACTLY_ONCE)]["aborted_records"]
    demo.expect(aborted > 0, f"{_EXACTLY_ONCE}: the census shows no aborted record; expected some")
    figures = {
        "seed": demo.seed,
        "seconds": round(time.monotonic() - demo.started, 1),
        "differs": demo.differs,
        "modes": modes,
        "pages": len(demo.pager.pages()),
        **measured_on(),
    }
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    return figures


def _check_faults(demo: Demo) -> None:
    """A fault that several modes allow fired equally often in each, and at least once."""
    for fault in Fault:
        fired = {mode: truth.faults_fired[fault] for mode, truth in demo.truths.items() if fault in truth.faults_fired}
        equal = len(set(fired.values())) <= 1 and 0 not in fired.values()
        demo.expect(equal, f"{fault} fired {fired}; expected equally often, and at least once")


def _mode_figures(demo: Demo, mode: DeliveryMode) -> dict[str, Any]:
    by_contract = {
        contract_name(mode, kind): read_runs(demo.stack.store_dsn, contract_name(mode, kind)) for kind in KINDS
    }
    runs = [run for stored in by_contract.values() for run in stored]
    return {
        "faults_fired": demo.truths[mode].faults_fired,
        "planted": len(demo.truths[mode].anomalies),
        "lost": sum(run.count("missing") for run in runs),
        "doubled": sum(run.count("duplicate") for run in runs),
        "torn": sum(run.count("torn") for run in runs),
        "money_minor": dict(sum((run.money for run in runs), Counter())),
        "aborted_records": sum(run.aborted_records for run in runs),
        "verdicts": {
            name: [{"cut": run.cut_n, "verdict": run.verdict, "run_id": run.scheduler_run_id} for run in stored]
            for name, stored in by_contract.items()
        },
        "reports": [
            str(path.relative_to(REPOSITORY))
            for name in by_contract
            for path in sorted((FOLDER / "artifacts").rglob("*.html"))
            if name in path.parts and "data_docs" not in path.parts
        ],
    }


def _why(run: StoredRun) -> str:
    if run.breaks:
        return f", {len(run.breaks)} breaks"
    return f" ({', '.join(sorted(set(run.doubts)))})" if run.doubts else ""


def _prepare_rounds(stack: LabStack, seed: int) -> dict[DeliveryMode, Round]:
    return {mode: prepare(stack, mode, seed, namespace=str(mode)) for mode in DeliveryMode}


if __name__ == "__main__":
    main()
