"""Writes single values of the report for people: times, texts of strangers, evidence. Pure."""

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

TEXT_CHARACTERS_MAX = 300
EVIDENCE_LINES_MAX = 40
"""Per break; the store has the rest."""


def format_time(moment: datetime) -> str:
    """2026-03-01 12:00:00 UTC, whatever zone the database answered in."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_window(start: datetime, end: datetime) -> str:
    """The interval's two ends; a date that both share stands once."""
    first, last = start.astimezone(UTC), end.astimezone(UTC)
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"{first:%Y-%m-%d %H:%M:%S} to {until} UTC"


def foreign_text(text: str) -> str:
    """A text from a payload, safe to look at: control and direction marks written out, and not endless.

    A right-to-left mark inside a match key would turn the page's own words around. Escaping is the template's work.
    """
    shown = text[:TEXT_CHARACTERS_MAX]
    visible = "".join(_written_out(character) for character in shown)
    return visible if len(text) <= TEXT_CHARACTERS_MAX else f"{visible}... ({len(text):,} characters)"


def evidence_lines(evidence: Any) -> tuple[tuple[str, str], ...]:
    """Flatten evidence to (path, value) in the order of its keys: ("copy.producer_id", "4001")."""
    lines = list(_flatten("", evidence))
    more = len(lines) - EVIDENCE_LINES_MAX
    shown = tuple((foreign_text(path), foreign_text(value)) for path, value in lines[:EVIDENCE_LINES_MAX])
    return shown if more <= 0 else (*shown, ("...", f"{more:,} more lines in the verdict store"))


def _written_out(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp"):
        return f"\\u{ord(character):04x}"
    return character


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
