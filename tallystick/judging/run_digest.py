"""The digest of a run: equal where the same was read and the same was concluded. It stands in stored verdicts."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any, cast

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


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Of a dataclass; none of anything else. A run's figures hold a census of each partition."""
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else ()


def _plain(value: object) -> object:
    names = _field_names(cast(Hashable, type(value)))
    if names:
        return {name: getattr(value, name) for name in names}
    return value.isoformat() if isinstance(value, datetime) else str(value)
