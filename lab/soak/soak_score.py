"""The score of a soak: the sum over all windows, held against the truth. Pure.

Each fault must be reported in its own window, once; each late partner clears its items, once; each offset and each row
is in one cut and counted once; no item stays open.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lab.servers.log_ends import Partition
from lab.truth.score import Finding, FindingKind, score
from lab.truth.stored_books import StoredBooks, window_name

SOAK_COLUMNS = ("planted", "found", "lost", "double", "false")


@dataclass(frozen=True, kw_only=True)
class BookTruth:
    """What one contract's two sides really hold once all is over. records: what a committed reader gets."""

    contract: str
    ends: Mapping[Partition, int]
    records: Mapping[Partition, int]
    ledger_rows: int


@dataclass(frozen=True, kw_only=True)
class SoakScore:
    """planted = found + lost. double: reported, or cleared, once more than planted; false: not planted at all.

    differs: a sentence for each thing that is not as it must be.
    """

    planted: int = 0
    found: int = 0
    lost: int = 0
    double: int = 0
    false: int = 0
    by_class: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    differs: tuple[str, ...] = ()


def score_findings(
    planted: Sequence[Finding], stored: Sequence[StoredBooks], *, legal_notices: Collection[str]
) -> SoakScore:
    """Hold what was reported in each window against what was planted there; a finding's contract names its window."""
    wanted = {(one.contract, one.name) for one in planted}
    subjects = {one.subject for one in planted}
    found = [
        one
        for books in stored
        for one in books.findings
        if (one.name not in legal_notices or (one.contract, one.name) in wanted)
        and (one.kind is not FindingKind.CLEARED or one.subject in subjects)
    ]
    scored = score(planted, found)
    twice = [(books.contract, item) for books in stored for item in _cleared_twice(books)]
    again = _reported_again(planted, found)
    by_class = {
        name: {
            "planted": counts.planted,
            "found": counts.found,
            "lost": counts.missed + counts.misclassified,
            "double": again[name],
            "false": counts.false - again[name],
        }
        for name, counts in scored.by_class.items()
    }
    totals = {column: sum(counts[column] for counts in by_class.values()) for column in SOAK_COLUMNS}
    return SoakScore(
        **totals | {"double": totals["double"] + len(twice)},
        by_class=by_class,
        differs=(
            *scored.differs,
            *(f"{contract}: item {item} was cleared twice" for contract, item in twice),
            *_wrong_verdicts(planted, stored),
        ),
    )


def add_accounts(scored: SoakScore, truth: Iterable[BookTruth], stored: Iterable[StoredBooks]) -> SoakScore:
    """The same score, and what the counts of all windows together miss of the log and the ledger."""
    by_contract = {books.contract: books for books in stored}
    differs = [claim for book in truth for claim in account_faults(book, by_contract[book.contract])]
    return replace(scored, differs=(*scored.differs, *differs))


def account_faults(truth: BookTruth, stored: StoredBooks) -> Iterator[str]:
    """Say what is not counted exactly once, and which items are still open."""
    name = stored.contract
    for side, slices in stored.slices.items():
        for (_, before), (after, _) in pairwise(slices):
            if before != after:
                yield f"{name}: the cuts of {side} do not tile: one ends at {before}, the next begins at {after}"
    for (topic, partition), end in truth.ends.items():
        slices = stored.slices.get(f"topic:{topic}:{partition}", ((0, 0),))
        if (slices[0][0], slices[-1][1]) != (0, end):
            yield f"{name}: {topic}[{partition}] was cut from {slices[0][0]} to {slices[-1][1]}; it has {end} offsets"
    yield from _differing(f"{name}: offsets counted in", truth.ends, stored.offsets)
    yield from _differing(f"{name}: records counted in", truth.records, stored.records)
    if stored.unexplained:
        yield f"{name}: {stored.unexplained} offsets are unexplained"
    if stored.ledger_rows != truth.ledger_rows:
        yield f"{name}: {stored.ledger_rows} ledger rows were counted; the table has {truth.ledger_rows}"
    still_open = [item for item, states in stored.states.items() if states[-1] == "open"]
    yield from (f"{name}: item {item} is still open" for item in still_open)


def _differing(what: str, truth: Mapping[Partition, int], counted: Mapping[Partition, int]) -> Iterator[str]:
    for topic, partition in sorted({*truth, *counted}):
        expected, got = truth.get((topic, partition), 0), counted.get((topic, partition), 0)
        if expected != got:
            yield f"{what} {topic}[{partition}]: {got}; expected {expected}"


def _cleared_twice(books: StoredBooks) -> list[str]:
    return [item for item, states in books.states.items() if states.count("cleared") > 1]


def _reported_again(planted: Iterable[Finding], found: Iterable[Finding]) -> Counter[str]:
    """By class, the copies beyond those planted, of what was planted in some window."""
    wanted, seen = _copies(planted), _copies(found)
    again: Counter[str] = Counter()
    for key, copies in wanted.items():
        again[key[1]] += max(0, seen[key] - copies)
    return again


def _copies(findings: Iterable[Finding]) -> Counter[tuple[str, str, str]]:
    """Copies of each break or clearing, over all windows: (contract, class, subject)."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for one in findings:
        if one.kind in (FindingKind.BREAK, FindingKind.CLEARED):
            counted[one.contract.partition("/")[0], one.name, one.subject] += one.copies
    return counted


def _wrong_verdicts(planted: Iterable[Finding], stored: Iterable[StoredBooks]) -> Iterator[str]:
    """A window is BROKEN where a break was planted, else INCONCLUSIVE where a doubt was, else MATCHED."""
    kinds: dict[str, set[FindingKind]] = {}
    for one in planted:
        kinds.setdefault(one.contract, set()).add(one.kind)
    for books in stored:
        for window, verdict in books.verdicts.items():
            name = window_name(books.contract, window)
            expected = expected_verdict(kinds.get(name, set()))
            if verdict != expected:
                yield f"{name}: {verdict}; expected {expected}"


def expected_verdict(kinds: Collection[FindingKind]) -> str:
    if FindingKind.BREAK in kinds:
        return "BROKEN"
    return "INCONCLUSIVE" if FindingKind.DOUBT in kinds else "MATCHED"
