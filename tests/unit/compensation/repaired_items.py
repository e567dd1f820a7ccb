"""An item of a plan that takes an event back."""

from uuid import UUID

from tallystick.compensation.plan import PlanItem, RepairKind
from tallystick.model.finding_names import BreakClass

ITEM = PlanItem(
    row_id="7",
    match_key="ev-1",
    transaction_key="pay-1",
    leg="payout",
    amount_minor=250,
    currency="EUR",
    occurred_at="",
    action_id=UUID(int=1),
    break_id=UUID(int=2),
    break_class=BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE,
    topic="payouts",
    kind=RepairKind.REVERSE,
    reverses="topic:payouts:0:9",
)
