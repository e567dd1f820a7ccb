"""Flattens the evidence of a break into lines of path and value. Pure."""

from collections.abc import Iterator
from typing import Any

from tallystick.text.money import format_money
from tallystick.text.plain import escape_untrusted

EVIDENCE_LINES_MAX = 40
"""Per break; the store has the rest."""

_IN_MINOR_UNITS = "_minor"


def evidence_lines(evidence: Any) -> tuple[tuple[str, str], ...]:
    """Flatten JSON values to (path, value) in the order of their keys: ("copy.producer_id", "4001"). Money per currency
    is one value: ("money", "1,234.56 EUR").
    """
    lines = list(_flatten("", evidence))
    more = len(lines) - EVIDENCE_LINES_MAX
    shown = tuple((escape_untrusted(path), escape_untrusted(value)) for path, value in lines[:EVIDENCE_LINES_MAX])
    return shown if more <= 0 else (*shown, ("...", f"{more:,} more lines in the verdict store"))


def _flatten(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            below = f"{path}.{key}" if path else str(key)
            if _is_money(key, value[key]):
                yield below.removesuffix(_IN_MINOR_UNITS), format_money(value[key])
            else:
                yield from _flatten(below, value[key])
    elif isinstance(value, list | tuple) and value:
        for position, member in enumerate(value):
            yield from _flatten(f"{path}[{position}]", member)
    else:
        yield path, _scalar(value)


def _is_money(key: Any, value: Any) -> bool:
    return isinstance(value, dict) and (key == "money" or str(key).endswith(_IN_MINOR_UNITS))


def _scalar(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value not in ({}, [], "") else "none"
