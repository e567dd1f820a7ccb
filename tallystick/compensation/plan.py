"""The values of a plan, which is decided before anything is touched. Pure; executor/execute_plan.py carries it out.

A plan names each thing it will do and each break it leaves alone, with the reason. A person approves its hash.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from uuid import UUID, uuid5

from pydantic import TypeAdapter

from tallystick.compensation.abort_plan import AbortItem
from tallystick.contract.compensation import CompensationRules
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.errors import TallystickError
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, total_at_stake, total_money
from tallystick.model.stored_run import OutstandingBreak

_NAMESPACE = UUID("1b0f7f4e-0f0c-5d53-8a44-55b1f2a3c6d7")


class PlanRefused(TallystickError, RuntimeError):
    """The plan may not be acted on. Nothing was published by this attempt."""


class CompensationOff(PlanRefused):
    """The contract has no compensation section: the kill switch."""


class CapsExceeded(PlanRefused):
    """The contract as it is now does not allow this plan."""


class OnePersonOnly(PlanRefused):
    """The plan needs two people, by its money or since it ends a transaction, and has one."""


class PlanStale(PlanRefused):
    """The approved plan is not the plan that would be made now. Plan again."""


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
        """Return its money without a sign, as caps count it."""
        return {self.currency: abs(self.amount_minor)}


def source_of_break(found: Break) -> SourceRow:
    """Return what is known of the source where no row is at hand."""
    return SourceRow(
        row_id="",
        match_key=found.match_key,
        transaction_key=found.transaction_key,
        leg=found.leg,
        amount_minor=found.amount_minor,
        currency=found.currency,
        occurred_at="",
    )


@dataclass(frozen=True, kw_only=True)
class CurrentRow(SourceRow):
    """A row as it stands in the ledger. takes_back: row id of the one that it names as taken back, "" for any other."""

    takes_back: str = ""

    @property
    def source(self) -> SourceRow:
        """Return the row that its event is made from."""
        return SourceRow(**{column.name: getattr(self, column.name) for column in fields(SourceRow)})


@dataclass(frozen=True, kw_only=True)
class DailyUsage:
    """The money that other plans have begun to move on this day. moved_minor: per currency in minor units, without
    signs.
    """

    items: int = 0
    moved_minor: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OffsetsUnread:
    """The newest judged cuts that left something unread on the topics; -1: none did."""

    at: int = -1
    """That left offsets unread, on any topic: they had gone before it could read them, or it was closed with them."""
    at_topic: Mapping[str, int] = field(default_factory=dict)
    """The same on one, by its name."""
    unreadable_at: Mapping[str, int] = field(default_factory=dict)
    """On one: with records that it could not read, and that the log may not have any more; or that saw a partition of
    it go unseen (`ClusterState.gone_unseen`).
    """

    def of_topic(self, topic: str) -> int:
        """Return that cut for one topic; for one that nobody asked about, the newest of any."""
        return self.at_topic.get(topic, self.at)

    def unreadable_of(self, topic: str) -> int:
        """Return that cut for one topic; for one that nobody asked about, the newest of any."""
        return self.unreadable_at.get(topic, max(self.unreadable_at.values(), default=-1))


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An outstanding break with every ledger row of its key.

    differs_by: a break of the key, whatever became of it, by which its copies differ, or of other money; None: there is
    none. alike: a break of the same business transaction whose copy has no partner, written off or not.
    came_after: a cut that was sampled before any of its copies came; None: the one before the cut that first saw them.
    """

    outstanding: OutstandingBreak
    rows: tuple[CurrentRow, ...]
    differs_by: BreakClass | None = None
    alike: BreakClass | None = None
    came_after: int | None = None

    @property
    def item_break(self) -> Break:
        return self.outstanding.item_break

    def may_have_partner_in(self, cut_n: int) -> bool:
        """Return whether what came behind its copies may have stood in what that cut left unread."""
        before = self.outstanding.first_seen_cut - 1 if self.came_after is None else self.came_after
        return cut_n >= max(before, 0)


class RepairKind(StrEnum):
    """The effect of an item.

    republish: publish the event that the topic lacks. reverse: take a copy back, by an event that names it. post: write
    the rows that the ledger lacks. counterpost: take a row back, by a compensating entry that names it. trigger: start
    a DAG that somebody else wrote, with the plan as its conf.
    """

    REPUBLISH = "republish"
    REVERSE = "reverse"
    POST = "post"
    COUNTERPOST = "counterpost"
    TRIGGER = "trigger"


INTO_LEDGER = (RepairKind.POST, RepairKind.COUNTERPOST)
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
    kind: RepairKind = RepairKind.REPUBLISH
    reverses: str = ""
    posts: str = ""
    triggers: str = ""

    @property
    def row(self) -> SourceRow:
        """Return the ledger row as the plan saw it."""
        return SourceRow(**{column.name: getattr(self, column.name) for column in fields(SourceRow)})


@dataclass(frozen=True, kw_only=True)
class ExcludedBreak:
    """A break that the plan does not repair, and why. break_id None: a hanging transaction, match_key its place."""

    break_id: UUID | None
    match_key: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PlanContext:
    """The cluster states that the planned run and the newest run stored; where they are one run, the same."""

    planned: ClusterState = field(default_factory=ClusterState)
    newest: ClusterState = field(default_factory=ClusterState)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The actions that one approval allows. Plans that would do the same have the same hash and id."""

    contract: str
    contract_fingerprint: str
    cut_n: int
    dry_run: bool
    items: tuple[PlanItem, ...]
    left_out: tuple[ExcludedBreak, ...]
    aborts: tuple[AbortItem, ...] = ()

    @property
    def actions(self) -> tuple[AbortItem | PlanItem, ...]:
        """Return all actions, in the order in which they are done."""
        return (*self.aborts, *self.items)

    @cached_property
    def plan_hash(self) -> str:
        """Return SHA-256 of the actions, as sorted JSON; what is left out may change while an approval waits.

        What an item says by default is no part of it, so that a field of a later release changes no stored hash.
        """
        document = PLAN_JSON.dump_python(self, mode="json", exclude={"left_out"}, exclude_defaults=True)
        return sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @cached_property
    def plan_id(self) -> UUID:
        return plan_id_of(self.plan_hash)

    @property
    def money_minor(self) -> dict[str, int]:
        """Return the money of the events, per currency in integer minor units, without signs."""
        return total_at_stake((item.currency, item.amount_minor) for item in self.items)

    @property
    def moved_minor(self) -> dict[str, int]:
        """Return the money of all actions, without signs, as caps count it: a negative amount makes no other one
        smaller.
        """
        return total_money(pair for action in self.actions for pair in action.moved_minor.items())


PLAN_JSON = TypeAdapter(Plan)


def plan_id_of(plan_hash: str) -> UUID:
    """Return the id that the store keeps a plan under."""
    return uuid5(_NAMESPACE, plan_hash)


def action_id_of(contract_name: str, break_id: UUID) -> UUID:
    """Return the one id of a break's action, the same over all plans: it makes a second repair impossible."""
    return uuid5(_NAMESPACE, f"{contract_name}\x1f{break_id}")


def rules_of(contract: Contract) -> CompensationRules:
    if contract.compensation is None:
        raise CompensationOff(f"{contract.name}: the contract has no compensation, so nothing may be repaired")
    return contract.compensation
