"""Both sides in memory, and one cut of them after another: the whole judgement without broker, database or Spark.

Stands in for the scan (which copies come home), the look-ups (what they may see) and the store (what is carried).
The rules themselves are the product's own.

One file, since it is one object: what a cut reads, looks up and carries over is the state of the same books.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from tallystick.anomalies.breaks.duplicate_in_topic import original_item_id
from tallystick.compensation.write_off import items_written_off
from tallystick.contract.contract import Contract
from tallystick.judging.judge import judge
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.evidence import (
    EarlierRun,
    Evidence,
    LegsCase,
    LookedUp,
    ScanOddities,
    SideTotals,
    UnreadableRecord,
)
from tallystick.matching.group_sums import pair_group
from tallystick.matching.grouping import group_by_key, group_by_transaction, not_judged_before, without_repeats
from tallystick.matching.ledger_horizon import locate_row
from tallystick.matching.match_case import Deadlines, Entry, LookupHit, MatchGroup, WholeAndParts
from tallystick.matching.pairing import pair_key
from tallystick.matching.record_location import locate_record, needs_topic
from tallystick.matching.reversals import may_be_taken_back, with_row_reversals
from tallystick.matching.scan_result import ledger_item_id, topic_item_id
from tallystick.matching.unreadable_ranges import (
    LedgerStarts,
    Loss,
    OutOfSight,
    loss_before_the_books,
    out_of_sight,
)
from tallystick.model.break_history import LifeStep
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, LedgerSlice, PartitionSnapshot, TopicSlice
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.model.run_result import RunResult
from tallystick.pipeline.lookups import LookUps
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    LEDGER,
    MINUTE,
    NOON,
    TOPIC,
    contract_of,
    ledger_at,
    offsets,
    partition_at,
)

FIRST_XID = 100


@dataclass(frozen=True, kw_only=True)
class Written:
    """A record of the log. readable False: its key can be read, another field of the contract cannot."""

    record: LogRecord
    amount_minor: int
    currency: str
    leg: str
    readable: bool


@dataclass
class Books:
    """One contract's two sides and all that its runs found."""

    direction: Direction
    legs: Mapping[str, str] = field(default_factory=lambda: {"payout": TOPIC})
    stray_topics: tuple[str, ...] = ()
    unique_key: bool = False
    index_windows: int | None = None
    many_to_one: str | None = None
    logs: dict[str, list[Written]] = field(default_factory=dict)
    log_start: dict[str, int] = field(default_factory=dict)
    rows: dict[str, LedgerRow] = field(default_factory=dict)
    next_xid: int = FIRST_XID
    cuts: list[Cut] = field(default_factory=list)
    results: list[RunResult] = field(default_factory=list)
    written_off: list[tuple[int, OpenItem]] = field(default_factory=list)  # by a person, after which cut
    items: dict[str, OpenItem] = field(default_factory=dict)
    breaks: dict[object, Break] = field(default_factory=dict)
    older_at_baseline: int = 0
    timeline: int = 1
    moved_below: dict[int, int] = field(default_factory=dict)  # by cut whose guard found a row gone

    def __post_init__(self) -> None:
        self.logs = {topic: [] for topic in (*self.legs.values(), *self.stray_topics)}
        self.log_start = dict.fromkeys(self.logs, 0)

    @cached_property
    def contract(self) -> Contract:
        kafka = {"connection": "kafka_billing", "stray_topics": self.stray_topics}
        ledger = {"connection": "ledger_billing", "table": "billing.payout", "index_windows": self.index_windows}
        stated = {"ledger": ledger} if self.index_windows else {}
        match = {"many_to_one": self.many_to_one}
        return contract_of(self.direction, legs=dict(self.legs), kafka=kafka, match=match, **stated)

    def write(
        self,
        key: str = "ev-1",
        amount_minor: int = 1_000,
        currency: str = "EUR",
        *,
        leg: str = "payout",
        payment: str | None = None,
        outcome: Outcome = Outcome.COMMITTED,
        readable: bool = True,
        session: str = "relay-1",
        topic: str | None = None,
    ) -> int:
        """Append an event; its offset. topic: where it is not its leg's."""
        topic = topic or self.legs[leg]
        log = self.logs[topic]
        record = LogRecord(
            topic_partition=TopicPartition(topic=topic, partition=0),
            kafka_offset=len(log),
            outcome=outcome,
            producer_id=7,
            producer_epoch=0,
            sequence=len(log),
            is_transactional=True,
            timestamp_ms=0,
            match_key=key,
            transaction_key=payment or f"pay-of-{key}",
            session=session,
            source=None,
        )
        log.append(Written(record=record, amount_minor=amount_minor, currency=currency, leg=leg, readable=readable))
        return record.kafka_offset

    def end_transaction(self, offset: int, outcome: Outcome, *, topic: str = TOPIC) -> None:
        """Decide an event that was open."""
        written = self.logs[topic][offset]
        self.logs[topic][offset] = replace(written, record=replace(written.record, outcome=outcome))

    def post(
        self,
        key: str = "ev-1",
        amount_minor: int = 1_000,
        currency: str = "EUR",
        *,
        leg: str = "payout",
        payment: str | None = None,
        reverses: str = "",
        action_id: str = "",
    ) -> str:
        """Commit a ledger row in a transaction of its own; its row id. reverses: row id of the one it takes back."""
        posted = LedgerRow(
            row_id=str(len(self.rows) + 1),
            match_key=key,
            transaction_key=payment or f"pay-of-{key}",
            leg=leg,
            amount_minor=amount_minor,
            currency=currency,
            position=self.next_xid,
            reverses=reverses,
            action_id=action_id,
        )
        self.rows[posted.row_id] = posted
        self.next_xid += 1
        return posted.row_id

    def update(self, row_id: str, **changes: object) -> None:
        """UPDATE a row: the same row, written by a newer transaction."""
        self.rows[row_id] = replace(self.rows[row_id], position=self.next_xid, **changes)
        self.next_xid += 1

    def expire(self, topic: str = TOPIC) -> None:
        """Retention takes all that the log holds now."""
        self.log_start[topic] = len(self.logs[topic])

    def switch_over(self) -> None:
        """Another server answers from now on."""
        self.timeline += 1

    def begin(self) -> None:
        """The baseline: the books begin here."""
        self.older_at_baseline = len(self.rows)
        self.cuts.append(self._cut(held_offsets=0, held_xids=0, in_grace=False))

    def run(
        self,
        *,
        held_offsets: int = 0,
        held_xids: int = 0,
        in_grace: bool = False,
        topic_settled: bool = True,
        ledger_settled: bool = True,
    ) -> RunResult:
        """Cut at what stands there now, save for what is held; judge; commit.

        held_*: the newest so many, of every topic, lie beyond the cut. in_grace: before the new copies' deadline.
        """
        cut = self._cut(held_offsets=held_offsets, held_xids=held_xids, in_grace=in_grace)
        look_ups = self.look_up(
            cut,
            topic_settled_until_utc=cut.now_utc if topic_settled else None,
            ledger_settled_until_utc=cut.now_utc if ledger_settled else None,
        )
        result = self.judge_cut(cut, look_ups)
        self.commit(cut, result)
        return result

    def look_up(
        self, cut: Cut, *, topic_settled_until_utc: datetime | None, ledger_settled_until_utc: datetime | None
    ) -> LookUps:
        """What both sides answer now about the exceptions of a cut."""
        cases = group_by_key(self._exceptional_copies(cut), self._carried(cut.n), parts=self.contract.parts_side)
        return LookUps(
            topic_settled_until_utc=topic_settled_until_utc,
            ledger_settled_until_utc=ledger_settled_until_utc,
            older_rows=sum(one.position < cut.ledger_slice.position_start for one in self.rows.values()),
            by_key={case.match_key: self._lookup_hits(case, cut) for case in cases},
        )

    def judge_cut(self, cut: Cut, look_ups: LookUps) -> RunResult:
        """Judge a cut by what the runs before it left; stores nothing."""
        previous, carried = self.cuts[cut.n - 1], self._carried(cut.n)
        events, rows = self._read_events(cut), self._read_rows(cut)
        readable = [one for one in events if one.readable]
        copies = self._exceptional_copies(cut)
        deadlines = Deadlines(
            now_utc=cut.now_utc,
            new_copies_due_utc=self._new_copies_due(cut),
            topic_settled_until_utc=look_ups.topic_settled_until_utc,
            ledger_settled_until_utc=look_ups.ledger_settled_until_utc,
            topic_lost_offsets=cut.has_expired or previous.has_expired,
            cut_n=cut.n,
            rows_may_be_older=self._rows_may_be_older(cut, look_ups),
            out_of_sight=self._out_of_sight(cut, carried),
        )
        groups = group_by_key(copies, carried, parts=self.contract.parts_side)
        cases = (
            replace(case, lookup_hits=look_ups.by_key.get(case.match_key, ()))
            for case in with_row_reversals(groups, look_ups.by_key, self._surplus_items(cut.n))
        )
        outcomes = tuple(
            pair_group(case, direction=self.direction, deadlines=deadlines)
            if case.parts
            else pair_key(case, direction=self.direction, deadlines=deadlines, legs=self.legs)
            for case in cases
        )
        legs = group_by_transaction(self._incomplete(readable), carried) if len(self.legs) > 1 else ()
        judged = {item.transaction_key for item in self._newest_items(cut.n) if item.side is ItemSide.LEGS}
        legs = not_judged_before(legs, judged)
        evidence = Evidence(
            contract=self.contract,
            cut=cut,
            earlier=EarlierRun(
                ledger=previous.ledger_slice.snapshot, older_rows_expected=self._older_rows_expected(cut.n)
            ),
            census=tuple(map(self._census, cut.topic_slices)),
            totals=SideTotals(topic_rows=len(readable), ledger_rows=len(rows)),
            oddities=ScanOddities(
                unreadable_count=len(events) - len(readable),
                unreadable_sample=tuple(
                    UnreadableRecord(
                        topic=one.record.topic_partition.topic, partition=0, kafka_offset=one.record.kafka_offset
                    )
                    for one in events
                    if not one.readable
                ),
            ),
            looked_up=LookedUp(older_rows=look_ups.older_rows),
            outcomes=outcomes,
            incomplete=tuple(self._with_leg_hits(case, cut) for case in without_repeats(legs, outcomes)),
            record_origins=self._record_origins(
                item_id
                for outcome in outcomes
                for residue in outcome.residues
                for item_id in (residue.copy.item_id, original_item_id(residue))
            ),
            deadlines=deadlines,
        )
        return judge(
            evidence,
            matched_rows=len(rows) - sum(copy.side is LEDGER for copy in copies),
            matched_money={},
            content_digests={},
            look_ups={},
            carried=carried,
        )

    def _out_of_sight(self, cut: Cut, carried: Iterable[OpenItem]) -> OutOfSight:
        moved = {c.n: max((at for n, at in self.moved_below.items() if n <= c.n), default=0) for c in (*self.cuts, cut)}
        starts = {c.n: c.ledger_slice.position_start for c in (*self.cuts, cut)}
        losses = [c for c in self.cuts[1 : cut.n] if c.has_expired]
        now = [self._partition(topic) for topic in self.legs.values()]
        return out_of_sight(
            self.direction,
            {cut.n, *(item.first_seen_cut for item in carried)},
            [
                *(
                    Loss(cut_n=c.n, marked_at_utc=c.marked_at_utc, ledger_high_mark=c.ledger_slice.snapshot.high_mark)
                    for c in losses
                ),
                *loss_before_the_books(self.cuts[0], now, cut_n=cut.n, windows=self.contract.ledger.index_windows),
            ],
            LedgerStarts(position_start=starts, rows_may_be_older=frozenset(n for n in starts if starts[n] < moved[n])),
            log_is_whole=not self.older_at_baseline and not any(self.log_start.values()),
            legs_lost_within=self.contract.ledger.index_windows,
        )

    def _rows_may_be_older(self, cut: Cut, look_ups: LookUps) -> bool:
        if look_ups.older_rows != self._older_rows_expected(cut.n):
            self.moved_below[cut.n] = max(self.next_xid, cut.ledger_slice.snapshot.high_mark)
        below = max((at for n, at in self.moved_below.items() if n <= cut.n), default=0)
        return cut.ledger_slice.position_start < below

    def _older_rows_expected(self, n: int) -> int:
        """As `run_store.ledger_rows_before` has it."""
        if n == 1:
            return self.older_at_baseline
        before = self.results[n - 2].figures
        return before.ledger_rows + (before.ledger_older_rows or 0)

    def commit(self, cut: Cut, result: RunResult) -> None:
        self.cuts.append(cut)
        self.results.append(result)
        self.items |= {item.item_id: item for item in result.items}
        self.breaks |= {found.break_id: found for found in result.breaks}

    def write_off(self, match_key: str) -> None:
        """A person gives up every break of a key, after the newest run."""
        for item in list(self.items.values()):
            if item.match_key == match_key and item.state is ItemState.BROKEN and item.break_id is not None:
                step = LifeStep(cut_n=self.cuts[-1].n, judged_utc=self.cuts[-1].now_utc, item=item)
                (given_up,) = items_written_off(self.breaks[item.break_id], [step])
                self.items[item.item_id] = given_up
                self.written_off.append((self.cuts[-1].n, given_up))

    def outstanding(self) -> Counter[tuple[BreakClass, str]]:
        """(class, match key) of every break that some item still answers for."""
        broken = {item.break_id for item in self.items.values() if item.state is ItemState.BROKEN}
        return Counter((self.breaks[one].break_class, self.breaks[one].match_key) for one in broken)

    def _cut(self, *, held_offsets: int, held_xids: int, in_grace: bool) -> Cut:
        n = len(self.cuts)
        marked_at_utc = NOON + n * HOUR
        return Cut(
            contract=self.contract.name,
            n=n,
            window_start_utc=marked_at_utc - HOUR,
            window_end_utc=marked_at_utc,
            marked_at_utc=marked_at_utc,
            now_utc=marked_at_utc + (MINUTE / 2 if in_grace else HOUR / 2),
            topic_slices=tuple(self._topic_slice(topic, held_offsets) for topic in sorted(self.legs.values())),
            ledger_slice=self._ledger_slice(held_xids),
        )

    def _new_copies_due(self, cut: Cut) -> datetime:
        return cut.marked_at_utc + self.contract.partner_grace

    def _topic_slice(self, topic: str, held: int) -> TopicSlice:
        written = len(self.logs[topic])
        start = self._previous_end(topic, written)
        end = max(start, written - held, self.log_start[topic])
        return TopicSlice(
            offsets=offsets(start, end, topic=topic),
            snapshot=self._partition(topic, lso=end),
            mark=end,
            expired=max(0, self.log_start[topic] - start),
        )

    def _partition(self, topic: str, *, lso: int | None = None) -> PartitionSnapshot:
        written = len(self.logs[topic])
        lso = written if lso is None else lso
        return partition_at(log_start=self.log_start[topic], lso=lso, high_watermark=written, topic=topic)

    def _previous_end(self, topic: str, written: int) -> int:
        if not self.cuts:
            return written
        return next(part.offsets.kafka_offset_end for part in self.cuts[-1].topic_slices if part.offsets.topic == topic)

    def _ledger_slice(self, held: int) -> LedgerSlice:
        start = self.cuts[-1].ledger_slice.position_end if self.cuts else self.next_xid
        end = max(start, self.next_xid - held)
        baseline = self.cuts[0].ledger_slice.position_end if self.cuts else self.next_xid
        before = self.cuts[-1].ledger_slice if self.cuts else None
        gone_over = before is not None and before.snapshot.timeline != self.timeline
        return LedgerSlice(
            position_start=start,
            position_end=end,
            snapshot=ledger_at(end, timeline=self.timeline),
            mark=end,
            baseline_position=baseline,
            reused_below=start if gone_over else before.reused_below if before else 0,
        )

    def _carried(self, n: int) -> tuple[OpenItem, ...]:
        """As `run_store.open_items_as_of` has it."""
        return tuple(
            item
            for item in self._newest_items(n)
            if item.state is ItemState.OPEN or (item.pairable and item.state is not ItemState.CLEARED)
        )

    def _surplus_items(self, n: int) -> tuple[OpenItem, ...]:
        """As `open_item_store.surplus_items_as_of` has it."""
        return tuple(item for item in self._newest_items(n) if may_be_taken_back(item))

    def _newest_items(self, n: int) -> Iterable[OpenItem]:
        newest: dict[str, OpenItem] = {}
        for result in self.results[: n - 1]:
            newest |= {item.item_id: item for item in result.items}
            newest |= {item.item_id: item for after, item in self.written_off if after == result.cut_n}
        return newest.values()

    def _read_events(self, cut: Cut) -> list[Written]:
        return [one for topic_slice in cut.topic_slices for one in self._events(topic_slice)]

    def _read_rows(self, cut: Cut) -> list[LedgerRow]:
        bounds = cut.ledger_slice
        return [one for one in self.rows.values() if bounds.position_start <= one.position < bounds.position_end]

    def _exceptional_copies(self, cut: Cut) -> list[Entry]:
        rows = self._read_rows(cut)
        readable = [one for one in self._read_events(cut) if one.readable]
        known = {item.match_key for item in self._carried(cut.n)} | self._keys_seen_before(cut, rows)
        if self.many_to_one:
            known |= {one.record.match_key for one in self._retained() if self._is_before(one.record, cut)}
        copies = [*map(_event_copy, readable), *map(_row_copy, rows)]
        return _exceptional(copies, known, parts=self.contract.parts_side)

    @staticmethod
    def _is_before(record: LogRecord, cut: Cut) -> bool:
        """Return whether an earlier cut, or none, has read where it stands."""
        part = cut.slice_of(record.topic_partition)
        return part is not None and record.kafka_offset < part.offsets.kafka_offset_start

    def _events(self, topic_slice: TopicSlice) -> list[Written]:
        part = topic_slice.readable
        log = self.logs[part.topic][part.kafka_offset_start : part.kafka_offset_end]
        return [one for one in log if one.record.outcome is Outcome.COMMITTED]

    def _keys_seen_before(self, cut: Cut, rows: Iterable[LedgerRow]) -> set[str]:
        if self.unique_key:
            return set()
        older = {one.match_key for one in self.rows.values() if one.position < cut.ledger_slice.position_start}
        return {one.match_key for one in rows if one.reverses or one.match_key in older}

    def _lookup_hits(self, case: MatchGroup, cut: Cut) -> tuple[LookupHit, ...]:
        in_ledger = [locate_row(one, cut.ledger_slice) for one in self.rows.values() if one.match_key == case.match_key]
        in_topic: list[LookupHit] = []
        if (case.parts and len(case.copies) > 1) or needs_topic(
            case, in_ledger, direction=self.direction, now_utc=cut.now_utc, new_copies_due_utc=self._new_copies_due(cut)
        ):
            in_topic = [
                self._lookup_hit(one.record, cut) for one in self._retained() if one.record.match_key == case.match_key
            ]
        return (*in_ledger, *in_topic)

    def _with_leg_hits(self, case: LegsCase, cut: Cut) -> LegsCase:
        due_utc = case.carried.due_utc if case.carried else self._new_copies_due(cut)
        if due_utc > cut.now_utc:
            return case
        by_leg: dict[str, tuple[LookupHit, ...]] = {}
        for one in self._retained():
            if one.record.transaction_key == case.transaction_key:
                by_leg[one.leg] = (*by_leg.get(one.leg, ()), self._lookup_hit(one.record, cut))
        return replace(case, lookup_hits=by_leg)

    def _lookup_hit(self, record: LogRecord, cut: Cut) -> LookupHit:
        return locate_record(
            record,
            cut,
            self.cuts[0],
            legs=set(self.legs.values()),
            open_transactions=self._open_transactions(),
        )

    def _open_transactions(self) -> list[OpenTransaction]:
        return [
            OpenTransaction(
                topic_partition=one.record.topic_partition,
                producer_id=one.record.producer_id,
                producer_epoch=one.record.producer_epoch,
                kafka_offset_start=one.record.kafka_offset,
                transactional_id="relay",
                started_ms=0,
                timeout_ms=60_000,
            )
            for one in self._retained()
            if one.record.outcome is Outcome.OPEN
        ]

    def _retained(self) -> Iterable[Written]:
        for topic, log in self.logs.items():
            yield from log[self.log_start[topic] :]

    def _incomplete(self, readable: Iterable[Written]) -> list[Entry]:
        legs: dict[str, set[str]] = {}
        for one in readable:
            legs.setdefault(one.record.transaction_key, set()).add(one.leg)
        return [_event_copy(one) for one in readable if legs[one.record.transaction_key] != set(self.legs)]

    def _record_origins(self, item_ids: Iterable[str]) -> dict[str, LogRecord]:
        records = {_event_copy(one).item_id: one.record for one in self._retained()}
        return {item_id: records[item_id] for item_id in item_ids if item_id in records}

    def _census(self, topic_slice: TopicSlice) -> PartitionCensus:
        part = topic_slice.readable
        outcomes = Counter(
            one.record.outcome for one in self.logs[part.topic][part.kafka_offset_start : part.kafka_offset_end]
        )
        return PartitionCensus(
            topic=part.topic,
            partition=part.partition,
            kafka_offset_start=part.kafka_offset_start,
            kafka_offset_end=part.kafka_offset_end,
            committed=outcomes[Outcome.COMMITTED],
            aborted=outcomes[Outcome.ABORTED],
            plain=0,
            commit_markers=0,
            abort_markers=0,
            unexplained=0,
            without_producer_id=0,
            log_start=topic_slice.snapshot.log_start,
            lso=topic_slice.snapshot.lso,
            high_watermark=topic_slice.snapshot.high_watermark,
            spark_rows=outcomes[Outcome.COMMITTED],
        )


