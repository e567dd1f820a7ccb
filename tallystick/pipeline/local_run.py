"""Reconciliations without Airflow: settle, cut, reconcile in one Spark session, deliver alerts, hold against the
contract's own expectations, write the reports.

The same parts in the same order as the DAG; who looks on is told by an observer. The clock and the waiting are given.
"""

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine

from tallystick.alerting.alert import OWN_EXPECTATIONS
from tallystick.connections.connections import Connections, runbook_links
from tallystick.contract.contract import Contract
from tallystick.host.artifacts import ArtifactsUnreachable, ObjectPlace, Place, send
from tallystick.model.cut import Cut
from tallystick.model.errors import TallystickError
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import ExitCode
from tallystick.pipeline.make_cut import resolve_cut
from tallystick.pipeline.own_expectations import are_due, evaluate_apart
from tallystick.pipeline.sources import observe
from tallystick.spark.client_ahead import ClientAhead
from tallystick.spark.spark_job import REMOTE_VARIABLE, Observer, SparkAppFailed, run_job, submit_argv
from tallystick.store.clock import StoreClock
from tallystick.store.runs.contract_store import read_contract
from tallystick.store.runs.cut_store import last_cut, open_cut
from tallystick.store.runs.run_store import read_run
from tallystick.text.expectation_words import outcome_text

Judged = Callable[[StoredRun, Place], None]
"""(run, its report) -> None; called once for each verdict that is stored."""

_LOOK_AGAIN = timedelta(seconds=1)


class RunNotJudged(TallystickError):
    """There is no verdict for this cut."""


class RereadDiffers(TallystickError):
    """The same cut was read again and gave another digest."""

    exit_code = ExitCode.INCONCLUSIVE


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """The parts that one run needs. clock: the verdict store's, and how far this host's is off; sleep: the waiting.

    folder: of this machine, for logs while they are written.
    """

    contract: Contract
    contract_file: Path
    engine: Engine
    connections: Connections
    artifacts: Place
    folder: Path
    environment: Mapping[str, str]
    clock: Callable[[], StoreClock]
    sleep: Callable[[float], None]
    on_progress: Observer

    def now(self) -> datetime:
        return self.clock().now_utc


def reconcile_now(
    contracts: Sequence[LocalRun], *, settle: bool, judged: Judged, ahead: ClientAhead | None = None
) -> None:
    """Reconcile all since the last cuts, up to now; tell of each run and its report once its verdict is stored.

    The window begins where the newest cut's window ended; a contract without cuts gets its baseline. A cut that an
    earlier run left without a verdict is judged first, and told like any other. Where something fails, the verdicts
    stored until then have been told. ahead: a client that waits for its cuts.
    Raises SparkAppFailed, RunNotJudged.
    """
    for local in contracts:
        unfinished = _finish_earlier(local, ahead)
        if unfinished is not None:
            judged(unfinished, _tell_people(local, unfinished))
    cuts = [(local, fix_cut(local, settle=settle)) for local in contracts]
    try:
        _judge(cuts, ahead)
    except SparkAppFailed:
        _tell_of_judged(cuts, judged)
        raise
    _tell_of_judged(cuts, judged)
    for local, cut in cuts:
        stored_run(local.engine, cut.contract, cut.n)


def fix_cut(local: LocalRun, *, settle: bool) -> Cut:
    """Settle and store the cut of the window that ends now. Raises CutAlreadyOpen."""
    window_end = local.now()
    previous = last_cut(local.engine, local.contract.name)
    if settle:
        _settle(local, window_end)
    clock = local.clock()
    cut = resolve_cut(
        local.engine,
        local.contract,
        local.connections,
        window_start_utc=min(previous.window_end_utc if previous else local.contract.start_date, window_end),
        window_end_utc=window_end,
        now_utc=clock.now_utc,
        scheduler_run_id=f"cli__{window_end.isoformat()}",
        host_ahead=clock.host_ahead,
    )
    local.on_progress("cut", {"cut": cut.n, "contract": cut.contract})
    return cut


def reread(local: LocalRun, n: int) -> tuple[StoredRun, Place]:
    """Read a judged cut again. Stores nothing. Raises RunNotJudged, RereadDiffers."""
    run = stored_run(local.engine, local.contract.name, n)
    same: list[bool] = []

    def listen(step: str, figures: Mapping[str, object]) -> None:
        if step == "reread":
            same.append(bool(figures["same"]))
        local.on_progress(step, figures)

    if run.cut.is_baseline:
        return run, _report(local, run)
    argv = submit_argv([(local.contract_file, n)], reread=True, environment=local.environment)
    try:
        with _kept_log(local, n) as log:
            run_job(argv, log=log, environment=local.environment, observe=listen)
    finally:
        if same == [False]:
            raise RereadDiffers(
                f"{local.contract.name}/{n}: read again, the cut has another digest than the stored one: "
                "the log or the ledger is not what it was"
            )
    return run, _report(local, run)


def stored_run(engine: Engine, contract_name: str, n: int) -> StoredRun:
    """The committed run of cut n. Raises RunNotJudged."""
    run = read_run(engine, contract_name, n)
    if run is None:
        raise RunNotJudged(
            f"{contract_name}/{n}: no verdict is stored; see: tallystick runs --contract {contract_name}"
        )
    return run


def report_of(engine: Engine, run: StoredRun, artifacts: Place) -> Place:
    """Write the report of a run under the contract its cut was made with. Raises ArtifactsUnreachable."""
    from tallystick.report.write_report import write_report  # a verdict does not wait for what draws it

    contract = read_contract(engine, run.result.contract, run.result.cut_n)
    assert contract is not None  # a cut refers to its contract by a foreign key
    return write_report(run, contract, artifacts)


