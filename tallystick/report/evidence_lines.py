"""Flattens the evidence of a break into lines of path and value. Pure."""

from collections.abc import Iterator
from typing import Any

from tallystick.text.plain import escape_untrusted

EVIDENCE_LINES_MAX = 40
"""Per break; the store has the rest."""


def evidence_lines(evidence: Any) -> tuple[tuple[str, str], ...]:
    """Flatten JSON values to (path, value) in the order of their keys: ("copy.producer_id", "4001")."""
    lines = list(_flatten("", evidence))
    more = len(lines) - EVIDENCE_LINES_MAX
    shown = tuple((escape_untrusted(path), escape_untrusted(value)) for path, value in lines[:EVIDENCE_LINES_MAX])
    return shown if more <= 0 else (*shown, ("...", f"{more:,} more lines in the verdict store"))


def _flatten(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _flatten(f"{path}.{key}" if path else str(key), value[key])
    elif isinstance(value, list | tuple) and value:
        for position, member in enumerate(value):
            yield from _flatten(f"{path}[{position}]", member)
    else:
        yield path, _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value not in ({}, [], "") else "none"
