"""Rows behind the ledger's horizon, and where the other rows are, seen from the cut. Pure.

A cut's slice ends at the horizon of its moment, or at the mark where that is lower: what lies at or behind its end is
left to a later cut. Where the horizon of a kind of ledger stands, that kind says: `Ledger.read_snapshot`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.match_case import LookupHit, RecordLocation
from tallystick.matching.scan_result import ledger_item_id
from tallystick.model.cut import LedgerSlice
from tallystick.model.open_item import ItemSide


def is_behind_horizon(row: LedgerRow, ledger_slice: LedgerSlice) -> bool:
    """Return whether a row that a look-up sees is one that this cut could not read."""
    return row.position >= ledger_slice.position_end


def unread_where_reused(
    by_key: Mapping[str, tuple[LookupHit, ...]], ledger_slice: LedgerSlice
) -> Mapping[str, tuple[LookupHit, ...]]:
    """Return the same hits; a row is unread, and not matched in an earlier slice, where its position may have come
    again since the slice was fixed.
    """

    def seen_now(hit: LookupHit) -> LookupHit:
        if hit.side is not ItemSide.LEDGER or hit.place is not RecordLocation.EARLIER_SLICE:
            return hit
        may_reuse = ledger_slice.may_reuse(hit.detail["transaction_id"])
        return replace(hit, place=RecordLocation.UNREAD) if may_reuse else hit

    return {key: tuple(map(seen_now, found)) for key, found in by_key.items()}


def locate_row(row: LedgerRow, ledger_slice: LedgerSlice) -> LookupHit:
    """Locate a row by its position."""
    if row.position < ledger_slice.baseline_position:
        place = RecordLocation.BEFORE_BASELINE
    elif row.position < ledger_slice.position_start:
        was_read = row.was_read and not ledger_slice.may_reuse(row.position)
        place = RecordLocation.EARLIER_SLICE if was_read else RecordLocation.UNREAD
    elif is_behind_horizon(row, ledger_slice):
        place = RecordLocation.PENDING
    else:
        place = RecordLocation.SLICE
    detail: dict[str, Any] = {"transaction_id": row.position}
    if row.reverses:
        detail["reverses"] = ledger_item_id(row.reverses)
    if row.action_id:
        detail |= {"action_id": row.action_id, "amount_minor": row.amount_minor, "currency": row.currency}
    return LookupHit(side=ItemSide.LEDGER, place=place, item_id=ledger_item_id(row.row_id), detail=detail)
