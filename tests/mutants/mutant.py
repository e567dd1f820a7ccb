"""A mutant: a module with one small change, and how it is named when it survives."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """file: below the repository. function: its qualified name; empty outside of every body of a function."""

    file: str
    line: int
    function: str
    was: str
    now: str
    source: str

    @property
    def name(self) -> tuple[str, str, str, str]:
        """What a reason is kept under: no line number, which the next edit above it would change."""
        return self.file, self.function, self.was, self.now


def difference(before: str, after: str) -> tuple[str, str]:
    """Return the lines that differ, each side as one line without indentation."""
    old, new = ([line.strip() for line in text.splitlines()] for text in (before, after))
    ahead = _alike(old, new)
    behind = min(_alike(old[::-1], new[::-1]), min(len(old), len(new)) - ahead)
    return _joined(old, ahead, behind), _joined(new, ahead, behind)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _joined(lines: Sequence[str], ahead: int, behind: int) -> str:
    return " ".join(lines[ahead : len(lines) - behind]).strip()
