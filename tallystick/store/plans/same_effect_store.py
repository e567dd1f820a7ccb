"""Other actions that do, or may have done, what one is to do: by its key, or by the row or event it is made from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, Text, cast, func, select
from sqlalchemy.dialects.postgresql import JSONPATH

from tallystick.compensation.effect_words import Effect
from tallystick.compensation.plan import PlanItem, RepairKind
from tallystick.store.plans.plan_store import HOLDING
from tallystick.store.schema import compensation_action, compensation_plan
from tallystick.store.statement_parts import in_parts


@dataclass(frozen=True, kw_only=True)
class OtherAction:
    """Another action that holds what one does. reverses: item id of what it takes back, or "". triggers: id of the DAG
    that it was handed to, or "". same_effect: it is the same to a side, by its key. same_source: it is done by the same
    row or event.
    """

    plan_id: UUID
    contract: str
    reverses: str
    triggers: str
    same_effect: bool
    same_source: bool


def same_effect(connection: Connection, effects: Mapping[UUID, Effect]) -> dict[UUID, tuple[OtherAction, ...]]:
    """Return, of each of these actions, those others. Several of one plan may have one effect."""
    ours = actions_by_effect(effects)
    c = compensation_action.c
    own = func.jsonb_build_object("id", cast(c.action_id, Text))
    path = cast("$.items[*] ? (@.action_id == $id)", JSONPATH)
    found: dict[UUID, tuple[OtherAction, ...]] = {}
    for some in in_parts(sorted(ours)):
        statement = (
            select(
                c.effect,
                c.source,
                c.action_id,
                c.plan_id,
                compensation_plan.c.contract,
                func.jsonb_path_query_first(compensation_plan.c.body, path, own).label("item"),
            )
            .join(compensation_plan, compensation_plan.c.plan_id == c.plan_id)
            .where(c.effect.in_(some) | c.source.in_(some), c.state.in_(HOLDING))
        )
        for row in connection.execute(statement):
            planned = row.item or {}
            for action_id in {one for said in (row.effect, row.source) for one in ours.get(said, ())} - {row.action_id}:
                other = OtherAction(
                    plan_id=row.plan_id,
                    contract=row.contract,
                    reverses=planned.get("reverses", ""),
                    triggers=planned.get("triggers", ""),
                    same_effect=row.effect in effects[action_id].hashes,
                    same_source=row.source is not None and row.source == effects[action_id].source,
                )
                found[action_id] = (*found.get(action_id, ()), other)
    return found


def actions_by_effect(effects: Mapping[UUID, Effect]) -> dict[str, list[UUID]]:
    """Return all actions of each hash, be it of what they do, in the words of today or of an older release, or of what
    they do it by.
    """
    found: dict[str, list[UUID]] = {}
    for action_id, effect in effects.items():
        for one in (*effect.hashes, *filter(None, [effect.source])):
            found.setdefault(one, []).append(action_id)
    return found


def taken_back_beside(same: Mapping[UUID, Sequence[OtherAction]]) -> dict[UUID, frozenset[str]]:
    """Return of each action what others of its key take back."""
    by_key = {one: [other for other in others if other.same_effect] for one, others in same.items()}
    return {one: frozenset(other.reverses for other in others) for one, others in by_key.items() if others}


def done_elsewhere(
    contract_name: str, items: Iterable[PlanItem], same: Mapping[UUID, Sequence[OtherAction]]
) -> dict[UUID, str]:
    """Return the items whose effect another action has, or may have by now, and why not to begin them.

    By one row or event two contracts do the same, whatever each of them calls its key. Whether the other one's event or
    row is this break's partner no look by that key tells, so that stays with people.
    """
    reasons: dict[UUID, str] = {}
    for item in items:
        for other in same.get(item.action_id, ()):
            by = f"plan {other.plan_id} of {other.contract}"
            if _excludes(contract_name, item, other):
                reasons[item.action_id] = f"{by} has done the same, or is doing it"
            elif other.same_source and other.contract != contract_name:
                reasons[item.action_id] = (
                    f"{by} has repaired by the same row or event, or may have; look what came of that, and repair this "
                    "one by hand, or write the break off"
                )
    return reasons


def _excludes(contract_name: str, item: PlanItem, other: OtherAction) -> bool:
    """Return whether the item may not be done beside the other action of its key.

    Of a DAG nobody knows which copy it takes, so that no other contract does the same beside it; within one contract
    each break has one repair. Another copy of a key may be taken back, as long as one is left: that is proven on the
    log, or in the ledger.
    """
    if not other.same_effect:
        return False
    if item.kind is RepairKind.TRIGGER or other.triggers:
        return other.contract != contract_name
    return other.reverses == item.reverses
