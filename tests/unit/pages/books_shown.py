"""Books and breaks as the pages show them."""

from datetime import datetime, timedelta

from tallystick.model.break_history import LifeStep, ToldBreak
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.metric_figures import ClassTotal
from tallystick.model.open_item import ItemState, ItemTotal, WriteOff
from tallystick.model.verdict import Verdict
from tallystick.pages.break_page import BreakPage, break_page
from tallystick.store.breaks.break_life_store import AlertTold, RepairTold
from tallystick.store.views.overview_store import ContractOverview, OverviewWindow
from tests.stored_books import cut_of, item_of, missing, payouts
from tests.unit.pages.plans_told import HOUR, NOON

VERDICTS = (Verdict.INCONCLUSIVE, Verdict.MATCHED, Verdict.BROKEN, None)


def windows(*verdicts: Verdict | None, until: datetime = NOON) -> tuple[OverviewWindow, ...]:
    first = until - len(verdicts) * HOUR
    return tuple(
        OverviewWindow(
            cut_n=n, window_start_utc=first + n * HOUR, window_end_utc=first + (n + 1) * HOUR, verdict=verdict
        )
        for n, verdict in enumerate(verdicts)
    )


def standing(
    state: ItemState, amount_minor: int, currency: str = "EUR", *, count: int = 1, age: timedelta = HOUR
) -> ClassTotal:
    items = ItemTotal(state=state, first_seen_utc=NOON - age, currency=currency, count=count, amount_minor=amount_minor)
    broken = state is ItemState.BROKEN
    return ClassTotal(break_class=BreakClass.AMOUNT_MISMATCH if broken else None, items=items)


def book(*stands: ClassTotal, verdicts: tuple[Verdict | None, ...] = VERDICTS, held: bool = False) -> ContractOverview:
    doubt = DoubtFound(
        doubt=Doubt.HELD_BY_OPEN_TRANSACTION,
        sentence="held",
        details={"transactional_id": "relay-1", "since_utc": "2026-03-01 11:40:00 UTC"},
    )
    return ContractOverview(
        contract=payouts(),
        windows=windows(*verdicts),
        standing=stands,
        doubts=(doubt,) if held else (),
        cut=cut_of(payouts(), 20 if held else 3, NOON),
        read_cut_n=2,
        expires_utc=NOON + 5 * HOUR,
    )


def told(*states: ItemState, written_off: WriteOff | None = None) -> ToldBreak:
    """A break of cut 12 whose item has gone through these states, one a cut."""
    found = missing(payouts(), "pay-2", 99)
    life = tuple(
        LifeStep(
            cut_n=12 + n,
            judged_utc=NOON + n * HOUR,
            item=item_of(found, 12, NOON - HOUR, state),
            written_off=written_off if state is ItemState.WRITTEN_OFF else None,
        )
        for n, state in enumerate(states)
    )
    return ToldBreak(
        item_break=found,
        contract="billing_payouts",
        cut_n=12,
        window_start_utc=NOON - HOUR,
        window_end_utc=NOON,
        judged_utc=NOON,
        topic_settled_until_utc=None,
        ledger_settled_until_utc=None,
        life=life,
    )


def page_of_break(
    one: ToldBreak, *, alerts: tuple[AlertTold, ...] = (), repairs: tuple[RepairTold, ...] = ()
) -> BreakPage:
    return break_page(one, payouts(), alerts=alerts, repairs=repairs)
