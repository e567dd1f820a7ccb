"""Writes how long something took or takes, in the two largest units that people would use. Pure."""

from datetime import timedelta

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def span_text(span: timedelta) -> str:
    """2 d 4 h, 3 h 12 min, 40 s; never less than nothing."""
    seconds = max(0, int(span.total_seconds()))
    parts = []
    for unit, size in _UNITS:
        parts.append((seconds // size, unit))
        seconds %= size
    first = next((n for n, (number, _) in enumerate(parts) if number), len(parts) - 1)
    return " ".join(f"{number:,} {unit}" for number, unit in parts[first : first + 2] if number) or "0 s"
