"""Figures of one contract's books at noon."""

from datetime import UTC, datetime, timedelta

from tallystick.model.finding_names import BreakClass
from tallystick.model.metric_figures import ClassTotal, ContractFigures, JudgedWindow, SinkFigures
from tallystick.model.open_item import ItemState, ItemTotal
from tallystick.model.verdict import Verdict

NOON, HOUR = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(hours=1)
JUDGED = JudgedWindow(
    verdict=Verdict.BROKEN,
    window_end_utc=NOON - HOUR,
    run_seconds=42.5,
    topic_settled_until_utc=NOON - 3 * HOUR,
    ledger_settled_until_utc=NOON - HOUR,
    expires_utc=NOON + 5 * HOUR,
)


def standing(
    state: ItemState, amount_minor: int, currency: str = "EUR", *, age: timedelta = HOUR / 2, count: int = 1
) -> ClassTotal:
    return ClassTotal(
        break_class=BreakClass.MISSING_IN_LEDGER if state is ItemState.BROKEN else None,
        items=ItemTotal(
            state=state, first_seen_utc=NOON - age, currency=currency, count=count, amount_minor=amount_minor
        ),
    )


BOOKS = ContractFigures(
    contract="payouts",
    due_utc=NOON + HOUR,
    judged=JUDGED,
    standing=(standing(ItemState.BROKEN, 1_250), standing(ItemState.OPEN, 99, "JPY")),
    sinks=(SinkFigures(sink="file:a", failures=3, owed=2),),
)
