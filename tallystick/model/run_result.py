"""The result of one run: the values that the driver commits and that report, alert and compensation read.

Holds numbers computed once; renders nothing, stores nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import NOTHING_READ
from tallystick.model.findings import Break, DoubtFound, Money, NoticeFound
from tallystick.model.open_item import OpenItem
from tallystick.model.partner_lag import RunLag
from tallystick.model.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """The counts behind a verdict. Money in integer minor units per currency."""

    topic_rows: int
    ledger_rows: int
    matched_rows: int
    matched_money: Money
    in_flight_items: int
    in_flight_money: Money
    carried_items: int
    undecidable_items: int
    unreadable_records: int
    ledger_older_rows: int | None
    census: tuple[PartitionCensus, ...]


@dataclass(frozen=True, kw_only=True)
class IndexFile:
    """One file of a key index, as it was when its verdict was stored. path: below the artifacts folder."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class KeyIndex:
    """The index of one cut: which match keys it read, and where. copies: of events; of topic_to_topic on both sides.

    seed: of its hashes, the same over the books; None where they have none, which is of topic_to_topic.
    kept_from: the first cut whose index its run left in place; those before it were out of its reach then.
    """

    copies: int
    kept_from: int
    files: tuple[IndexFile, ...]
    seed: int | None = None

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, kw_only=True)
class SideSummary:
    """One side's slice. rows: that could be read. keys: distinct match keys among them, without the empty one.

    money: their sum, with the signs of events and rows.
    """

    rows: int
    keys: int
    money: Money


@dataclass(frozen=True, kw_only=True)
class PartitionSummary:
    """The records of one partition that a read_committed reader gets, readable or not.

    earliest_ms, latest_ms: of their timestamps, in milliseconds since 1970; None where none was read or asked about.
    """

    topic: str
    partition: int
    rows: int
    earliest_ms: int | None = None
    latest_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class WindowSummary:
    """Both sides. partitions: of the topics, and of those that play the ledger's part; in order."""

    topic: SideSummary
    ledger: SideSummary
    partitions: tuple[PartitionSummary, ...]


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """All that one commit writes."""

    contract: str
    cut_n: int
    verdict: Verdict
    doubts: tuple[DoubtFound, ...]
    breaks: tuple[Break, ...]
    items: tuple[OpenItem, ...]
    """Changes only: an item that is as it was has no row."""
    figures: RunFigures
    digest: str
    notices: tuple[NoticeFound, ...] = ()
    look_ups: Mapping[str, Any] = field(default_factory=dict)
    """What the look-ups answered, kept so that the same cut can be judged again."""
    unseen: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    """Places that this run could not look at, by name of what it would have told of them. Not stored: only the alerts
    of its own commit depend on it."""
    lag: RunLag | None = None
    """How late its partners came; None for a run older than the measuring."""
    key_index: KeyIndex | None = None
    """The keys that it read, for later runs to ask; None for a run older than the index."""
    summary: WindowSummary | None = None
    """Both sides in figures; None for a run that read nothing, or is older than them. No digest has it."""

    @property
    def of_inputs(self) -> bool:
        """Return whether an input topic plays the ledger's part."""
        return self.key_index is not None and self.key_index.seed is None

    @property
    def read_nothing(self) -> bool:
        """Return whether nobody read this cut: its zeros say nothing of the books."""
        return any(found.doubt in NOTHING_READ for found in self.doubts)


def unread_result(
    contract_name: str,
    cut_n: int,
    doubt: DoubtFound,
    *,
    digest: str,
    look_ups: Mapping[str, Any],
    ledger_older_rows: int | None = None,
) -> RunResult:
    """The verdict of a cut of which nothing was read: INCONCLUSIVE by this doubt. look_ups: what the next run needs."""
    return RunResult(
        contract=contract_name,
        cut_n=cut_n,
        verdict=Verdict.INCONCLUSIVE,
        doubts=(doubt,),
        breaks=(),
        items=(),
        figures=RunFigures(
            topic_rows=0,
            ledger_rows=0,
            matched_rows=0,
            matched_money={},
            in_flight_items=0,
            in_flight_money={},
            carried_items=0,
            undecidable_items=0,
            unreadable_records=0,
            ledger_older_rows=ledger_older_rows,
            census=(),
        ),
        digest=digest,
        look_ups=look_ups,
    )
