"""A crash matrix at work: each round makes one plan, strikes its executor at one step, and starts it until it is done.

Between a kill and the next start somebody else may settle what it was about: an original that comes late, a person,
another contract. Then a reader of another make counts what was ever committed. All rounds share one broker, one store
and one ledger, and those of some books one contract, and so one transactional.id; what an earlier round left behind
would show in a later one.

One file, since a round's steps share the servers, the plan and what an earlier round left behind.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from kafka.errors import ConcurrentTransactionsError

from lab.crash.books import (
    HANGING_PARTITION,
    POSTER,
    CrashBooks,
    archive,
    leg_of,
    new_reader,
    write_by_hand,
    write_late,
)
from lab.crash.executor import Executor, StartEnd
from lab.crash.plan import EVENTS_PER_PLAN, CrashFault, CrashRound, PlanKind, Step
from lab.crash.score import EventEnd, RoundEnd, Told
from lab.crash.server_faults import READER, StruckServers
from lab.product.command_line import STEP_BY_STEP, CommandLine
from lab.rounds.round_contracts import KAFKA
from lab.rounds.second_person import SecondPerson
from lab.servers import process, warm_python
from lab.servers.log_ends import Partition
from lab.servers.proxy import Loss, Request
from lab.servers.stack import LabStack
from lab.services.event import Leg
from lab.services.raw_producer import RawProducer, open_raw_admin
from lab.services.workload import Workload
from lab.truth.effect_reader import EventReader

_STARTS_MAX = 8
_BUG = 70
_STALE = "PlanStale"
_PLAN_SECONDS_MAX = 280.0
_ASKED_NEXT = {Step.EXECUTING: Request.INIT_PRODUCER_ID, Step.BEGUN: Request.PRODUCE}
_AFTER_COMMIT = (Step.PUBLISHED, Step.RECORDED, Step.FINISHED)
_BEFORE_COMMIT = {
    PlanKind.REPUBLISH: Step.FLUSHED,
    PlanKind.REVERSE: Step.FLUSHED,
    PlanKind.POST: Step.INSERTED,
    PlanKind.ABORT: Step.EVIDENCE_KEPT,
}
_OF_EACH = {
    PlanKind.REPUBLISH: (Step.RECORDED,),
    PlanKind.REVERSE: (Step.RECORDED,),
    PlanKind.POST: (Step.BEGUN, Step.INSERTED, Step.POSTED, Step.RECORDED),
    PlanKind.ABORT: (Step.EVIDENCE_KEPT, Step.MARKED, Step.RECORDED),
}
"""Steps that come once for each event."""
_ENVIRONMENT = "lab"
_EVIDENCE = """
SELECT detail->>'action_id' FROM tallystick.audit WHERE event = 'evidence' AND detail->>'action_id' = ANY(%s)"""
_STATES = "SELECT action_id::text, state FROM tallystick.compensation_action WHERE action_id = ANY(%s::uuid[])"


class PlanFailed(RuntimeError):
    """No plan was made; the message carries the end of the log."""


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """A plan of a contract as the command line told it. actions: by match key."""

    contract_file: Path
    plan_hash: str
    actions: Mapping[str, "Action"]


@dataclass(frozen=True, kw_only=True)
class Action:
    """What a plan does about one event, or about none (break_id ""). counted_as: by what its effects are counted."""

    action_id: str
    counted_as: str
    break_id: str = ""


@dataclass
class Account:
    """What became of one round's plans so far. by_another: match keys of what somebody else says to have done."""

    plans: list[StoredPlan] = field(default_factory=list)
    told: dict[str, Told] = field(default_factory=dict)
    by_another: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)  # ids of plans that an executor has finished, or has refused
    stale: set[str] = field(default_factory=set)  # of those, the refused ones in whose place another one is to be made
    starts: int = 0
    hung: int = 0
    faults: list[str] = field(default_factory=list)

    def note(self, plan: StoredPlan, end: StartEnd) -> None:
        """What one start said; that an event stands outweighs what any other start says of it."""
        if end.finished or end.refused:
            self.done.add(plan.plan_hash)
        if end.error == _STALE:
            self.stale.add(plan.plan_hash)
        if end.exit_code == _BUG:
            self.faults.append(f"a start ended with exit code {_BUG}, a traceback")
        said = {one["match_key"]: Told(fate=one["fate"], reason=one["reason"]) for one in end.outcomes}
        if end.refused:
            said = dict.fromkeys(plan.actions, Told(fate="refused", reason=f"{end.error}: {end.message}"))
        for match_key, told in said.items():
            if not self.told.get(match_key, Told()).stands:
                self.told[match_key] = told