def classes_of(result: RunResult) -> list[str]:
    return [str(found.break_class) for found in result.breaks]


def doubts_of(result: RunResult) -> list[Doubt]:
    return [found.doubt for found in result.doubts]


def _exceptional(copies: list[Entry], known: set[str], *, parts: ItemSide | None) -> list[Entry]:
    """All copies of the keys that are not one event and one equal row, or what adds up, or known from elsewhere."""
    by_key: dict[str, list[Entry]] = {}
    for copy in copies:
        by_key.setdefault(copy.match_key, []).append(copy)
    return [copy for key, found in by_key.items() if key in known or not _is_simple(found, parts) for copy in found]


def _is_simple(found: list[Entry], parts: ItemSide | None) -> bool:
    if parts is not None:
        wholes, of_it = ([copy for copy in found if (copy.side is parts) is which] for which in (False, True))
        return len(wholes) == 1 and bool(of_it) and WholeAndParts(whole=wholes[0], parts=tuple(of_it)).adds_up
    return (
        {copy.side for copy in found} == {IN_TOPIC, LEDGER}
        and len(found) == 2
        and found[0].compared == found[1].compared
    )


def _event_copy(one: Written) -> Entry:
    record = one.record
    return Entry(
        side=IN_TOPIC,
        item_id=topic_item_id(record.topic_partition.topic, record.topic_partition.partition, record.kafka_offset),
        match_key=record.match_key,
        transaction_key=record.transaction_key,
        leg=one.leg,
        amount_minor=one.amount_minor,
        currency=one.currency,
        order=record.kafka_offset,
    )


def _row_copy(one: LedgerRow) -> Entry:
    return Entry(
        side=LEDGER,
        item_id=ledger_item_id(one.row_id),
        match_key=one.match_key,
        transaction_key=one.transaction_key,
        leg=one.leg,
        amount_minor=one.amount_minor,
        currency=one.currency,
        order=int(one.row_id),
    )
