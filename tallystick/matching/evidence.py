"""The evidence that the rules of one run judge by, prepared and read-only, in parts that a rule can name."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import ClusterState
from tallystick.kafka_log.record import LogRecord
from tallystick.ledger.earlier_rows import Place
from tallystick.ledger.protocol import HorizonHolder
from tallystick.matching.match_case import Deadlines, Entry, LookupHit, MatchResult, MatchStatus, UnmatchedItem
from tallystick.model.census_values import BledBatch, PartitionCensus
from tallystick.model.cut import Cut, LedgerSnapshot
from tallystick.model.findings import Money
from tallystick.model.offsets import OffsetRange
from tallystick.model.open_item import ItemSide, OpenItem
from tallystick.model.partner_lag import Grace, TopicLag

BLED_RECORDS = 100
"""So many records of one bled batch are named."""


@dataclass(frozen=True, kw_only=True)
class LegsCase:
    """A business transaction of which this cut and the open items know some legs, but not all.

    seen: leg to (minor units, currency, item id). lookup_hits: what the log holds of the absent legs, by leg.
    is_of_before: may a seen leg's row or input be older than the books? The absent legs may have come before these
    began, then.
    partner_awaited: WAITING or UNSETTLED, where a row or event of it is that: what comes of it may tell whether the
    transaction is older; None: nothing is.
    undecided: legs with a row of which nobody can tell whether its event came. unread: those of which the log has an
    event that could not be read as one.
    """

    transaction_key: str
    seen: Mapping[str, tuple[int, str, str]]
    lookup_hits: Mapping[str, tuple[LookupHit, ...]] = field(default_factory=dict)
    carried: OpenItem | None = None
    is_of_before: bool = False
    partner_awaited: MatchStatus | None = None
    undecided: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class UnreadableRecord:
    """A readable offset whose value is not what the contract says. No payload: where, and a clause that says why not.

    problem: "" where the log does not hold the record any more.
    """

    topic: str
    partition: int
    kafka_offset: int
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class OutOfOrderEvent:
    """A committed event below the highest sequence that stands before it, under its ordering key on its partition.

    highest_before: that sequence; highest_offset: the last place before the event where it stands.
    """

    topic: str
    partition: int
    kafka_offset: int
    match_key: str
    transaction_key: str
    leg: str
    ordering_key: str
    sequence: int
    highest_before: int
    highest_offset: int


@dataclass(frozen=True, kw_only=True)
class RecordTimes:
    """Timestamps of one partition's records: the extremes, and how many lie outside the times that were asked about."""

    topic: str
    partition: int
    early: int
    late: int
    earliest_ms: int
    latest_ms: int


@dataclass(frozen=True, kw_only=True)
class SecondReading:
    """Offsets that Kafka's own client was given to read, too, where the first reader is ours.

    rows, client_rows: records that each of them saw there. is_same: keys and values byte by byte, at the same offsets.
    """

    offsets: OffsetRange
    rows: int
    client_rows: int
    is_same: bool


