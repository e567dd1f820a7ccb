"""An item of a plan that publishes an event, for tests of any part."""

from uuid import UUID

from tallystick.compensation.plan import PlanItem
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
    break_id=UUID(int=11),
    break_class=BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,
    topic="payouts",
)
