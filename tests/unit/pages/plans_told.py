"""Plans as a page tells them."""

from datetime import UTC, datetime, timedelta

from tallystick.compensation.plan import RepairKind
from tallystick.store.plans.plan_life_store import LeftOutSum, PlanInShort, PlanSum, PlanTold
from tallystick.store.plans.plan_store import ActionState, AuditEntry
from tests.stored_books import payouts, waiting_plan

NOON, HOUR = datetime(2026, 3, 1, 12, 15, tzinfo=UTC), timedelta(hours=1)


def plan_sums(items: int, amount_minor: int, kind: RepairKind = RepairKind.REPUBLISH) -> tuple[PlanSum, ...]:
    return (PlanSum(kind=kind, currency="EUR", items=items, amount_minor=amount_minor),)


def plan_told(*events: str, counts: dict[ActionState, int] | None = None) -> PlanTold:
    """The waiting plan of the example books, after these lines of the trail."""
    plan = waiting_plan(payouts())
    detail = {"plan_hash": plan.plan_hash, "scheduler_run_id": "run-1"}
    return PlanTold(
        plan_id=plan.plan_id,
        contract=plan.contract,
        cut_n=plan.cut_n,
        plan_hash=plan.plan_hash,
        planned_at=NOON,
        in_short=PlanInShort(
            items=plan.items[:1],
            sums=plan_sums(2, 129_200),
            left_out=(LeftOutSum(reason="over the cap on EUR", breaks=4, match_keys=("a", "b", "c")),),
        ),
        actions={},
        counts=counts or {},
        trail=tuple(
            AuditEntry(
                contract=plan.contract, plan_id=plan.plan_id, actor="Ada", event=event, detail=detail, recorded_at=NOON
            )
            for event in events
        ),
    )