class CrashMatrix:
    """Plays rounds on one stack, on books of each kind that they have.

    launcher: what runs the command line with a barrier at each line it prints. judge: has a run of each contract read
    what some books hold by now, and clear these match keys; without it the command line's run does, by what it reads.
    """

    def __init__(
        self,
        stack: LabStack,
        books: Mapping[str, CrashBooks],
        folder: Path,
        *,
        launcher: Sequence[str] = STEP_BY_STEP,
        judge: Callable[[CrashBooks, Collection[str]], None] | None = None,
    ) -> None:
        self.stack, self.all_books, self.folder, self.launcher = stack, books, folder, launcher
        self.servers = StruckServers(stack)
        self.judge = judge or self._reconcile
        proxied = json.dumps({"bootstrap.servers": stack.proxied_bootstrap_servers})
        self.command_line = CommandLine(addresses=stack, folder=folder)
        self.second = SecondPerson(folder)
        self.environment = (
            self.command_line.environment()
            | self.second.environment
            | {
                f"TALLYSTICK_CONN_{KAFKA.upper()}": proxied,
                f"TALLYSTICK_CONN_{POSTER.upper()}": stack.ledger_owner_dsn,
                "TALLYSTICK_ENVIRONMENT": _ENVIRONMENT,
            }
        )
        self.log = folder / "executors.log"
        self.readers = {name: new_reader(stack, one) for name, one in books.items()}
        self.known_wrong: list[str] = []
        self.unseen: set[str] = set()  # books in which others have done what no run has seen yet
        self.account = Account()

    def play(self, crash: CrashRound) -> RoundEnd:
        """One round, to its end. Raises PlanFailed, NotReadyInTime, where the lab itself cannot go on."""
        started = time.monotonic()
        self.account, self.books, self.reader = Account(), self.all_books[crash.books], self.readers[crash.books]
        if crash.books in self.unseen:
            self._read_on()
            self.unseen.remove(crash.books)
        plan = self._plan(self.books.cut_n)
        if self.books.other_file:
            self.other_plan = self._draw(self.books.other_file, self.books.cut_n)
        with ExitStack() as held:
            if crash.is_held:
                held.enter_context(self._hold(crash, plan))
            first = self._start(plan)
            if self._reach(first, crash):
                self._strike(crash, plan, first)
            else:
                self.account.faults.append(f"it never came to {crash.step}")
            self._run_out(plan, first)
        if crash.is_held:
            self.account.done.discard(plan.plan_hash)  # what was refused while nothing was provable is due now
        if plan.plan_hash not in self.account.done:
            self._finish(plan)
        if crash.may_be_stale and plan.plan_hash in self.account.stale:
            self._finish(self._plan(self.books.cut_n))
        self.servers.wait_decided(self.books.partitions)
        return self._end(crash, seconds=time.monotonic() - started)

    # One plan and its executors.

    def _plan(self, cut_n: int) -> StoredPlan:
        plan = self._draw(self.books.contract_file, cut_n)
        self.account.plans.append(plan)
        return plan

    def _draw(self, contract_file: Path, cut_n: int) -> StoredPlan:
        asked = ("plan", str(contract_file), "--cut", str(cut_n), "--by", "planner", "--json")
        document = json.loads(self._said("compensation", *asked))
        return StoredPlan(contract_file=contract_file, plan_hash=document["plan_hash"], actions=_actions(document))

    def _said(self, *asked: str) -> str:
        """What a command prints. Raises PlanFailed."""
        child = warm_python.spawn_piped([*self.launcher, *asked], log=self.log, environment=self.environment)
        output, code = child.read(_PLAN_SECONDS_MAX), child.wait()
        if code != 0:
            raise PlanFailed(f"tallystick {asked[1]}: exit code {code}\n{self.log_tail}")
        return output.decode()

    def _start(self, plan: StoredPlan) -> Executor:
        asked = ["compensation", "execute", str(plan.contract_file), plan.plan_hash]
        if self.books.kind is PlanKind.ABORT:
            asked += ["--approval", str(self._signed_sheet(plan))]
        self.account.starts += 1
        return Executor([*self.launcher, *asked, "--by", "lab", "--json"], self.environment, self.log)

    def _signed_sheet(self, plan: StoredPlan) -> Path:
        """A second person's yes to a plan; where it was signed once, that stands."""
        sheet = self.folder / f"sheet-{plan.plan_hash}.json"
        if not sheet.exists():
            sheet.write_text(self._said("compensation", "sheet", str(plan.contract_file), plan.plan_hash))
            self.second.sign(sheet)
        return sheet

    def _finish(self, plan: StoredPlan) -> None:
        """Start it until it says that it has finished, or that it refuses."""
        for _ in range(_STARTS_MAX):
            self._run_out(plan, self._start(plan))
            if plan.plan_hash in self.account.done:
                return
        self.account.faults.append(f"plan {plan.plan_hash} is not finished after {_STARTS_MAX} starts")

    def _run_out(self, plan: StoredPlan, running: Executor) -> None:
        end = running.end()
        if end is None:
            self.account.hung += 1
        else:
            self.account.note(plan, end)

    # Steps.

    def _reach(self, first: Executor, crash: CrashRound) -> bool:
        """Let the executor go to the round's step; False where it ended before."""
        if crash.step is not Step.COMMITTING:
            return first.run_to(_Place(crash))
        if not first.run_to(_Place(replace(crash, step=_BEFORE_COMMIT[crash.kind]))):
            return False
        match crash.kind:
            case PlanKind.POST:
                self.servers.ledger.hold_commits()
                first.let_go()
                self.servers.ledger.wait_held(first.ports)
            case PlanKind.ABORT:
                with self.servers.losing(Request.WRITE_TXN_MARKERS, client_id=READER):
                    first.let_go()
            case _:
                loss = Loss.REQUEST if crash.fault is CrashFault.BROKER_KILLED else Loss.ANSWER  # see kill_broker
                with self.servers.losing(Request.END_TXN, loss):
                    first.let_go()
        return True

    # Faults.

    def _strike(self, crash: CrashRound, plan: StoredPlan, first: Executor) -> None:
        match crash.fault:
            case CrashFault.KILLED:
                first.kill()
                self._let_commits_go(crash)
            case CrashFault.FROZEN:
                first.freeze()
                self._let_commits_go(crash)
                self.servers.end_idle_sessions(first.ports)
                self._finish(plan)
                first.wake()
            case CrashFault.OVERTAKEN if crash.kind in (PlanKind.POST, PlanKind.ABORT):
                self._follow(plan, first)
            case CrashFault.OVERTAKEN:
                self._overtake(crash, plan, first)
            case CrashFault.PLANNED_AGAIN:
                first.freeze()
                self._finish(self._plan(self.books.later_cut_n))
                first.wake()
            case CrashFault.BROKER_KILLED:
                self.servers.kill_broker(self.books.partitions, after_commit=crash.step in _AFTER_COMMIT)
            case CrashFault.STORE_KILLED:
                self.servers.kill_database(self.stack.store_server)
            case CrashFault.LEDGER_KILLED:
                self._let_commits_go(crash, reload=False)
                self.servers.kill_database(self.stack.ledger_server)
            case CrashFault.ANSWER_LOST:
                if crash.step is not Step.COMMITTING:
                    with self.servers.losing(_ASKED_NEXT[crash.step]):
                        first.let_go()
                elif crash.kind is PlanKind.POST:
                    self.servers.ledger.lose_answers()
                    self._let_commits_go(crash)
            case CrashFault.LOG_EXPIRED:
                first.kill()
                assert isinstance(self.reader, EventReader)
                after_commit = crash.step in _AFTER_COMMIT
                self.servers.expire_log(
                    self.reader, self.books.partitions, after_commit=after_commit, judge=self._read_on
                )
                self._finish(self._plan(self.books.later_cut_n))
            case CrashFault.RECORDS_REFUSED:
                with self.servers.refusing_events(self.books.partitions):
                    first.run_to(lambda told: told["step"] == "aborted")
            case CrashFault.RETURNED:
                self._return_producer(crash, plan, first)
            case CrashFault.CLEARED | CrashFault.BY_HAND | CrashFault.WRITTEN_OFF:
                first.kill()
                self._let_commits_go(crash)
                self._end_open(first)
                if crash.fault is CrashFault.WRITTEN_OFF:
                    self._write_off(crash, plan)
                else:
                    self._repair(crash, plan)
            case CrashFault.OTHER_CONTRACT:
                first.kill()
                self._let_commits_go(crash)
                self._end_open(first)
                self._do_by_other_contract(crash, plan)
            case CrashFault.CONTRACTS_RACE:
                first.freeze()
                self._do_by_other_contract(crash, plan)
                first.wake()

    def _read_on(self) -> None:
        """Have a run read what stands by now."""
        self.judge(self.books, ())

    def _judge(self, plan: StoredPlan) -> None:
        """The same, and clear what stands of a plan."""
        self.judge(self.books, self._standing(plan))

    def _reconcile(self, books: CrashBooks, _: Collection[str]) -> None:
        self.command_line.reconcile(books.contract_files)

    def _standing(self, plan: StoredPlan) -> list[str]:
        """Match keys of those events of a plan whose effect is committed."""
        self.servers.wait_decided(self.books.partitions)
        copies = self.reader.read()
        return [key for key, action in plan.actions.items() if copies[action.counted_as]]

    def _let_commits_go(self, crash: CrashRound, *, reload: bool = True) -> None:
        if (crash.kind, crash.step) == (PlanKind.POST, Step.COMMITTING):
            self.servers.ledger.let_commits_go(reload=reload)

    def _follow(self, plan: StoredPlan, first: Executor) -> None:
        """A second executor comes as far as the first one's lock lets it; the first goes on, then the second."""
        first.freeze()
        second = self._start(plan)
        second.run_to(
            lambda told: told["step"] in (Step.INSERTED, Step.MARKED),
            unless=lambda: self.servers.are_locking(second.ports),
        )
        first.wake()
        first.run_to(lambda told: told["step"] in (Step.FINISHED, "stopped"))
        self._run_out(plan, second)

    def _return_producer(self, crash: CrashRound, plan: StoredPlan, first: Executor) -> None:
        """It commits what it left, under the epoch that it had, and has its next transaction open meanwhile."""
        producer_id = int(list(plan.actions.values())[crash.record - 1].counted_as)
        place = self.books.names.topic(Leg.PAYMENT), HANGING_PARTITION
        with (
            open_raw_admin(self.stack.bootstrap_servers) as admin,
            Workload.open(self.stack, self.books.names.name, "billing", crash.name) as desk,
        ):
            producer = replace(self.books.hung[producer_id], admin=admin)
            producer.add_partition(*place)
            producer.end(commit=True)
            process.wait_until(partial(_has_begun, producer, place), what="its next transaction")
            producer.produce(*place, desk.payment().event(Leg.PAYMENT), {})
            over = _Place(replace(crash, step=Step.RECORDED))
            first.run_to(lambda told: over(told) or told["step"] == "stopped")
            producer.end(commit=True)
        self.unseen.add(crash.books)

    def _overtake(self, crash: CrashRound, plan: StoredPlan, first: Executor) -> None:
        first.freeze()
        second = self._start(plan)
        second.run_to(_Place(replace(crash, step=crash.second_at, record=EVENTS_PER_PLAN)))
        self.servers.wait_for_open_records(self.books.partitions)
        first.wake()
        first.run_to(lambda told: told["step"] in (Step.FINISHED, "stopped"))
        second.run_to(lambda told: told["step"] == Step.PUBLISHED)
        second.kill()

    # What somebody else does.

    def _end_open(self, first: Executor) -> None:
        """What the killed one left open on topics; what it left in a database went with its connection."""
        for transactional_id in {str(told["transactional_id"]) for told in first.told if "transactional_id" in told}:
            self.servers.end_open(transactional_id)

    def _repair(self, crash: CrashRound, plan: StoredPlan) -> None:
        """The struck event, unless it stands; then a run judges it. What is cleared is taken from where it stands."""
        key = _struck(crash, plan)
        if key not in self._standing(plan):
            write = write_late if crash.fault is CrashFault.CLEARED else write_by_hand
            service = "relay" if leg_of(crash.kind) is Leg.PAYOUT else "billing"
            with Workload.open(self.stack, self.books.names.name, service, crash.name) as desk:
                write(desk, crash.kind, self.books.paid[key])
            self.account.by_another.add(key)
        judge = partial(self._judge, plan)
        if crash.fault is CrashFault.BY_HAND:
            judge()
        elif isinstance(self.reader, EventReader):
            self.servers.expire_log(self.reader, self.books.partitions, after_commit=True, judge=judge)
        else:
            judge()
            archive(self.stack, self.books.names, self._standing(plan))

    def _write_off(self, crash: CrashRound, plan: StoredPlan) -> None:
        """The struck event's break, by a person who waits for an executor to end where the store says so."""
        contract, break_id = self.books.names.name, plan.actions[_struck(crash, plan)].break_id
        accepted = self.command_line.write_off(contract, break_id)
        if not accepted:
            self._finish(plan)
            accepted = self.command_line.write_off(contract, break_id)
        if accepted != crash.is_written_off:
            self.account.faults.append(f"writing off was {'accepted' if accepted else 'refused'}")

    @contextmanager
    def _hold(self, crash: CrashRound, plan: StoredPlan) -> Iterator[None]:
        """In the block the struck event's own producer has it in an open transaction, which it aborts then."""
        payment = self.books.paid[_struck(crash, plan)]
        with Workload.open(self.stack, self.books.names.name, "relay", crash.name) as desk:
            writer = desk.transactional()
            with writer.transaction(commit=False):
                writer.write(payment.event(leg_of(crash.kind)))
                self.servers.wait_for_open_records(self.books.partitions)
                yield
        self.servers.wait_decided(self.books.partitions)

    def _do_by_other_contract(self, crash: CrashRound, plan: StoredPlan) -> None:
        """It has planned the same at the same time, and its executor does what it may."""
        own, self.account, other = self.account, Account(), self.other_plan
        self._finish(other)
        other_end, self.account = self.account, own
        own.by_another = {key for key, told in other_end.told.items() if told.stands}
        own.starts, own.hung = own.starts + other_end.starts, own.hung + other_end.hung
        own.faults += other_end.faults
        if other.actions.keys() != plan.actions.keys():
            own.faults.append(f"the other contract planned {sorted(other.actions)}, expected {sorted(plan.actions)}")
        self.unseen.add(crash.books)

    # The end of a round.

    def _end(self, crash: CrashRound, *, seconds: float) -> RoundEnd:
        account, copies = self.account, self.reader.read()
        actions = {key: action for plan in account.plans for key, action in plan.actions.items()}
        asked = (sorted(action.action_id for action in actions.values()),)
        with psycopg.connect(self.stack.store_dsn) as connection:
            states: dict[str, str] = dict(connection.execute(_STATES, asked).fetchall())
            witnessed = {action_id for (action_id,) in connection.execute(_EVIDENCE, asked)}
        events = tuple(
            EventEnd(
                match_key=key,
                counted_as=action.counted_as,
                copies=copies[action.counted_as],
                told=account.told.get(key, Told()),
                state=states.get(action.action_id, ""),
                evidence=crash.kind is not PlanKind.ABORT or action.action_id in witnessed,
                by_another=key in account.by_another,
            )
            for key, action in actions.items()
        )
        wrong = [sentence for sentence in self.reader.wrong if sentence not in self.known_wrong]
        self.known_wrong += wrong
        return RoundEnd(
            name=crash.name,
            books=crash.books,
            kind=crash.kind,
            step=crash.step,
            fault=crash.fault,
            events=events,
            starts=account.starts,
            hung=account.hung,
            seconds=round(seconds, 1),
            faults=(*account.faults, *wrong),
            may_refuse=crash.may_refuse,
            by_another=crash.by_another,
        )

    def count_again(self, ends: Sequence[RoundEnd]) -> list[RoundEnd]:
        """The same rounds, with what stands by now of their events: nothing may come after the last round of each."""
        copies = {name: reader.read() for name, reader in self.readers.items()}
        last = {(end.books, event.counted_as): end.name for end in ends for event in end.events}

        def again(end: RoundEnd, event: EventEnd) -> EventEnd:
            is_last = last[end.books, event.counted_as] == end.name
            return replace(event, copies=copies[end.books][event.counted_as]) if is_last else event

        return [replace(end, events=tuple(again(end, event) for event in end.events)) for end in ends]

    @property
    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


