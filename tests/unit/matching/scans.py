"""The result of a scan, of which a test says what it is about."""

from typing import Any

from tallystick.matching.scan_result import CanaryScan, SliceScan


def scan_of(**found: Any) -> SliceScan:
    """Only what every scan says."""
    plain: dict[str, Any] = {
        "rows_by_partition": {},
        "ledger_rows": 0,
        "matched_rows": 0,
        "matched_money": {},
        "copies": (),
        "incomplete": (),
        "unreadable_count": 0,
        "unreadable_sample": (),
        "content_digests": {},
        "canaries": CanaryScan(copies=(), incomplete=(), unreadable=1),
    }
    return SliceScan(**plain | found)
