"""The proof that a record of a progress topic gives: that an executor of this store published an action. Pure.

Anybody who may write the topic may write a record. So one counts only with the executor's seal, for a stored plan that
holds its action, and for the action's topic. Any other one under an action's key may be all that compaction has left of
a record that counted: nobody can say then whether the action was published, and a person has to look.
"""

import hmac
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from tallystick.compensation.plan import Plan, PlanItem, plan_id_of
from tallystick.kafka_log.event_decoder import DECODE_ERRORS

_KEY = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VALUE_BYTES_MAX = 4096
"""Ours have some 500, with the longest topic's name."""


class ProgressClaim(msgspec.Struct, frozen=True):
    """The content of a record about its action. seal: "" in those of release 0.1.0."""

    plan_id: UUID
    plan_hash: str
    topic: str
    seal: str = ""


@dataclass(frozen=True, kw_only=True)
class ProgressRecord:
    """A record under an action's key. claim: None where it says none; problem: why, as a clause about it."""

    place: str
    kafka_offset: int
    claim: ProgressClaim | None
    problem: str = ""


@dataclass(frozen=True)
class ExecutorKey:
    """The secret of the executors of one verdict store, by which they know their own records."""

    secret: bytes = field(repr=False)

    def seal(self, action_id: UUID, *, plan_id: UUID, plan_hash: str, topic: str, reopened: int) -> str:
        """Return HMAC-SHA-256, in hex. reopened: how often a person had reopened the action; earlier seals end with
        that.
        """
        said = ["tallystick progress", str(action_id), str(plan_id), plan_hash, topic, reopened]
        return hmac.new(self.secret, json.dumps(said).encode(), "sha256").hexdigest()

    def has_sealed(self, action_id: UUID, claim: ProgressClaim, *, reopened: int) -> bool:
        seal = self.seal(
            action_id, plan_id=claim.plan_id, plan_hash=claim.plan_hash, topic=claim.topic, reopened=reopened
        )
        return hmac.compare_digest(seal.encode(), claim.seal.encode())


@dataclass(frozen=True, kw_only=True)
class ProgressFound:
    """The proof by all records of one action. doubt: why a person has to look; "" where none has to."""

    published: bool = False
    doubt: str = ""


Planned = Mapping[UUID, Mapping[UUID, str]]
"""Of stored plans, by id: the topic of each of their items, by action id."""


def progress_record(key: ExecutorKey, plan: Plan, item: PlanItem, *, reopened: int) -> tuple[bytes, bytes]:
    """Return key and value of the record that stands beside the item's event."""
    value = {"plan_id": str(plan.plan_id), "plan_hash": plan.plan_hash, "topic": item.topic}
    seal = key.seal(item.action_id, plan_id=plan.plan_id, plan_hash=plan.plan_hash, topic=item.topic, reopened=reopened)
    return str(item.action_id).encode(), json.dumps(value | {"seal": seal}).encode()


def action_of_key(key: bytes) -> UUID | None:
    """Return the action that a record is about; None for a key that no executor writes."""
    return UUID(key.decode()) if _KEY.fullmatch(key) else None


def read_record(place: str, kafka_offset: int, value: bytes) -> ProgressRecord:
    """Read a record, whatever its bytes. place: topic and partition, as a person reads them."""
    problem, claim = "", None
    if not value:
        problem = "has no value, so it deletes what stood before"
    elif len(value) > _VALUE_BYTES_MAX:
        problem = f"has {len(value):,} bytes, and no executor writes more than {_VALUE_BYTES_MAX:,}"
    else:
        try:
            claim = _DECODE(value)
        except DECODE_ERRORS:
            problem = "is none that an executor writes"
    return ProgressRecord(place=place, kafka_offset=kafka_offset, claim=claim, problem=problem)


def sealed_plans(records: Iterable[ProgressRecord], key: ExecutorKey, action_id: UUID, *, reopened: int) -> set[UUID]:
    """Return the plans by which an executor says that it published the action."""
    claims = [record.claim for record in records if record.claim is not None]
    return {claim.plan_id for claim in claims if key.has_sealed(action_id, claim, reopened=reopened)}


def judge_progress(
    item: PlanItem,
    records: Sequence[ProgressRecord],
    *,
    key: ExecutorKey,
    planned: Planned,
    reopened: int = 0,
    void_before: int = 0,
) -> ProgressFound:
    """Judge all records under the action's key, in offset order: published, a person has to look, or nothing.

    One that counts proves it, whatever anybody has written before or behind it. reopened: how often a person has
    reopened the action; void_before: records below this offset are what that person looked at, and prove nothing.
    """
    doubt = ""
    for record in records:
        if record.kafka_offset < void_before:
            continue
        reason = _why_not_ours(item, record, key, planned, reopened)
        if not reason:
            return ProgressFound(published=True)
        doubt = f"{record.place} at {record.kafka_offset} has the action's key and {reason}"
    return ProgressFound(doubt=doubt)


def topics_of(plans: Collection[Plan]) -> Planned:
    return {plan.plan_id: {item.action_id: item.topic for item in plan.items} for plan in plans}


def _why_not_ours(
    item: PlanItem, record: ProgressRecord, key: ExecutorKey, planned: Planned, reopened: int
) -> str | None:
    claim = record.claim
    if claim is None:
        return record.problem
    if not claim.seal:
        return "no seal of an executor, as anybody may write it, and release 0.1.0 did"
    if not key.has_sealed(item.action_id, claim, reopened=reopened):
        return "not the seal of this store's executor for it"
    plan = planned.get(claim.plan_id)
    if plan is None or plan_id_of(claim.plan_hash) != claim.plan_id:
        return (
            f"names plan {claim.plan_id}, which an executor of this store has carried out and the store does not know: "
            "it was restored from an older copy"
        )
    if item.action_id not in plan:
        return f"names plan {claim.plan_id}, which has no such action"
    if not claim.topic == item.topic == plan[item.action_id]:
        return f"names another topic than {item.topic}"
    return None


_DECODE = msgspec.json.Decoder(ProgressClaim).decode