@dataclass
class _Place:
    """Is this what an executor tells at the round's step, and the round's record?"""

    crash: CrashRound
    seen: int = 0

    def __call__(self, told: Mapping[str, Any]) -> bool:
        crash = self.crash
        if crash.step in (Step.EVENT_PRODUCED, Step.PROGRESS_PRODUCED):
            events = told.get("of", 0) // 2
            record = crash.record + (events if crash.step is Step.PROGRESS_PRODUCED else 0)
            return bool(told["step"] == "produced" and told["record"] == record)
        if told["step"] != crash.step:
            return False
        self.seen += 1
        return self.seen == crash.record or crash.step not in _OF_EACH[crash.kind]


def _actions(document: Mapping[str, Any]) -> dict[str, Action]:
    """Of a plan as JSON."""
    aborts = {
        f"{one['topic']}:{one['partition']} at offset {one['kafka_offset_start']}": Action(
            action_id=one["action_id"], counted_as=str(one["producer_id"])
        )
        for one in document["aborts"]
    }
    return aborts | {
        item["match_key"]: Action(action_id=item["action_id"], counted_as=item["match_key"], break_id=item["break_id"])
        for item in document["items"]
    }


def _struck(crash: CrashRound, plan: StoredPlan) -> str:
    """The match key of the event that the round strikes at."""
    return list(plan.actions)[crash.record - 1]


def _has_begun(producer: RawProducer, place: Partition) -> bool:
    """False while the coordinator ends the one before."""
    try:
        producer.add_partition(*place)
    except ConcurrentTransactionsError:
        return False
    return True
