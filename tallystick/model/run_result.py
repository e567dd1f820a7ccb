"""What one run found: the values that the driver commits and that report, alert and compensation read.

Holds numbers computed once; renders nothing, stores nothing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.partner_lag import RunLag
from tallystick.model.verdict import Verdict

_BREAK_NAMESPACE = UUID("5a1d6f0e-6a55-5c07-9d3f-3c1f6a2b9e71")
_SEPARATOR = "\x1f"

Money = Mapping[str, int]
"""Currency to integer minor units."""


def break_id(*, contract: str, break_class: BreakClass, match_key: str, position: str) -> UUID:
    """The same break has the same id in every run that finds it. Position: where the odd copy stands.

    A key or a row id that holds what separates the parts could pass for other parts: then they are quoted.
    """
    parts = (contract, break_class, match_key, position)
    separated = all(_SEPARATOR not in part for part in parts)
    return uuid5(_BREAK_NAMESPACE, _SEPARATOR.join(parts) if separated else json.dumps(parts))


@dataclass(frozen=True, kw_only=True)
class Break:
    """A proven disagreement about one match key.

    amount_minor is the money at stake of all `copies`, with the sign of the event or row; 0 with currency "" where
    nobody can say. Sums of several have no signs.
    evidence: JSON values only; offsets, producer ids, markers, row ids; no payload beyond the compared fields.
    """

    break_id: UUID
    break_class: BreakClass
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    copies: int
    story: str
    evidence: Mapping[str, Any]


class ItemState(StrEnum):
    """The life of an open item; append-only, one row per change. Runs write every state, a person WRITTEN_OFF only."""

    OPEN = "open"
    CLEARED = "cleared"
    BROKEN = "broken"
    WRITTEN_OFF = "written_off"
    UNDECIDABLE = "undecidable"


class ItemSide(StrEnum):
    """What waits: an event, a ledger row, or a business transaction with a leg missing."""

    TOPIC = "topic"
    LEDGER = "ledger"
    LEGS = "legs"


@dataclass(frozen=True, kw_only=True)
class OpenItem:
    """One copy that found no partner, as of one cut.

    item_id names side and place ("topic:billing.payments:0:17", "ledger:815", "legs:<transaction key>"), so that a copy
    is one item for ever.
    reason: for people. found_as: the class of the break that it answers for, break_id; None where there is none.
    pairable: may a later arrival still be its partner? Broken items stay pairable until one is found.
    written_ms: when the copy was written, in milliseconds since 1970, where anybody says.
    """

    item_id: str
    side: ItemSide
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    first_seen_cut: int
    first_seen_utc: datetime
    due_utc: datetime
    state: ItemState
    reason: str
    pairable: bool = True
    break_id: UUID | None = None
    found_as: BreakClass | None = None
    cleared_by: str = ""
    written_ms: int | None = None


def legs_item_id(transaction_key: str) -> str:
    """Of the item that a business transaction with a leg missing is."""
    return f"legs:{transaction_key}"


@dataclass(frozen=True, kw_only=True)
class StandingItems:
    """Items of one state and currency that were first seen together. amount_minor: of them all, without signs."""

    state: ItemState
    first_seen_utc: datetime
    currency: str
    count: int
    amount_minor: int


@dataclass(frozen=True, kw_only=True)
class WriteOff:
    """Who gave a break up, why and when."""

    by: str
    reason: str
    at_utc: datetime


@dataclass(frozen=True, kw_only=True)
class DoubtFound:
    """Why the run is not conclusive, in one sentence, with the figures behind it."""

    doubt: Doubt
    sentence: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class NoticeFound:
    """What changes no verdict: how often it was seen, in one sentence, with the figures. pages: on-call is told now."""

    notice: Notice
    sentence: str
    count: int = 1
    pages: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BledBatch:
    """A committed data batch of an earlier producer epoch than the data after it, before the same marker.

    span_epoch: the epoch of the transaction that the marker ended. marker_offset None: not found near the slice.
    Source: KIP-890.
    """

    kafka_offset_start: int
    kafka_offset_end: int
    producer_id: int
    producer_epoch: int
    span_epoch: int
    marker_offset: int | None


@dataclass(frozen=True, kw_only=True)
class PartitionCensus:
    """Every offset of one slice accounted for. Unit: offsets.

    Law: end - start = committed + aborted + plain + commit_markers + abort_markers + compacted + unexplained.
    Source: KIP-98.
    plain: records outside any producer transaction. spark_rows: what the first reader saw; must equal committed +
    plain. holes: offsets without a batch or record, part of unexplained. compacted: the same, where the topic compacts.
    empty_transactions: markers without data before them, as far as the census sees.
    bled: the first few batches of another epoch inside a marker span; bled_batches counts them all.
    fencings: aborts by a bumped epoch, of producers that keep one epoch otherwise.
    """

    topic: str
    partition: int
    kafka_offset_start: int
    kafka_offset_end: int
    committed: int
    aborted: int
    plain: int
    commit_markers: int
    abort_markers: int
    unexplained: int
    without_producer_id: int
    log_start: int
    lso: int
    high_watermark: int
    spark_rows: int | None = None
    holes: int = 0
    compacted: int = 0
    empty_transactions: int = 0
    fencings: int = 0
    bled_batches: int = 0
    bled: tuple[BledBatch, ...] = ()

    @property
    def readable_records(self) -> int:
        return self.committed + self.plain


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
    """One file of an index of keys, as it was when its verdict was stored. path: below the artifacts folder."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class KeyIndex:
    """The index of one cut: which match keys it read, and where. copies: of events; of topic_to_topic on both sides.

    seed: of its hashes, the same over the books; None where they have none, which is of topic_to_topic.
    kept_from: the first cut whose index its run left in place; those before it had passed the horizon of then.
    """

    copies: int
    kept_from: int
    files: tuple[IndexFile, ...]
    seed: int | None = None

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


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
    lag: RunLag | None = None
    """How late its partners came; None for a run older than the measuring."""
    key_index: KeyIndex | None = None
    """The keys that it read, for later runs to ask; None for a run older than the index."""

    @property
    def of_inputs(self) -> bool:
        """Does an input topic play the ledger's part?"""
        return self.key_index is not None and self.key_index.seed is None


def total_money(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sum minor units per currency, currencies in order."""
    totals: dict[str, int] = {}
    for currency, amount_minor in amounts:
        totals[currency] = totals.get(currency, 0) + amount_minor
    return dict(sorted(totals.items()))


def total_at_stake(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The same without signs: a refund that is missing makes a payment that is missing no smaller."""
    return total_money((currency, abs(amount_minor)) for currency, amount_minor in amounts if currency)


def negative_at_stake(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The part of `total_at_stake` that amounts below zero make up, such as refunds; without their sign."""
    return total_at_stake((currency, amount_minor) for currency, amount_minor in amounts if amount_minor < 0)


def money_at_stake(breaks: Iterable[Break]) -> dict[str, int]:
    """Money of all breaks per currency, without signs."""
    return total_at_stake((item_break.currency, item_break.amount_minor) for item_break in breaks)


def largest_first(item_break: Break) -> tuple[int, str, str]:
    """A sort key: by the money at stake, whatever its sign."""
    return -abs(item_break.amount_minor), item_break.match_key, str(item_break.break_id)


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
