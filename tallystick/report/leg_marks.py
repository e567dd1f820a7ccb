"""The legs of a business transaction, one line each: committed where, aborted, or nowhere. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tallystick.model.findings import Break
from tallystick.report.break_story import describe_place
from tallystick.text.plain import escape_untrusted


@dataclass(frozen=True, kw_only=True)
class LegMark:
    """One expected leg. state: "committed", "aborted" or "absent"."""

    leg: str
    topic: str
    state: str
    words: str


def leg_marks(item_break: Break, legs: Mapping[str, str]) -> tuple[LegMark, ...]:
    """Every leg that the contract expects, by name; none for a break that is not about legs."""
    seen = item_break.evidence.get("seen_legs")
    if not isinstance(seen, Mapping):
        return ()
    return tuple(_mark(item_break.evidence, leg, legs[leg], seen) for leg in sorted(legs))


def _mark(evidence: Mapping[str, Any], leg: str, topic: str, seen: Mapping[str, Any]) -> LegMark:
    if leg in seen:
        at = str(seen[leg])
        words = f"committed at {describe_place(at)}{_marker(evidence, at)}"
        return LegMark(leg=escape_untrusted(leg), topic=topic, state="committed", words=words)
    aborted = [
        str(hit["at"])
        for hit in evidence.get("found_elsewhere", ())
        if hit.get("place") == "aborted" and str(hit.get("at", "")).startswith(f"topic:{topic}:")
    ]
    if aborted:
        places = ", ".join(f"{describe_place(at)}{_marker(evidence, at)}" for at in aborted)
        return LegMark(leg=escape_untrusted(leg), topic=topic, state="aborted", words=f"aborted at {places}")
    return LegMark(leg=escape_untrusted(leg), topic=topic, state="absent", words="not on the retained log")


def _marker(evidence: Mapping[str, Any], at: str) -> str:
    """Which marker ended the leg's transaction, where the run read it."""
    origin = evidence.get("identities", {}).get(at)
    span = origin.get("span") if isinstance(origin, Mapping) else None
    if not span or span.get("marker") is None:
        return ""
    return f", {span['marker']} marker at {span['marker_offset']}"