def _finish_earlier(local: LocalRun, ahead: ClientAhead | None) -> StoredRun | None:
    """Judge the unfinished cut of a run that was stopped between its cut and its verdict."""
    unfinished = open_cut(local.engine, local.contract.name)
    if unfinished is None or unfinished.is_baseline:
        return None
    local.on_progress("unfinished_cut", {"cut": unfinished.n})
    _judge([(local, unfinished)], ahead)
    return stored_run(local.engine, unfinished.contract, unfinished.n)


def _settle(local: LocalRun, window_end: datetime) -> None:
    """Look until both sides have settled, or until the contract's settle_timeout is over."""
    give_up = window_end + local.contract.settle_timeout
    while True:
        now = local.now()
        readiness = observe(local.engine, local.contract, local.connections, window_end_utc=window_end, now_utc=now)
        if readiness.settled or now >= give_up:
            local.on_progress("settled" if readiness.settled else "not_settled", {"waits_for": readiness.waits_for})
            return
        local.on_progress("settling", {"waits_for": readiness.waits_for})
        local.sleep(_LOOK_AGAIN.total_seconds())


def _judge(cuts: Sequence[tuple[LocalRun, Cut]], ahead: ClientAhead | None) -> None:
    """Let Spark judge the cuts that have no verdict yet, in one session. Raises SparkAppFailed."""
    unjudged = [(local, cut) for local, cut in cuts if read_run(local.engine, cut.contract, cut.n) is None]
    if not unjudged:
        return
    local, cut = unjudged[0]
    server = local.environment.get(REMOTE_VARIABLE)
    local.on_progress("joining_spark" if server else "starting_spark", {})
    asked = [(one.contract_file, cut.n) for one, cut in unjudged]
    with ThreadPoolExecutor(1) as beside, _kept_log(local, cut.n) as log:
        beside.submit(_load_what_tells_people)
        if ahead is not None and ahead.is_free:
            ahead.judge(asked, log=log, observe=local.on_progress)
        else:
            argv = submit_argv(asked, reread=False, environment=local.environment)
            run_job(argv, log=log, environment=local.environment, observe=local.on_progress)


def _load_what_tells_people() -> None:
    """Import what alerts and reports need, while Spark reads. What fails here fails again where it is used."""
    importlib.import_module("tallystick.alerting.sinks.registry")
    importlib.import_module("tallystick.pipeline.deliver_alerts")
    importlib.import_module("tallystick.report.write_report").load_template()


@contextmanager
def _kept_log(local: LocalRun, n: int) -> Iterator[Path]:
    """Yield where the Spark app's log goes; it lies among the artifacts, however the app ends."""
    log = _log_path(local, n)
    try:
        yield log
    finally:
        _keep_log(local, log)


def _keep_log(local: LocalRun, log: Path) -> None:
    """Copy a log to where the artifacts lie, if that is not this machine. Where nobody answers, it stays here alone."""
    if isinstance(local.artifacts, ObjectPlace) and log.exists():
        with suppress(ArtifactsUnreachable):
            send(log, local.artifacts / str(log.relative_to(local.folder)))


def _tell_of_judged(cuts: Sequence[tuple[LocalRun, Cut]], judged: Judged) -> None:
    for local, cut in cuts:
        run = read_run(local.engine, cut.contract, cut.n)
        if run is not None:
            judged(run, _tell_people(local, run))


def _tell_people(local: LocalRun, run: StoredRun) -> Place:
    """Alerts, expectations and report. An alert that cannot be delivered stays owed and changes no verdict."""
    from tallystick.pipeline.missing_verdict_alert import resolve_silences

    resolve_silences(local.engine, local.contract, now_utc=local.now())
    _deliver(local)
    if are_due(local.contract, run):
        log = _log_path(local, run.result.cut_n).with_suffix(".expectations.log")
        outcome = evaluate_apart(
            local.engine,
            local.contract,
            run,
            contract_file=local.contract_file,
            log=log,
            environment=local.environment,
        )
        _keep_log(local, log)
        local.on_progress("expectations", {"outcome": outcome_text(outcome)})
        _deliver(local, only=OWN_EXPECTATIONS)
        run = replace(run, expectations=outcome)
    return _report(local, run)


def _deliver(local: LocalRun, *, only: Collection[str] | None = None) -> None:
    """only: names of the alerts to send; None sends all."""
    from tallystick.alerting.sinks.registry import sinks_from_environment
    from tallystick.pipeline.deliver_alerts import DeliveryFailed, deliver_pending  # nor for what sends it

    sinks = sinks_from_environment(local.contract, artifacts=local.artifacts, environment=local.environment)
    links = runbook_links(local.environment)
    try:
        deliver_pending(local.engine, local.contract.name, sinks, links=links, only=only)
    except DeliveryFailed as error:
        local.on_progress("alerts_owed", {"failures": str(error).splitlines()[1:]})


def _report(local: LocalRun, run: StoredRun) -> Place:
    """Write the report. Where nobody takes it, that is told, and the verdict is the same."""
    from tallystick.report.write_report import report_path

    try:
        place = report_of(local.engine, run, local.artifacts)
        local.on_progress("report", {"path": str(place)})
    except ArtifactsUnreachable as error:
        place = report_path(local.artifacts, run.result.contract, run.result.cut_n)
        local.on_progress("artifacts_owed", {"why": str(error)})
    return place


def _log_path(local: LocalRun, n: int) -> Path:
    return local.folder / "logs" / local.contract.name / f"{n}.log"
