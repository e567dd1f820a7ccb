"""The digest of a run: equal where the same was read and the same was concluded. It stands in stored verdicts."""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from itertools import islice
from json.encoder import encode_basestring_ascii as _text
from typing import Any, cast

from tallystick.matching.evidence import Evidence
from tallystick.model.findings import Break, DoubtFound
from tallystick.model.open_item import OpenItem
from tallystick.model.run_result import RunFigures
from tallystick.model.verdict import Verdict

_TOGETHER = 1_000
"""Members of a list that are put into words together."""


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
        "breaks": map(_break_text, breaks),
        "doubts": sorted(doubt.doubt for doubt in doubts),
        "items": map(_item_text, items),
        "figures": figures,
    }
    digest = sha256()
    for piece in _pieces(document):
        digest.update(piece.encode())
    return digest.hexdigest()


def _pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `json.dumps` makes of all of it: of a broken window that is as large as all of its items together."""
    before = "{"
    for name, value in sorted(document.items()):
        yield f"{before}{json.dumps(name)}: "
        if isinstance(value, Iterator):
            yield from _list_in_pieces(value)
        else:
            yield json.dumps(value, sort_keys=True, default=_plain)
        before = ", "
    yield "}"


def _list_in_pieces(members: Iterator[str]) -> Iterator[str]:
    before = "["
    while some := ", ".join(islice(members, _TOGETHER)):
        yield before + some
        before = ", "
    yield "[]" if before == "[" else "]"


def _break_text(item_break: Break) -> str:
    return f'"{item_break.break_id}"'


def _item_text(item: OpenItem) -> str:
    return f"[{_text(item.item_id)}, {_text(item.state)}, {_text(item.reason.stored)}]"


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Of a dataclass; none of anything else. A run's figures hold a census of each partition."""
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else ()


def _plain(value: object) -> object:
    names = _field_names(cast(Hashable, type(value)))
    if names:
        return {name: getattr(value, name) for name in names}
    return value.isoformat() if isinstance(value, datetime) else str(value)
