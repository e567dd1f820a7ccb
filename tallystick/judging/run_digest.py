"""The digest of a run: equal where the same was read and the same was concluded. It stands in stored verdicts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from tallystick.matching.evidence import Evidence
from tallystick.model.findings import Break, DoubtFound
from tallystick.model.open_item import OpenItem
from tallystick.model.run_result import RunFigures
from tallystick.model.verdict import Verdict


def digest_of_run(
    evidence: Evidence,
    *,
    verdict: Verdict,
    breaks: Sequence[Break],
    doubts: Sequence[DoubtFound],
    items: Sequence[OpenItem],
    figures: RunFigures,
    content_digests: Mapping[str, Any],
) -> str:
    """Compute SHA-256 of what was read and concluded. Independent of order, of attempts, and of who held a side."""
    document = {
        "contract": evidence.contract.fingerprint,
        "cut": [evidence.cut.n, [part.offsets for part in evidence.cut.topic_slices]],
        "ledger": [evidence.cut.ledger_slice.position_start, evidence.cut.ledger_slice.position_end],
        "content": content_digests,
        "verdict": verdict,
        "breaks": [str(item_break.break_id) for item_break in breaks],
        "doubts": sorted(doubt.doubt for doubt in doubts),
        "items": [[item.item_id, item.state, item.reason.stored] for item in items],
        "figures": figures,
    }
    return sha256(json.dumps(document, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return value.isoformat() if isinstance(value, datetime) else str(value)
