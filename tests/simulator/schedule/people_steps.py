"""Steps of people: who plans, approves and acts, writes off, throws the switch, closes a cut, reads one again, repairs
and corrects by hand.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tallystick.compensation.kill_switch import SwitchSetting
from tallystick.compensation.plan import Plan
from tallystick.contract.contract import Contract
from tallystick.executor import draw_plan, execute_plan
from tallystick.matching.closed_cut import closing_of
from tallystick.model.errors import TallystickError
from tallystick.model.open_item import WriteOff
from tallystick.store.runs import close_store
from tallystick_spark import reconcile_app
from tests.simulator.oracle.money_of_keys import MadeWorse, apart, made_worse
from tests.simulator.oracle.what_else import came_where_others_stood
from tests.simulator.schedule.product import Product
from tests.simulator.schedule.services import Services
from tests.simulator.standins import plan_functions
from tests.simulator.standins.run_functions import list_runs, open_cut, outstanding_breaks, read_run
from tests.simulator.world.interleaving import Killed


@dataclass
class People:
    """plans: all that were drawn, oldest first. acted: what each executor that came to its end did. made_worse: of keys
    whose sides lay further apart behind one than before it.
    """

    services: Services
    product: Product
    plans: list[Plan] = field(default_factory=list)
    acted: list[execute_plan.Execution] = field(default_factory=list)
    reread_differently: list[str] = field(default_factory=list)
    made_worse: list[MadeWorse] = field(default_factory=list)

    def _contract(self, b: int) -> Contract:
        """One of those that reconcile the books."""
        return self.services.world.contracts[b % len(self.services.world.contracts)]

    def plan(self, a: int, b: int) -> None:
        world, contract = self.services.world, self._contract(b)
        newest = list_runs(world.store, contract.name, limit=1)
        if not newest or contract.compensation is None:
            return
        plan = draw_plan.draw_plan(world.store, contract, world, cut_n=newest[0].cut_n, dry_run=False)
        plan_functions.save_plan(world.store, plan, requested_by="asker")
        if plan.items:
            self.plans.append(plan)
            world.tell(f"a plan is drawn: {[f'{item.kind} {item.match_key}' for item in plan.items]}")

    def act(self, a: int, b: int) -> None:
        """Start an executor for a plan, a new one or one that was acted on before: its task is cleared."""
        world = self.services.world
        if not self.plans:
            return
        plan = self.plans[-1 - a % min(3, len(self.plans))]
        contract = next(one for one in world.contracts if one.name == plan.contract)
        keys = [item.match_key for item in plan.items]
        before = apart(world.truth, keys, world.config)
        try:
            done = execute_plan.execute_plan(
                world.store,
                contract,
                world,
                plan,
                approved_hash=plan.plan_hash,
                approver="carol",
                environment="world",
            )
        finally:
            world.look()
            after = apart(world.truth, keys, world.config)
            self.made_worse += made_worse(before, after)
        self.acted.append(done)
        world.tell(f"the plan is acted on: {[f'{one.fate} {one.match_key} {one.reason}' for one in done.outcomes]}")

    def plan_and_act(self, a: int, b: int) -> None:
        self.plan(a, b)
        self.act(0, b)

    def write_off(self, a: int, b: int) -> None:
        world, name = self.services.world, self._contract(a).name
        found = outstanding_breaks(world.store, name)
        if found:
            one = found[b % len(found)].item_break
            off = WriteOff(by="dan", reason="paid by hand, by bank transfer", at_utc=world.clock.now)
            plan_functions.write_off_break(world.store, name, str(one.break_id), off)
            world.truth.written_off.add((name, one.match_key))
            world.truth.given_up[one.break_id] = world.clock.now
            world.tell(f"{one.break_class} of {one.match_key} is written off")

    def switch(self, a: int, b: int) -> None:
        world = self.services.world
        stopped = a % 2 == 0
        world.tell(f"acting is {'stopped' if stopped else 'allowed again'}")
        setting = SwitchSetting(contract=None, stopped=stopped, by="dan", because="", at_utc=world.clock.now)
        plan_functions.set_switch(world.store, setting)

    def host_clock(self, a: int, b: int) -> None:
        """The host that makes cuts is set ahead or back by more than the partners' grace, or right again."""
        self.product.host_ahead = timedelta(minutes=(20, 0, -20)[b % 3])
        self.services.world.tell(f"the clock of the host that makes cuts is {self.product.host_ahead} ahead")

    def close_cut(self, a: int, b: int) -> None:
        """Give an open cut up that somebody has tried to judge."""
        world, name = self.services.world, self._contract(a).name
        unfinished = open_cut(world.store, name)
        if unfinished is not None:
            closing = closing_of(by="dan", reason="nobody can judge it", at_utc=world.clock.now)
            closed = close_store.close_cut(world.store, name, unfinished.n, closing)
            world.tell(f"cut {closed.cut.n} is closed unread")

    def reread(self, a: int, b: int) -> None:
        """Read a judged cut again: the same digest, unless the log or the ledger is not what it was."""
        world, contract = self.services.world, self._contract(a)
        judged = sorted(one.cut_n for one in list_runs(world.store, contract.name, limit=4) if one.cut_n)
        if not judged:
            return
        run = read_run(world.store, contract.name, judged[-1 - b % min(3, len(judged))])
        assert run is not None
        if run.result.digest in ("baseline", "closed unread"):
            return
        try:
            reconcile_app.reread_cut(world.store, contract, world, run.cut, run.result)
        except reconcile_app.DigestChanged as error:
            world.tell(f"read again: {error}")
            if not self._changed_since(run.recorded_at):
                self.reread_differently.append(str(error))

    def _changed_since(self, moment: datetime) -> bool:
        """Has the log lost anything, has an event come where another one stood, or has a row changed, since then?"""
        truth = self.services.world.truth
        return (
            any(at >= moment for at, *_ in truth.losses)
            or came_where_others_stood(truth, (one for one in truth.events if one.written_at >= moment))
            or any(at >= moment for row in truth.rows.values() for at in (*row.touched, row.gone_at or row.visible_at))
        )

    def by_hand(self, a: int, b: int) -> None:
        """Somebody publishes or posts what a break says is missing."""
        world = self.services.world
        missing = [
            one.item_break
            for one in outstanding_breaks(world.store, world.contract.name)
            if one.item_break.break_class.startswith("missing")
        ]
        if not missing:
            return
        key = missing[b % len(missing)].match_key
        money = [one.money for one in (*world.truth.events_of(key), *world.truth.rows_of(key))]
        if money:
            world.tell(f"{key} is repaired by hand")
            self.services.write(False, a, money[0], partition=b, by="hand")
            self.services.end(False, a, commit=True)

    def correct_by_hand(self, a: int, b: int) -> None:
        """Somebody sets a key right in their own way: an entry of what the second side lacks or has too much, one that
        cancels what was written, or the payment once more, amended, on both sides.
        """
        world = self.services.world
        found = outstanding_breaks(world.store, world.contract.name)
        if not found:
            return
        key = found[b % len(found)].item_break.match_key
        written = [one.money for one in (*world.truth.events_of(key), *world.truth.rows_of(key))]
        lies = apart(world.truth, [key], world.config).get(key)
        if not written or lies is None:
            return
        money, on_topic = written[0], a % 2 == 0
        amount = -money.amount_minor
        if b % 3 == 0:
            on_topic = not world.config.topic_first
            amount = lies.minor_units[money.currency] * (-1 if on_topic else 1)
        elif b % 3 == 1:
            amount = money.amount_minor + 7
        if not amount:
            return
        world.tell(f"{key} is corrected by hand, by {amount} on {'both sides' if b % 3 == 1 else 'one side'}")
        for first_side in (True, False):
            if b % 3 == 1 or (first_side == world.config.topic_first) == on_topic:
                entry = replace(money, amount_minor=amount)
                self.services.write(first_side, a, entry, partition=b, by="hand")
                self.services.end(first_side, a, commit=True)

    def do(self, name: str, a: int, b: int) -> None:
        """One of these, whatever comes of it."""
        step: Callable[[int, int], None] = getattr(self, name)
        try:
            step(a, b)
        except Killed as killed:
            self.services.world.tell(f"the process is killed at {killed}")
            self.product.failed.append(f"Killed at {killed}")
        except TallystickError as error:
            self.services.world.tell(f"{name}: {type(error).__name__}: {error}")
            self.product.failed.append(type(error).__name__)
        except Exception as error:  # what stops a person's tool is what the oracle wants to know
            self.services.world.tell(f"{name}: {type(error).__name__}: {error}")
            self.product.stopped.append(f"{name}: {type(error).__name__}: {error}")


COMPENSATING = ("plan", "act", "plan_and_act")
"""What needs a contract that compensates."""
BY_HAND = ("by_hand", "correct_by_hand")
"""What somebody writes without the product."""
PEOPLE_STEPS = (*COMPENSATING, "write_off", "switch", "host_clock", "close_cut", "reread", *BY_HAND)