@dataclass(frozen=True, kw_only=True)
class EarlierRun:
    """The state that the run before this one left: its cut, the ledger as it was then, and how many older rows to
    expect now. unread: cuts since then that were closed, oldest first.
    """

    cut: Cut | None = None
    ledger: LedgerSnapshot | None = None
    older_rows_expected: int | None = None
    unread: tuple[Cut, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SideTotals:
    """Rows and money that the slices hold, matched or not. lags: of the pairs that the scan made by itself."""

    topic_rows: int
    ledger_rows: int
    topic_money: Money = field(default_factory=dict)
    ledger_money: Money = field(default_factory=dict)
    lags: tuple[TopicLag, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ScanOddities:
    """The observations of the scan beside the pairs.

    differently_written: pairs that are equal only by a rule of the contract. out_of_order: the first ones by place;
    out_of_order_count counts all. repeated_row_ids: ids that more than one row of the slice has, the first few.
    """

    unreadable_count: int = 0
    unreadable_sample: tuple[UnreadableRecord, ...] = ()
    differently_written: int = 0
    out_of_order: tuple[OutOfOrderEvent, ...] = ()
    out_of_order_count: int = 0
    record_times: tuple[RecordTimes, ...] = ()
    second_readings: tuple[SecondReading, ...] = ()
    repeated_row_ids: tuple[str, ...] = ()
    missed_canaries: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LookedUp:
    """The answers from outside the two slices. older_rows: how many there are; None: nobody counts them.

    rows_out_of_place: by written_xid, where rows came that no cut has read, or went that one had read. forged_repairs:
    item ids of records and rows that claim to be a repair of ours, of which the store knows nothing. lost_indexes: cuts
    in reach whose key index is not there, or not what their verdict names. gone_unread: item ids of events that were
    read, and that left the log before the run could ask whether they take another one back.
    """

    older_rows: int | None = None
    horizon_holder: HorizonHolder | None = None
    rows_out_of_place: tuple[Place, ...] = ()
    forged_repairs: tuple[str, ...] = ()
    lost_indexes: tuple[int, ...] = ()
    gone_unread: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnmatchedItems:
    """The copies that are not simply matched. bled: item ids of which bled_into_transaction alone speaks."""

    outcomes: tuple[MatchResult, ...]
    bled: Collection[str] = ()

    def of(self, fate: MatchStatus, side: ItemSide) -> tuple[UnmatchedItem, ...]:
        """The copies of one side with one fate; one that bled is bled_into_transaction, and nothing else is said of it.

        But that a compared field differs from its row's is said too: that is another fault.
        """
        return self._by_fate.get((fate, side), ())

    @cached_property
    def _by_fate(self) -> Mapping[tuple[MatchStatus, ItemSide], tuple[UnmatchedItem, ...]]:
        """Sorted out once, since each rule asks for some of them."""
        found: dict[tuple[MatchStatus, ItemSide], list[UnmatchedItem]] = {}
        for outcome in self.outcomes:
            for residue in outcome.residues:
                if residue.fate is MatchStatus.UNEQUAL or residue.copy.item_id not in self.bled:
                    found.setdefault((residue.fate, residue.copy.side), []).append(residue)
        return {key: tuple(residues) for key, residues in found.items()}

    @cached_property
    def rows_without_event(self) -> Mapping[tuple[str, str], Entry]:
        """Ledger rows that have no event on the topics of the legs, by (transaction key, leg)."""
        return {
            (residue.copy.transaction_key, residue.copy.leg): residue.copy
            for outcome in self.outcomes
            for residue in outcome.residues
            if residue.copy.side is ItemSide.LEDGER and residue.partner is None
        }


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One run's evidence, in parts. A rule names the parts it needs as its parameters, and gets no others.

    outcomes, incomplete: the run's own items, by key and by business transaction. record_origins: who produced a topic
    copy, by item id, for breaks that need it. cluster: settings, open transactions and marks around the cut.
    """

    contract: Contract
    cut: Cut
    census: tuple[PartitionCensus, ...]
    totals: SideTotals
    outcomes: tuple[MatchResult, ...]
    incomplete: tuple[LegsCase, ...]
    record_origins: Mapping[str, LogRecord]
    deadlines: Deadlines
    measured_grace: Grace | None = None
    earlier: EarlierRun = field(default_factory=EarlierRun)
    oddities: ScanOddities = field(default_factory=ScanOddities)
    looked_up: LookedUp = field(default_factory=LookedUp)
    cluster: ClusterState = field(default_factory=ClusterState)

    @property
    def grace(self) -> Grace:
        """Return how long a partner may be late in this run."""
        return self.measured_grace or Grace(seconds=self.contract.partner_grace_seconds)

    @cached_property
    def unmatched(self) -> UnmatchedItems:
        """The copies of the outcomes that are not simply matched."""
        return UnmatchedItems(outcomes=self.outcomes, bled=self.bled_records.keys())

    @cached_property
    def bled_records(self) -> Mapping[str, LogRecord]:
        """Return records of an earlier, unfinished producer transaction that a later one's marker committed, by item
        id.
        """
        return {
            item_id: self.record_origins[item_id]
            for item_id in bled_item_ids(self.census)
            if item_id in self.record_origins
        }


def bled_item_ids(census: Iterable[PartitionCensus]) -> Iterator[str]:
    """Return item ids of the records that bled, as far as the census names their batches."""
    for part in census:
        for batch in part.bled:
            yield from bled_item_ids_of(part, batch)


def bled_item_ids_of(part: PartitionCensus, batch: BledBatch) -> Iterator[str]:
    """Return the item ids of one batch; of a large one the first few."""
    end = min(batch.kafka_offset_end, batch.kafka_offset_start + BLED_RECORDS)
    for offset in range(batch.kafka_offset_start, end):
        yield f"topic:{part.topic}:{part.partition}:{offset}"
