"""The score of a crash matrix: each effect of a plan stands once, or not at all and the executor said why. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CRASH_COLUMNS = ("events", "exactly_once", "refused", "doubled", "lost", "mistold", "without_evidence")


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the executor said last of one event. fate "": it never said that it had done with it."""

    fate: str = ""
    reason: str = ""

    @property
    def stands(self) -> bool:
        """Did it say that the effect stands?"""
        return self.fate in ("published", "already_published", "done", "already_done")


@dataclass(frozen=True, kw_only=True)
class EventEnd:
    """How one event of a plan ended. copies: how often its effect was ever committed.

    counted_as: what the reader counts it by. state: of its action in the store. evidence: does the trail have what it
    has to before there is an effect?
    """

    match_key: str
    counted_as: str
    copies: int
    told: Told
    state: str
    evidence: bool = True

    @property
    def column(self) -> str:
        """exactly_once, refused, doubled, lost (without a word), mistold (once, and something else is said), or
        without_evidence (once, and the trail has not what it has to).
        """
        if self.copies > 1:
            return "doubled"
        if self.copies == 1 and not self.evidence:
            return "without_evidence"
        if self.copies == 1:
            return "exactly_once" if self.told.stands and self.state == "done" else "mistold"
        refused = self.told.fate == "refused" and self.told.reason and self.state != "done"
        return "refused" if refused else "lost"

    @property
    def sentence(self) -> str:
        said = f"{self.told.fate or 'nothing'}{f', {self.told.reason}' if self.told.reason else ''}"
        return f"event {self.match_key} stands {self.copies} times; executor: {said}; store: {self.state or 'nothing'}"


@dataclass(frozen=True, kw_only=True)
class RoundEnd:
    """hung: starts that were killed at their deadline. faults: what else is wrong, such as a plan never finished.

    may_refuse: so many of its events, and no more and no fewer, are rightly refused.
    """

    name: str
    kind: str
    step: str
    fault: str
    events: tuple[EventEnd, ...]
    starts: int
    hung: int
    seconds: float
    faults: tuple[str, ...] = ()
    may_refuse: int = 0

    @property
    def differs(self) -> tuple[str, ...]:
        wrong = [event.sentence for event in self.events if event.column not in ("exactly_once", "refused")]
        nothing = [] if self.events else ["it has no event, so it proves nothing"]
        refused = [event for event in self.events if event.column == "refused"]
        if not wrong and len(refused) != self.may_refuse:
            said = "; ".join(event.sentence for event in refused)
            wrong.append(f"{len(refused)} refused, expected {self.may_refuse}{f': {said}' if said else ''}")
        return (*wrong, *nothing, *self.faults)

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
