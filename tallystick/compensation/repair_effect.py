"""The effect of a repair on its break, by the copies that both sides have of its key now. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from tallystick.compensation.plan import CurrentRow, PlanItem, RepairKind
from tallystick.compensation.planning import rows_in_force, why_not_counterpostable, why_taken_back_elsewhere
from tallystick.compensation.republished_event import CurrentEvent, in_force, says_the_same
from tallystick.contract.event import EventFields


class RepairEffect(StrEnum):
    """The effect of one action, read again.

    cleared: one event and one row stand, and both say what the plan says; or our marker has ended the transaction.
    not_cleared: nothing of the repair stands. changed: something else stands, such as a second copy, another amount, or
    another marker. hidden: an open producer transaction hides what stands, or another Airflow may have its DAG's run.
    handed_over: its DAG's run stands and has not failed; whether that clears the break, the next run of the
    reconciliation says.
    """

    CLEARED = "cleared"
    NOT_CLEARED = "not_cleared"
    CHANGED = "changed"
    HIDDEN = "hidden"
    HANDED_OVER = "handed_over"


def effect_of(
    item: PlanItem, standing: Collection[CurrentEvent], rows: Sequence[CurrentRow], names: EventFields
) -> RepairEffect:
    """Judge the effect. standing: every event of the item's key on the retained log. rows: every row of it in the
    ledger.

    What is posted is looked for in the ledger alone: the log may have forgotten the event by then.
    """
    if not _is_done(item, standing, rows):
        return RepairEffect.NOT_CLEARED
    left = rows_in_force(rows)
    if item.kind is RepairKind.COUNTERPOST:
        alone = len(left) == 1 and why_taken_back_elsewhere(rows, rows) is None
        return RepairEffect.CLEARED if alone and is_taken_back_once(item, rows) else RepairEffect.CHANGED
    if not has_its_row(item, left):
        return RepairEffect.CHANGED
    if item.kind is RepairKind.POST:
        return RepairEffect.CLEARED
    copies = in_force(standing)
    alone = len(copies) == 1 and says_the_same(copies[0], item, names)
    reversals = _reversals(item, standing)
    as_meant = len(reversals) < 2 and all(_has_its_money(reversal, item, names) for reversal in reversals)
    return RepairEffect.CLEARED if alone and as_meant else RepairEffect.CHANGED


def is_taken_back_once(item: PlanItem, rows: Sequence[CurrentRow]) -> bool:
    """Return whether exactly one row takes the item's row back, with its money, whatever the sign."""
    by = [row for row in rows if row.takes_back == item.row_id]
    said = [(row.transaction_key, row.leg, abs(row.amount_minor), row.currency) for row in by]
    return said == [(item.transaction_key, item.leg, abs(item.amount_minor), item.currency)]


def why_not_taken_back(item: PlanItem, rows: Sequence[CurrentRow]) -> str | None:
    """Return the reason not to take the item's row back, by the contract's rows of its key; None: there is none."""
    row = next((row for row in rows if row.row_id == item.row_id), None)
    if row is None or row.source != item.row:
        return "the ledger row is gone or changed"
    return why_not_counterpostable(row, rows)


def has_its_row(item: PlanItem, rows: Sequence[CurrentRow]) -> bool:
    """Return whether the ledger has exactly one row of the event, and an equal one."""
    said = [(row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency) for row in rows]
    return said == [(item.match_key, item.transaction_key, item.leg, item.amount_minor, item.currency)]


def _has_its_money(reversal: CurrentEvent, item: PlanItem, names: EventFields) -> bool:
    """Return whether the money is equal, whatever the sign, as the contract says it."""
    negated = replace(item, amount_minor=-item.amount_minor)
    return says_the_same(reversal, item, names) or says_the_same(reversal, negated, names)


def rows_show(item: PlanItem, rows: Sequence[CurrentRow]) -> bool:
    """Return whether the ledger's rows of the key show what the item posts: a row, or one that takes its row back."""
    return bool(rows) if item.kind is RepairKind.POST else any(row.takes_back == item.row_id for row in rows)


def _is_done(item: PlanItem, standing: Collection[CurrentEvent], rows: Sequence[CurrentRow]) -> bool:
    match item.kind:
        case RepairKind.POST | RepairKind.COUNTERPOST:
            return rows_show(item, rows)
        case RepairKind.REVERSE:
            return bool(_reversals(item, standing))
        case RepairKind.REPUBLISH:
            return bool(in_force(standing))
        case RepairKind.TRIGGER:
            raise ValueError(
                f"{item.match_key} was handed to a DAG, which no side shows; expected one of our own repairs"
            )


def _reversals(item: PlanItem, standing: Collection[CurrentEvent]) -> list[CurrentEvent]:
    return [event for event in standing if item.reverses and event.reverses == item.reverses]
