"""The score of a round: what the lab planted, held against what the reconciler stored. Pure.

Breaks are told apart by contract, class and event; doubts and notices by contract, class and partition. A planted fault
that is reported under another class is misclassified, not at all is missed, and what nobody planted is false. An item
that the reconciler calls undecidable is found only where the truth says the same.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class FindingKind(StrEnum):
    """What a finding does to the verdict."""

    BREAK = "break"
    DOUBT = "doubt"
    NOTICE = "notice"
    UNDECIDABLE = "undecidable"  # an item of which nobody can say, and the reconciler says so
    CLEARED = "cleared"  # an item whose partner came
    STANDING = "standing_event"  # one that a reader of the lab's own counts in the topic
    RECORD = "record"  # one that a doubt about the whole contract counts
    REFUSED = "refused_repair"  # one that the executor left to a person


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was planted, or that the store holds.

    subject: the event's id, or topic[partition] of a doubt or notice; "" in the truth: anywhere in the contract.
    proof: of the truth, what the stored evidence must say; of the store, all it says.
    """

    contract: str
    kind: FindingKind
    name: str
    subject: str = ""
    copies: int = 1
    proof: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Copies of one class. planted = found + missed + misclassified; false ones were not planted."""

    planted: int = 0
    found: int = 0
    missed: int = 0
    false: int = 0
    misclassified: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in COLUMNS})

    @property
    def agrees(self) -> bool:
        return not (self.missed or self.false or self.misclassified)


COLUMNS = ("planted", "found", "missed", "false", "misclassified")


@dataclass(frozen=True, kw_only=True)
class Score:
    """All classes of one round or of several; differs: one sentence for each thing that is not as planted."""

    by_class: Mapping[str, Counts] = field(default_factory=dict)
    differs: tuple[str, ...] = ()

    @property
    def total(self) -> Counts:
        return sum(self.by_class.values(), Counts())

    def __add__(self, other: "Score") -> "Score":
        names = sorted({*self.by_class, *other.by_class})
        added = {name: self.by_class.get(name, Counts()) + other.by_class.get(name, Counts()) for name in names}
        return Score(by_class=added, differs=self.differs + other.differs)


Allowed = Collection[tuple[str, str]]
"""(contract, class) that may be reported and need not be: what a planted fault brings with it."""


def score(planted: Iterable[Finding], found: Iterable[Finding], *, allowed: Allowed = ()) -> Score:
    """Hold the two against each other, subject by subject."""
    tally = _Tally()
    wanted = _fold(planted, anywhere=frozenset())
    anywhere = frozenset((one.contract, one.name) for one in wanted if not one.subject)
    seen = _fold(found, anywhere=anywhere)
    subjects = sorted({(one.contract, one.subject) for one in (*wanted, *seen)})
    for contract, subject in subjects:
        here = [one for one in wanted if (one.contract, one.subject) == (contract, subject)]
        there = [one for one in seen if (one.contract, one.subject) == (contract, subject)]
        tally.compare(here, there, allowed)
    return Score(by_class=tally.by_class(), differs=tuple(tally.differs))


def verdict_faults(
    verdicts: Mapping[str, Iterable[str]], *, clean: Collection[str], broken: Collection[str]
) -> list[str]:
    """Say which contracts ended otherwise than they had to: clean ones MATCHED each time, broken ones BROKEN once."""
    faults = []
    for contract, ended in sorted(verdicts.items()):
        windows = list(ended)
        if contract in clean and (not windows or set(windows) != {"MATCHED"}):
            faults.append(f"{contract}: {_listed(windows)}; expected MATCHED, nothing is wrong there")
        if contract in broken and "BROKEN" not in windows:
            faults.append(f"{contract}: {_listed(windows)}; expected BROKEN once")
    absent = sorted({*clean, *broken} - set(verdicts))
    return faults + [f"{contract}: no verdict is stored" for contract in absent]


@dataclass
class _Tally:
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    differs: list[str] = field(default_factory=list)

    def compare(self, wanted: list[Finding], seen: list[Finding], allowed: Allowed) -> None:
        """Judge one subject: what agrees first, then what was called something else, then the rest."""
        missing, extra = [], []
        found_by_name = {one.name: one for one in seen}
        for one in wanted:
            self.counts[one.name]["planted"] += one.copies
            stored = found_by_name.pop(one.name, None)
            copies = min(one.copies, stored.copies) if stored else 0
            lacks = [name for name, value in one.proof.items() if stored and stored.proof.get(name) != value]
            if lacks:
                self._add(one, "misclassified", copies, f"was found, but its evidence does not say {', '.join(lacks)}")
            else:
                self.counts[one.name]["found"] += copies
            missing += [one] * (one.copies - copies)
            extra += [stored] * (stored.copies - copies) if stored else []
        extra += [one for one in found_by_name.values() for _ in range(one.copies)]
        extra = [one for one in extra if (one.contract, one.name) not in allowed]
        for one in missing:
            other = next((other for other in extra if other.name != one.name and other.kind is one.kind), None)
            other = other or next((other for other in extra if other.name != one.name), None)
            if other is None:
                self._add(one, "missed", 1, "was planted and not found")
            else:
                extra.remove(other)
                self._add(one, "misclassified", 1, f"was planted and called {other.name}")
        for one in extra:
            self._add(one, "false", 1, "was found and not planted")

    def by_class(self) -> dict[str, Counts]:
        return {name: Counts(**counted) for name, counted in sorted(self.counts.items())}

    def _add(self, one: Finding, column: str, copies: int, claim: str) -> None:
        if copies:
            self.counts[one.name][column] += copies
            times = f" ({copies} times)" if copies > 1 else ""
            self.differs.append(f"{one.contract}: {one.name} of {one.subject or 'the contract'} {claim}{times}")


def _fold(findings: Iterable[Finding], *, anywhere: frozenset[tuple[str, str]]) -> list[Finding]:
    """One finding for each contract, class and subject. Breaks, events and records add up; a doubt stays one doubt."""
    folded: dict[tuple[str, str, str], Finding] = {}
    for one in findings:
        subject = "" if (one.contract, one.name) in anywhere else one.subject
        known = folded.get((one.contract, one.name, subject))
        is_counted = one.kind in (FindingKind.BREAK, FindingKind.STANDING, FindingKind.RECORD)
        copies = one.copies + (known.copies if known and is_counted else 0)
        folded[one.contract, one.name, subject] = Finding(
            contract=one.contract,
            kind=one.kind,
            name=one.name,
            subject=subject,
            copies=copies if is_counted else 1,
            proof={**(known.proof if known else {}), **one.proof},
        )
    return list(folded.values())


def _listed(verdicts: list[str]) -> str:
    return ", ".join(verdicts) or "no verdict"
