"""The product in the world: a scheduler that settles, cuts, judges, tells people, and tries again when it is killed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.alerting.alert_json import SinkFailed
from tallystick.contract.contract import Contract
from tallystick.model.errors import TallystickError
from tallystick.model.run_result import RunResult
from tallystick.pipeline import deliver_alerts, make_cut, sources
from tallystick.store.clock import read_clock
from tallystick.store.runs.run_store import AttemptFenced
from tallystick_spark import reconcile_app
from tests.simulator.standins.executor import expire_transactions
from tests.simulator.standins.run_functions import last_cut, open_cut, read_run
from tests.simulator.world.interleaving import Killed
from tests.simulator.world.world import World

HOUR = timedelta(hours=1)
ATTEMPTS = 3


@dataclass
class Receiver:
    """On-call's receiver: which incidents it has open. A message may come twice."""

    name: str
    open: dict[str, Alert] = field(default_factory=dict)
    fails: int = 0
    received: int = 0

    def deliver(self, alert: Alert) -> str:
        if self.fails:
            self.fails -= 1
            raise SinkFailed("the receiver does not answer", retryable=True)
        self.received += 1
        if alert.action is AlertAction.RESOLVE:
            self.open.pop(alert.dedup_key, None)
        else:
            self.open[alert.dedup_key] = alert
        return "taken"


@dataclass
class Product:
    """judged: told of each run as it was committed, by number of contract and cut."""

    world: World
    judged: Callable[[Contract, RunResult], None]
    stopped: list[str] = field(default_factory=list)
    """What ended an attempt that nothing from outside had ended."""
    failed: list[str] = field(default_factory=list)
    """What ended an attempt, whatever it was."""
    receiver: Receiver = field(default_factory=lambda: Receiver("file:alerts.jsonl"))
    pending: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    kill_at: int | None = None
    seen: set[tuple[str, int]] = field(default_factory=set)
    last_doubts: dict[str, int] = field(default_factory=dict)
    """By contract: how many doubts its newest run had."""
    host_ahead: timedelta = timedelta()
    """Of the host that makes cuts; settling runs on another one, whose clock is right."""
    made_at: dict[tuple[str, int], datetime] = field(default_factory=dict)
    """When each cut was made at the latest, by no host's clock."""

    def window(self) -> None:
        """Up to the next full hour: settle, cut, judge, tell, for each contract."""
        world = self.world
        end = self.next_end()
        world.clock.go_to(end)
        expire_transactions(world)
        for contract in world.contracts:
            waiting, self.pending = self.pending, []
            kill_at, self.kill_at = self.kill_at, None
            world.point.begin(waiting, kill_at)
            newest = last_cut(world.store, contract.name)
            self._attempts(contract, newest.window_end_utc if newest else end - HOUR, end)
            world.point.end()

    def next_end(self) -> datetime:
        newest = last_cut(self.world.store, self.world.contract.name)
        after = max(self.world.clock.now, newest.window_end_utc if newest else self.world.clock.now)
        whole = after.replace(minute=0, second=0, microsecond=0)
        return whole + HOUR

    def _attempts(self, contract: Contract, start: datetime, end: datetime) -> None:
        for _ in range(ATTEMPTS):
            try:
                self._settle(contract, end)
                self._run(contract, start, end)
                self._deliver(contract)
                return
            except Killed as killed:
                self.world.tell(f"the run is killed at {killed}")
                self.failed.append(f"Killed at {killed}")
            except TallystickError as error:
                self.world.tell(f"the run fails: {type(error).__name__}: {error}")
                self.failed.append(type(error).__name__)
                if isinstance(error, AttemptFenced):
                    return  # somebody closed the cut meanwhile
                if not error.retryable:
                    self.stopped.append(f"{type(error).__name__}: {error}")
                    return
            except Exception as error:  # the books stop: that is what the oracle wants to know
                self.stopped.append(f"{type(error).__name__}: {error}")
                self.world.tell(f"the run fails: {type(error).__name__}: {error}")
                return
            self.world.clock.go(60)

    def _settle(self, contract: Contract, end: datetime) -> None:
        world = self.world
        give_up = end + contract.settle_timeout
        while True:
            settlement = sources.observe(world.store, contract, world, window_end_utc=end, now_utc=world.clock.now)
            if settlement.settled or world.clock.now >= give_up:
                return
            world.clock.go(150)

    def _run(self, contract: Contract, start: datetime, end: datetime) -> None:
        """As `local_run.reconcile_now`: an unfinished cut first, then this window's."""
        world, name = self.world, contract.name
        unfinished = open_cut(world.store, name)
        if unfinished is not None and not unfinished.is_baseline:
            reconcile_app.run_cut(world.store, contract, world, unfinished)
            self._note(contract, unfinished.n)
        clock = read_clock(world.store, host_now=lambda: world.clock.now + self.host_ahead)
        cut = make_cut.resolve_cut(
            world.store,
            contract,
            world,
            window_start_utc=start,
            window_end_utc=end,
            now_utc=clock.now_utc,
            scheduler_run_id=f"scheduled__{end.isoformat()}",
            host_ahead=clock.host_ahead,
        )
        self.made_at.setdefault((name, cut.n), world.clock.now)
        self._note(contract, 0)
        if read_run(world.store, name, cut.n) is None:
            reconcile_app.run_cut(world.store, contract, world, cut)
        self._note(contract, cut.n)

    def _note(self, contract: Contract, n: int) -> None:
        name = contract.name
        run = read_run(self.world.store, name, n)
        if run is not None and (name, n) not in self.seen:
            self.seen.add((name, n))
            self.made_at.setdefault((name, n), run.cut.now_utc)
            result = run.result
            self.last_doubts[name] = len(result.doubts)
            if run.cut.is_baseline:
                self.world.truth.books_begin(self.world.broker, run.cut.now_utc)
            self.world.tell(
                f"{name}/{n}: {result.verdict} rows={result.figures.topic_rows}/{result.figures.ledger_rows}"
                f" breaks={[f'{one.break_class} {one.match_key}' for one in result.breaks]}"
                f" doubts={[str(one.doubt) for one in result.doubts]}"
            )
            self.judged(contract, result)

    def _deliver(self, contract: Contract) -> None:
        try:
            deliver_alerts.deliver_pending(self.world.store, contract.name, [self.receiver])
        except deliver_alerts.DeliveryFailed as error:
            self.world.tell(f"alerts are owed still: {error.summary}")
