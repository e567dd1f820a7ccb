"""What may be repaired, decided before anything is touched. Pure; compensation.py acts on it.

A plan names each thing it will do and each break it leaves alone, with the reason. A person approves its hash.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from uuid import UUID, uuid5

from pydantic import TypeAdapter

from tallystick.compensation.abort_plan import AbortItem, abort_items, why_not_abort
from tallystick.contract.compensation import COUNTERPOSTABLE, POSTABLE, REPUBLISHABLE, REVERSIBLE, CompensationRules
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import Surroundings
from tallystick.matching.row_identity import row_item_id
from tallystick.matching.scan_result import ledger_item_id
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound, total_at_stake, total_money
from tallystick.model.stored_run import OutstandingBreak, StoredRun

_NAMESPACE = UUID("1b0f7f4e-0f0c-5d53-8a44-55b1f2a3c6d7")

UNCLEAN = (
    Doubt.BASELINE,
    Doubt.CUT_CLOSED,
    Doubt.UNEXPLAINED_GAP,
    Doubt.READERS_DISAGREE,
    Doubt.LOG_EXPIRED,
    Doubt.LOG_COMPACTED,
    Doubt.LOG_REWRITTEN,
    Doubt.LOG_TRUNCATED,
    Doubt.TOPIC_RECREATED,
    Doubt.TORN_CUT,
    Doubt.LEDGER_REWRITTEN,
    Doubt.LEDGER_FAILED_OVER,
    Doubt.LEDGER_IDS_REUSED,
)
"""Doubts under which an absence is not proven well enough to act on it."""


class PlanRefused(RuntimeError):
    """The plan may not be acted on. Nothing was published by this attempt."""


class CompensationOff(PlanRefused):
    """The contract has no compensation section: the kill switch."""


class CapsExceeded(PlanRefused):
    """The contract as it is now does not allow this plan."""


class OnePersonOnly(PlanRefused):
    """The plan needs two people, by its money or since it ends a transaction, and has one."""


class PlanStale(PlanRefused):
    """What was approved is not what would be done now. Plan again."""


class ApprovalTooOld(PlanRefused):
    """A person agreed to this plan longer ago than the contract lets an approval hold. Ask again."""


@dataclass(frozen=True, kw_only=True)
class SourceRow:
    """The ledger row that an event is made from. occurred_at: as the event will say it."""

    row_id: str
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    occurred_at: str

    @property
    def moved_minor(self) -> dict[str, int]:
        """Its money without a sign, as caps count it."""
        return {self.currency: abs(self.amount_minor)}


@dataclass(frozen=True, kw_only=True)
class StandingRow(SourceRow):
    """A row as it stands in the ledger. takes_back: row id of the one that it names as taken back, "" for any other."""

    takes_back: str = ""

    @property
    def source(self) -> SourceRow:
        """What it says of its event."""
        return SourceRow(**{column.name: getattr(self, column.name) for column in fields(SourceRow)})


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What other plans have begun to move on this day. moved_minor: per currency in minor units, without signs."""

    items: int = 0
    moved_minor: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An outstanding break with every ledger row of its key."""

    outstanding: OutstandingBreak
    rows: tuple[StandingRow, ...]

    @property
    def item_break(self) -> Break:
        return self.outstanding.item_break


class Kind(StrEnum):
    """What an item does.

    republish: publish the event that the topic lacks. reverse: take a copy back, by an event that names it. post: write
    the rows that the ledger lacks. counterpost: take a row back, by a compensating entry that names it. trigger: start
    a DAG that somebody else wrote, with the plan as its conf.
    """

    REPUBLISH = "republish"
    REVERSE = "reverse"
    POST = "post"
    COUNTERPOST = "counterpost"
    TRIGGER = "trigger"


INTO_LEDGER = (Kind.POST, Kind.COUNTERPOST)
"""What is written into the ledger, by the connection of compensation.post."""


@dataclass(frozen=True, kw_only=True)
class PlanItem(SourceRow):
    """One event to publish. action_id is the same in every plan that repairs this break.

    reverses: item id of the copy or row that is taken back; "" where nothing is taken back. posts: item id of the event
    whose rows are written into the ledger; "" where none is. triggers: id of the DAG that is started; "" where none is.
    """

    action_id: UUID
    break_id: UUID
    break_class: BreakClass
    topic: str
    kind: Kind = Kind.REPUBLISH
    reverses: str = ""
    posts: str = ""
    triggers: str = ""

    @property
    def row(self) -> SourceRow:
        """The ledger row as the plan saw it."""
        return SourceRow(**{column.name: getattr(self, column.name) for column in fields(SourceRow)})


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A break that the plan does not repair, and why. break_id None: a hanging transaction, match_key its place."""

    break_id: UUID | None
    match_key: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class StoodAround:
    """What the planned run and the newest one saw around their cuts; where they are the same, the same."""

    planned: Surroundings = field(default_factory=Surroundings)
    newest: Surroundings = field(default_factory=Surroundings)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one approval stands for. Plans that would do the same have the same hash and id."""

    contract: str
    contract_fingerprint: str
    cut_n: int
    dry_run: bool
    items: tuple[PlanItem, ...]
    left_out: tuple[LeftOut, ...]
    aborts: tuple[AbortItem, ...] = ()

    @property
    def actions(self) -> tuple[AbortItem | PlanItem, ...]:
        """All that it does, in the order in which it is done."""
        return (*self.aborts, *self.items)

    @cached_property
    def plan_hash(self) -> str:
        """SHA-256 of what would be done, as sorted JSON; what is left out may change while an approval waits.

        What an item says by default is no part of it, so that a field of a later release changes no stored hash.
        """
        document = _PLAN.dump_python(self, mode="json", exclude={"left_out"}, exclude_defaults=True)
        return sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @cached_property
    def plan_id(self) -> UUID:
        return plan_id_of(self.plan_hash)

    @property
    def money_minor(self) -> dict[str, int]:
        """What the events are worth, per currency in integer minor units, without signs."""
        return total_at_stake((item.currency, item.amount_minor) for item in self.items)

    @property
    def moved_minor(self) -> dict[str, int]:
        """Of all its actions, without signs, as caps count it: a negative amount makes no other one smaller."""
        return total_money(pair for action in self.actions for pair in action.moved_minor.items())


_PLAN = TypeAdapter(Plan)


def make_plan(
    contract: Contract,
    run: StoredRun,
    candidates: Sequence[Candidate],
    *,
    newest_doubts: Sequence[DoubtFound] = (),
    around: StoodAround = StoodAround(),
    offsets_lost_at: int = -1,
    rows_unread_at: int = -1,
    taken: Collection[UUID] = (),
    spent: Spent = Spent(),
    dry_run: bool = True,
) -> Plan:
    """Take the candidates oldest first while the caps allow; what does not fit is named, and a smaller one may fit.

    newest_doubts: those of the newest run, where that is a later one. around: what hangs there goes before the breaks.
    offsets_lost_at: the newest cut whose topics had lost offsets before they were read; -1: none had. rows_unread_at:
    the newest cut that left rows of the ledger unread; -1: none did. taken: action ids that a plan has acted on or is
    acting on. spent: what the day's caps have been used for. Raises CompensationOff.
    """
    rules = rules_of(contract)
    items: list[PlanItem] = []
    left_out: list[LeftOut] = []
    room = _Room(rules, spent)
    unclean = _unclean("the run's", run.result.doubts) or _unclean("the newest run's", newest_doubts)
    aborts: list[AbortItem] = []
    for abort in abort_items(contract.contract, around.planned, now_utc=run.now_utc):
        reason = (
            unclean
            or _not_opted_in(rules)
            or ("another plan has it" if abort.action_id in taken else None)
            or why_not_abort(abort, topics=contract.topics, around=around.planned, newest=around.newest)
            or room.refusal(abort.place, abort.moved_minor)
        )
        if reason:
            left_out.append(LeftOut(break_id=None, match_key=abort.place, reason=reason))
        else:
            aborts.append(abort)
            room.take(abort.place, abort.moved_minor)
    for candidate, place in _placed(sorted(candidates, key=_oldest_first)):
        found, source = candidate.item_break, _source_of(candidate, place)
        action_id = action_id_of(contract.contract, found.break_id)
        reason = (
            unclean
            or _not_ours(contract, rules, found)
            or ("another plan has it" if action_id in taken else None)
            or _may_have_come(candidate, offsets_lost_at)
            or _row_may_have_come(candidate, rows_unread_at)
            or _row_fault(rules, candidate, place)
            or room.refusal(found.match_key, source.moved_minor)
        )
        if reason:
            left_out.append(LeftOut(break_id=found.break_id, match_key=found.match_key, reason=reason))
        else:
            items.append(_item(contract, rules, found, place, source, action_id))
            room.take(found.match_key, source.moved_minor)
    return Plan(
        contract=contract.contract,
        contract_fingerprint=contract.fingerprint,
        cut_n=run.cut.n,
        dry_run=dry_run,
        items=tuple(items),
        left_out=tuple(left_out),
        aborts=tuple(aborts),
    )


def plan_id_of(plan_hash: str) -> UUID:
    """What the store keeps a plan under."""
    return uuid5(_NAMESPACE, plan_hash)


def action_id_of(contract_name: str, break_id: UUID) -> UUID:
    """One per break, over all plans: what makes a second repair impossible."""
    return uuid5(_NAMESPACE, f"{contract_name}\x1f{break_id}")


def refuse_over_caps(contract: Contract, plan: Plan, *, spent: Spent = Spent()) -> None:
    """Hold an approved plan against the contract as it is now. Raises CompensationOff, CapsExceeded."""
    rules = rules_of(contract)
    room = _Room(rules, spent)
    for abort in plan.aborts:
        if reason := _not_opted_in(rules) or room.refusal(abort.place, abort.moved_minor):
            raise CapsExceeded(f"{contract.contract}: {abort.place}: {reason}")
        room.take(abort.place, abort.moved_minor)
    for item in plan.items:
        reason = room.refusal(item.match_key, item.moved_minor)
        dag_id = rules.dag_of(item.break_class)
        if dag_id != item.triggers if item.triggers else item.break_class not in rules.classes:
            reason = f"class {item.break_class} is not compensated by the contract"
        if reason:
            raise CapsExceeded(f"{contract.contract}: break {item.break_id}: {reason}")
        room.take(item.match_key, item.moved_minor)


class _Room:
    """What the caps still allow, and which events the plan has already."""

    def __init__(self, rules: CompensationRules, spent: Spent) -> None:
        self.items = rules.max_items
        self.money = dict(rules.max_amount_minor)
        self.items_today = None if rules.max_items_per_day is None else rules.max_items_per_day - spent.items
        self.money_today = {
            currency: cap - spent.moved_minor.get(currency, 0)
            for currency, cap in rules.max_amount_minor_per_day.items()
        }
        self.keys: set[str] = set()

    def refusal(self, key: str, money: Mapping[str, int]) -> str | None:
        """money: per currency in minor units, without signs; it must not be changed before `take`."""
        if key in self.keys:
            return "the plan has this event already"
        if self.items < 1:
            return "over the cap on the number of events"
        if self.items_today is not None and self.items_today < 1:
            return "over the day's cap on the number of events"
        for currency, amount_minor in sorted(money.items()):
            if currency not in self.money:
                return f"the contract sets no cap for {currency}"
            if amount_minor > self.money[currency]:
                return f"over the cap on {currency}"
            if amount_minor > self.money_today.get(currency, amount_minor):
                return f"over the day's cap on {currency}"
        return None

    def take(self, key: str, money: Mapping[str, int]) -> None:
        self.keys.add(key)
        self.items -= 1
        if self.items_today is not None:
            self.items_today -= 1
        for currency, amount_minor in money.items():
            self.money[currency] -= amount_minor
            if currency in self.money_today:
                self.money_today[currency] -= amount_minor


def rules_of(contract: Contract) -> CompensationRules:
    if contract.compensation is None:
        raise CompensationOff(f"{contract.contract}: the contract has no compensation, so nothing may be repaired")
    return contract.compensation


def _not_opted_in(rules: CompensationRules) -> str | None:
    if rules.abort_hanging_transactions:
        return None
    return "compensation.abort_hanging_transactions is not true, so nothing is ended"


def _oldest_first(candidate: Candidate) -> tuple[int, str, str]:
    return candidate.outstanding.cut_n, candidate.item_break.match_key, str(candidate.item_break.break_id)


def _unclean(whose: str, found: Sequence[DoubtFound]) -> str | None:
    doubts = sorted(one.doubt for one in found if one.doubt in UNCLEAN)
    return f"{whose} evidence is not clean: {', '.join(doubts)}" if doubts else None


def _not_ours(contract: Contract, rules: CompensationRules, found: Break) -> str | None:
    if rules.dag_of(found.break_class):
        return None
    if found.break_class not in rules.classes:
        return f"class {found.break_class} is not compensated by the contract"
    if found.leg not in contract.legs:
        return "the contract names no topic for its leg"
    if rules.post is not None and found.leg not in rules.post.rows:
        return "the contract names no rows for its leg"
    if found.break_class in REVERSIBLE + POSTABLE and not _at(found).startswith(f"topic:{contract.legs[found.leg]}:"):
        return "the copy does not stand on the topic of its leg"
    return None


def _may_have_come(candidate: Candidate, offsets_lost_at: int) -> str | None:
    """An event that was missing may have come since, among what no run has read."""
    if candidate.item_break.break_class not in REPUBLISHABLE or offsets_lost_at <= candidate.outstanding.cut_n:
        return None
    return f"its event may have come since: offsets were lost before cut {offsets_lost_at} could read them"


def _row_may_have_come(candidate: Candidate, rows_unread_at: int) -> str | None:
    """A row that is missing may have stood where no run has read it, and have been archived since.

    The cut before the one that read the event counts too: it may have ended between the event and its row.
    """
    first_seen = candidate.outstanding.first_seen_cut
    if candidate.item_break.break_class not in POSTABLE or rows_unread_at < first_seen - 1:
        return None
    return why_row_may_have_come(rows_unread_at)


def why_row_may_have_come(rows_unread_at: int) -> str:
    """What speaks against posting a row then."""
    return (
        f"its row may have come and been archived: nobody has read all rows up to cut {rows_unread_at}; look for it, "
        "then post it by hand, or write the break off"
    )


def _at(found: Break) -> str:
    return str(found.evidence.get("at", ""))


def _placed(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, str]]:
    """Each with the item id of the copy that it is about: of two equal rows ours, unless that was taken back or an
    older break is about it.
    """
    named: set[str] = set()
    for candidate in candidates:
        ours = str(candidate.item_break.evidence.get("ours", ""))
        named |= {ledger_item_id(row.takes_back) for row in candidate.rows if row.takes_back}
        yield candidate, _at(candidate.item_break) if not ours or ours in named else ours
        named.add(ours)


def _row_fault(rules: CompensationRules, candidate: Candidate, place: str) -> str | None:
    found, rows = candidate.item_break, candidate.rows
    if rules.dag_of(found.break_class):
        return None
    if found.break_class in POSTABLE:
        return f"the ledger has {len(rows)} rows of its key, expected none" if rows else None
    if found.break_class in COUNTERPOSTABLE:
        return _row_too_many_fault(found, rows, place)
    if len(rows) != 1:
        return f"the ledger has {len(rows)} rows of its key, expected 1"
    expected = found.match_key, found.transaction_key, found.leg, found.amount_minor, found.currency
    row = rows[0]
    if expected != (row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency):
        return "the ledger row has changed since the run"
    return None


_ID_NOT_ITS_OWN = "another row of its key has its row id, so no row can name it as the one that is taken back"


def _row_too_many_fault(found: Break, rows: Sequence[StandingRow], place: str) -> str | None:
    row = next((one for one in rows if ledger_item_id(one.row_id) == place), None)
    if row is None and any(ledger_item_id(one.row_id) == row_item_id(place) for one in rows):
        return _ID_NOT_ITS_OWN
    if row is None:
        return "the row that is one too many is not in the ledger any more"
    expected = found.match_key, found.transaction_key, found.leg, found.amount_minor, found.currency
    if expected != (row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency):
        return "the ledger row has changed since the run"
    return why_not_counterpostable(row, rows)


def rows_in_force(rows: Sequence[StandingRow]) -> tuple[StandingRow, ...]:
    """The rows of one key that no row takes back; those that take others back are none."""
    taken_back = {row.takes_back for row in rows if row.takes_back}
    return tuple(row for row in rows if not row.takes_back and row.row_id not in taken_back)


def why_not_counterpostable(row: StandingRow, rows: Sequence[StandingRow]) -> str | None:
    """What speaks against taking a row back, by all rows of its key; None: nothing."""
    if row.takes_back:
        return f"the row takes row {row.takes_back} back itself"
    if any(one is not row and one.row_id == row.row_id for one in rows):
        return _ID_NOT_ITS_OWN
    in_force = rows_in_force(rows)
    if row not in in_force:
        return "it was taken back already"
    return "no other row of its key is in force" if len(in_force) < 2 else None


def _source_of(candidate: Candidate, place: str) -> SourceRow:
    """What its event or its rows are made from: the ledger row, that of a row too many; or, without one, the event."""
    if candidate.rows:
        return next((row for row in candidate.rows if ledger_item_id(row.row_id) == place), candidate.rows[0]).source
    found = candidate.item_break
    return SourceRow(
        row_id="",
        match_key=found.match_key,
        transaction_key=found.transaction_key,
        leg=found.leg,
        amount_minor=found.amount_minor,
        currency=found.currency,
        occurred_at="",
    )


def _item(
    contract: Contract, rules: CompensationRules, found: Break, place: str, row: SourceRow, action_id: UUID
) -> PlanItem:
    kind = _kind_of(rules, found.break_class)
    return PlanItem(
        kind=kind,
        reverses=place if kind in (Kind.REVERSE, Kind.COUNTERPOST) else "",
        posts=place if kind is Kind.POST else "",
        triggers=rules.dag_of(found.break_class) or "",
        action_id=action_id,
        break_id=found.break_id,
        break_class=found.break_class,
        topic=contract.legs.get(row.leg, ""),
        **vars(row),
    )


def _kind_of(rules: CompensationRules, break_class: BreakClass) -> Kind:
    if rules.dag_of(break_class):
        return Kind.TRIGGER
    if break_class in REVERSIBLE:
        return Kind.REVERSE
    if break_class in COUNTERPOSTABLE:
        return Kind.COUNTERPOST
    return Kind.POST if break_class in POSTABLE else Kind.REPUBLISH
