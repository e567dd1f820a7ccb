"""The score of a crash matrix: each effect of a plan stands once, or not at all and the executor said why. Pure.

Where somebody else brought it about, it stands once by them, and the executor said why it did nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CRASH_COLUMNS = (
    "events",
    "exactly_once",
    "refused_rightly",
    "refused",
    "doubled",
    "lost",
    "mistold",
    "without_evidence",
)
_RIGHT = ("exactly_once", "refused_rightly", "refused")


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the executor said last of one event. fate "": it never said that it had done with it."""

    fate: str = ""
    reason: str = ""

    @property
    def stands(self) -> bool:
        """Did it say that the effect stands?"""
        return self.fate in ("published", "already_published", "done", "already_done")

    @property
    def refuses(self) -> bool:
        """Did it say that it did nothing, and why?"""
        return self.fate == "refused" and bool(self.reason)


@dataclass(frozen=True, kw_only=True)
class EventEnd:
    """How one event of a plan ended. copies: how often its effect was ever committed.

    counted_as: what the reader counts it by. state: of its action in the store. evidence: does the trail have what it
    has to before there is an effect? by_another: did somebody else bring the effect about, as they know themselves?
    """

    match_key: str
    counted_as: str
    copies: int
    told: Told
    state: str
    evidence: bool = True
    by_another: bool = False

    @property
    def column(self) -> str:
        """exactly_once: by the executor. refused_rightly: once, by somebody else. refused: nowhere. Else doubled, lost
        (without a word), mistold (once, and something else is said), or without_evidence (once, and the trail has not
        what it has to).
        """
        if self.copies > 1:
            return "doubled"
        if self.copies == 1 and not self.evidence:
            return "without_evidence"
        refuses = self.told.refuses and self.state != "done"
        if self.copies == 0:
            return "refused" if refuses and not self.by_another else "lost"
        if self.by_another:
            return "refused_rightly" if refuses else "mistold"
        return "exactly_once" if self.told.stands and self.state == "done" else "mistold"

    @property
    def sentence(self) -> str:
        said = f"{self.told.fate or 'nothing'}{f', {self.told.reason}' if self.told.reason else ''}"
        times = f"{self.copies} times{', by another hand' if self.by_another else ''}"
        return f"event {self.match_key} stands {times}; executor: {said}; store: {self.state or 'nothing'}"


@dataclass(frozen=True, kw_only=True)
class RoundEnd:
    """hung: starts that were killed at their deadline. faults: what else is wrong, such as a plan never finished.

    may_refuse, by_another: so many of its events, and no more and no fewer, are refused and stand nowhere, or once by
    somebody else. books: those that it was played on.
    """

    name: str
    books: str
    kind: str
    step: str
    fault: str
    events: tuple[EventEnd, ...]
    starts: int
    hung: int
    seconds: float
    faults: tuple[str, ...] = ()
    may_refuse: int = 0
    by_another: int = 0

    @property
    def differs(self) -> tuple[str, ...]:
        wrong = [event.sentence for event in self.events if event.column not in _RIGHT]
        nothing = [] if self.events else ["it has no event, so it proves nothing"]
        if not wrong:
            wrong += self._other_than("refused", self.may_refuse) + self._other_than("refused_rightly", self.by_another)
        return (*wrong, *nothing, *self.faults)

    def _other_than(self, column: str, expected: int) -> list[str]:
        found = [event.sentence for event in self.events if event.column == column]
        said = f": {'; '.join(found)}" if found else ""
        return [] if len(found) == expected else [f"{len(found)} {column}, expected {expected}{said}"]

    @property
    def counts(self) -> Counter[str]:
        return Counter({"events": len(self.events)}) + Counter(event.column for event in self.events)


def crash_figures(ends: Sequence[RoundEnd]) -> dict[str, object]:
    """The sums over all rounds, and those of each kind, each step and each fault."""
    return {
        **_sums(ends),
        "starts": sum(end.starts for end in ends),
        "hung": sum(end.hung for end in ends),
        "by_kind": _grouped((end.kind, end) for end in ends),
        "by_step": _grouped((end.step, end) for end in ends),
        "by_fault": _grouped((end.fault, end) for end in ends),
        "cells": len({(end.kind, end.step, end.fault) for end in ends}),
        "differs": [
            f"round {end.name} ({end.kind}, {end.step}, {end.fault}): {claim}; "
            f"alone: make crash ROUNDS=1 SEED={end.name}"
            for end in ends
            for claim in end.differs
        ],
    }


def _grouped(named: Iterable[tuple[str, RoundEnd]]) -> Mapping[str, Mapping[str, int]]:
    groups: dict[str, list[RoundEnd]] = {}
    for name, end in named:
        groups.setdefault(name, []).append(end)
    return {name: {"rounds": len(ends)} | _sums(ends) for name, ends in sorted(groups.items())}


def _sums(ends: Iterable[RoundEnd]) -> dict[str, int]:
    total = sum((end.counts for end in ends), Counter[str]())
    return {column: total[column] for column in CRASH_COLUMNS}
