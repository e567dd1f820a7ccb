"""A schedule acted out: database and producer transactions that begin and end while windows are cut, killed and re-run.

Both sides are modelled as their servers behave (`ledger_model.py`, and the log below); slices, pairing and judgement
are the product's own. A step that cannot be done does nothing, so that a schedule stays legal when steps are left out.

One file, since every step of a schedule acts on the same two servers and the same books.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.scan_result import ledger_item_id, topic_item_id
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot, PartitionSnapshot, Sample, TopicSlice, choose_sample
from tallystick.model.direction import Direction
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.run_result import RunResult
from tallystick.pipeline.lookups import LookUps
from tallystick.pipeline.make_cut import next_ledger_slice, next_topic_slices
from tallystick.pipeline.readiness import ledger_settled_until, topic_settled_until
from tallystick.pipeline.sources import sample_of
from tests.unit.builders import HOUR, L2T, NOON, TOPIC, partition_at
from tests.unit.in_memory_books import Books, Written
from tests.unit.ledger_model import BY_XMIN, Ledger, SliceRule, Snapshot

Step = tuple[str, ...]

SECONDS_PER_STEP = 20
SECONDS_PER_WINDOW = 60
PARTITIONS = (TopicPartition(topic=TOPIC, partition=0), TopicPartition(topic=TOPIC, partition=1))


@dataclass
class ProducerTransaction:
    """Open until every partition it wrote to has its marker; those come one by one."""

    producer_id: int
    first_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    outcome: Outcome = Outcome.OPEN


@dataclass
class Windows(Books):
    """Both sides, the store, and the clock."""

    rule: SliceRule = BY_XMIN
    ledger: Ledger = field(default_factory=Ledger)
    partitions: dict[TopicPartition, list[Written | None]] = field(
        default_factory=lambda: {one: [] for one in PARTITIONS}
    )
    """None: a marker."""
    producing: dict[str, ProducerTransaction] = field(default_factory=dict)
    clock: int = 0
    samples: list[Sample] = field(default_factory=list)
    unfinished: Cut | None = None
    snapshots: list[Snapshot] = field(default_factory=list)
    look_ups: list[LookUps] = field(default_factory=list)
    reads: list[tuple[int, frozenset[str]]] = field(default_factory=list)
    """The item ids that each attempt at a cut has read."""
    judged_again: list[tuple[int, RunResult]] = field(default_factory=list)
    newest_snapshot: Snapshot = field(default_factory=lambda: Ledger().snapshot())
    meanwhile: list[Step] = field(default_factory=list)
    """Steps that wait for a run to be between two of its readings."""
    rows_at_baseline: frozenset[str] = frozenset()
    written_at: dict[str, int] = field(default_factory=dict)
    producers_so_far: int = 0

    def do(self, step: Step) -> None:
        self.clock += SECONDS_PER_STEP
        self._act(step)

    def _act(self, step: Step) -> None:
        match step:
            case ("begin", writer):
                self.ledger.begin(writer, now=self.clock)
            case ("insert", writer, key):
                self.written_at[ledger_item_id(str(self.ledger.next_row_id))] = self.clock
                self.ledger.insert(writer, key, now=self.clock)
            case ("nested", writer, key):
                self.ledger.begin(writer, now=self.clock)
                self.ledger.savepoint(writer)
                self._act(("insert", writer, key))
            case ("savepoint", writer):
                self.ledger.savepoint(writer)
            case ("release", writer):
                self.ledger.release(writer)
            case ("rollback_to", writer):
                self.ledger.rollback_to(writer)
            case ("commit", writer):
                self.ledger.commit(writer)
            case ("rollback", writer):
                self.ledger.rollback(writer)
            case ("update", row_id):
                self.ledger.update(int(row_id))
            case ("crash",):
                self.ledger.crash()
            case ("produce", producer, key, partition):
                self.produce(producer, key, PARTITIONS[int(partition)])
            case ("end", producer, outcome):
                self.end(producer, Outcome(outcome))
            case ("baseline",):
                self.baseline()
            case ("sample",):
                self.sample()
            case ("meanwhile", *other):
                self.meanwhile.append(tuple(other))
            case ("wait",):
                pass
            case ("cut", when):
                self.cut(when)
            case ("kill",):
                later, self.meanwhile = self.meanwhile, []
                self.attempt()
                self.meanwhile = later
            case ("run", when):
                self.run_next(when)
            case ("again", number):
                self.judge_again(int(number))
            case _:
                raise ValueError(step)

    def produce(self, producer: str, key: str, part: TopicPartition) -> None:
        """Append an event; begins the producer's transaction if need be."""
        if producer not in self.producing:
            self.producers_so_far += 1
            self.producing[producer] = ProducerTransaction(self.producers_so_far)
        transaction, log = self.producing[producer], self.partitions[part]
        if transaction.outcome is not Outcome.OPEN:
            return
        transaction.first_offsets.setdefault(part, len(log))
        self.written_at[topic_item_id(part.topic, part.partition, len(log))] = self.clock
        record = LogRecord(
            topic_partition=part,
            kafka_offset=len(log),
            outcome=Outcome.OPEN,
            producer_id=transaction.producer_id,
            producer_epoch=0,
            sequence=len(log),
            is_transactional=True,
            timestamp_ms=0,
            match_key=key,
            transaction_key=f"pay-of-{key}",
            session="relay-1",
            source=None,
        )
        log.append(Written(record=record, amount_minor=1_000, currency="EUR", leg="payout", readable=True))

    def end(self, producer: str, outcome: Outcome) -> None:
        """Decide a producer transaction with its first marker; each further call writes one more."""
        transaction = self.producing.get(producer)
        if transaction is None:
            return  # it has nothing open
        if transaction.outcome is Outcome.OPEN:
            transaction.outcome = outcome
        part, first = transaction.first_offsets.popitem()
        log = self.partitions[part]
        for offset, one in enumerate(log):
            if one and offset >= first and one.record.producer_id == transaction.producer_id:
                log[offset] = replace(one, record=replace(one.record, outcome=transaction.outcome))
        log.append(None)
        if not transaction.first_offsets:
            del self.producing[producer]

    def sample(self) -> tuple[tuple[PartitionSnapshot, ...], LedgerSnapshot]:
        """Look at both sides and keep a sample, in the order of `BothSides.read_marks`."""
        if self.direction is L2T:
            partitions = self._partitions_now()
            self._go_on_meanwhile()
            ledger = self._horizon_now()
        else:
            ledger = self._horizon_now()
            self._go_on_meanwhile()
            partitions = self._partitions_now()
        self.samples.append(sample_of(partitions, self.rule.mark(self.ledger, ledger), at_utc=self._now()))
        return partitions, ledger

    def _horizon_now(self) -> LedgerSnapshot:
        self.newest_snapshot = self.ledger.snapshot()
        return self.rule.read_snapshot(self.ledger, self.clock)

    def _go_on_meanwhile(self) -> None:
        """What happens between two readings of one run; it takes no time."""
        steps, self.meanwhile = self.meanwhile, []
        for step in steps:
            self._act(step)

    def baseline(self) -> None:
        """Where the books begin."""
        if self.cuts:
            return
        partitions, ledger = self.sample()
        self._look()
        self.rows_at_baseline = frozenset(self.rows)
        self.older_at_baseline = sum(row.position < ledger.low_mark for row in self.rows.values())
        self.snapshots.append(self.newest_snapshot)
        self.cuts.append(
            Cut(
                contract=self.contract.name,
                n=0,
                window_start_utc=self._now() - HOUR,
                window_end_utc=self._now(),
                marked_at_utc=self._now(),
                now_utc=self._now(),
                topic_slices=tuple(map(_nothing_at_the_lso, partitions)),
                ledger_slice=LedgerSlice(
                    position_start=ledger.low_mark,
                    position_end=ledger.low_mark,
                    snapshot=ledger,
                    mark=ledger.low_mark,
                    baseline_position=ledger.low_mark,
                ),
            )
        )

    def cut(self, when: str) -> None:
        """Fix the next cut. "now": its window ends now; "late": where the schedule had it end, as in a catch-up."""
        self.baseline()
        planned = self.cuts[-1].window_end_utc + timedelta(seconds=SECONDS_PER_WINDOW)
        self.clock = max(self.clock, _seconds(planned))
        self._fix_cut(planned if when == "late" else self._now())

    def _fix_cut(self, window_end_utc: datetime) -> None:
        if self.unfinished is not None:
            return
        previous = self.cuts[-1]
        partitions, ledger = self.sample()
        mark = choose_sample(
            [one for one in self.samples if one.at_utc >= window_end_utc], window_end_utc=window_end_utc
        )
        self.unfinished = Cut(
            contract=self.contract.name,
            n=previous.n + 1,
            window_start_utc=previous.window_end_utc,
            window_end_utc=window_end_utc,
            marked_at_utc=mark.at_utc,
            now_utc=self._now(),
            topic_slices=next_topic_slices(previous, partitions, mark),
            ledger_slice=next_ledger_slice(previous.ledger_slice, ledger, mark),
        )
        self.snapshots.append(self.newest_snapshot)

    def attempt(self) -> tuple[LookUps, RunResult] | None:
        """Read and judge the unfinished cut. Alone, it is a run that is killed before its commit."""
        if self.unfinished is None:
            return None
        look_ups = self._ask(self.unfinished)
        return look_ups, self._read_and_judge(self.unfinished, look_ups)

    def _ask(self, cut: Cut) -> LookUps:
        """The bounds first, then what stands there, as `look_up` does."""
        ledger, partitions = self._horizon_now(), self._partitions_now()
        self._go_on_meanwhile()
        self._look()
        return self.look_up(
            cut,
            topic_settled_until_utc=topic_settled_until(self.samples, partitions),
            ledger_settled_until_utc=ledger_settled_until(self.samples, ledger_low_mark=ledger.low_mark),
        )

    def run_next(self, when: str = "now") -> None:
        """Judge the unfinished cut, or a new one, and commit."""
        self.cut(when)
        found = self.attempt()
        assert found is not None and self.unfinished is not None
        self.look_ups.append(found[0])
        self.commit(self.unfinished, found[1])
        self.unfinished = None

    def judge_again(self, number: int) -> None:
        """Read one of the stored cuts again; its look-ups are answered from the store."""
        if self.results:
            n = 1 + number % len(self.results)
            self._look()
            stored = LookUps.from_json(self.look_ups[n - 1].to_json())
            look_ups = self._ask(self.cuts[n]) if self.rule.asks_again else stored
            self.judged_again.append((n, self._read_and_judge(self.cuts[n], look_ups)))

    def close(self) -> None:
        """Everything ends, all deadlines pass, and one more window is judged."""
        self._go_on_meanwhile()
        for writer in tuple(self.ledger.writers):
            self.ledger.commit(writer)
        while self.producing:
            self.end(next(iter(self.producing)), Outcome.COMMITTED)
        if self.unfinished is not None:
            self.run_next()
        self.baseline()
        self.clock = max(self.clock, _seconds(self.cuts[-1].window_end_utc)) + SECONDS_PER_WINDOW
        everything_ended_utc = self._now()
        self.sample()
        self.clock += _seconds(NOON + HOUR)
        self._fix_cut(everything_ended_utc)
        self.run_next()

    def _read_and_judge(self, cut: Cut, look_ups: LookUps) -> RunResult:
        events = (_event_id(one.record) for one in self._read_events(cut))
        rows = (ledger_item_id(one.row_id) for one in self._read_rows(cut))
        self.reads.append((cut.n, frozenset((*events, *rows))))
        return self.judge_cut(cut, look_ups)

    def _now(self) -> datetime:
        return NOON + timedelta(seconds=self.clock)

    def _look(self) -> None:
        """Read the whole ledger, each row with the place that the rule gives it now."""
        self.rows = {
            str(row.row_id): LedgerRow(
                row_id=str(row.row_id),
                match_key=row.match_key,
                transaction_key=f"pay-of-{row.match_key}",
                leg="payout",
                amount_minor=1_000,
                currency="EUR",
                position=self.rule.place(self.ledger, row),
            )
            for row in self.ledger.rows.values()
        }

    def _lso(self, part: TopicPartition) -> int:
        firsts = (one.first_offsets[part] for one in self.producing.values() if part in one.first_offsets)
        return min(firsts, default=len(self.partitions[part]))

    def _partitions_now(self) -> tuple[PartitionSnapshot, ...]:
        return tuple(
            partition_at(
                topic=part.topic,
                partition=part.partition,
                lso=len(log) if self.rule.up_to_high_watermark else self._lso(part),
                high_watermark=len(log),
            )
            for part, log in self.partitions.items()
        )

    # What the books ask of their two sides.

    def _read_rows(self, cut: Cut) -> list[LedgerRow]:
        if not self.rule.by_snapshot_function:
            return super()._read_rows(cut)
        before, now = self.snapshots[cut.n - 1], self.snapshots[cut.n]
        return [
            row
            for row in self.rows.values()
            if now.takes_for_visible(row.position) and not before.takes_for_visible(row.position)
        ]

    def _events(self, topic_slice: TopicSlice) -> list[Written]:
        records = self._records(topic_slice.readable)
        return [one for one in records if one.record.outcome is Outcome.COMMITTED]

    def _retained(self) -> Iterator[Written]:
        for part, log in self.partitions.items():
            lso = self._lso(part)
            for one in log:
                if one is not None:
                    undecided = one.record.kafka_offset >= lso
                    yield replace(one, record=replace(one.record, outcome=Outcome.OPEN)) if undecided else one

    def _open_transactions(self) -> list[OpenTransaction]:
        return [
            OpenTransaction(
                topic_partition=part,
                producer_id=one.producer_id,
                producer_epoch=0,
                kafka_offset_start=first,
                transactional_id=name,
                started_ms=0,
                timeout_ms=60_000,
            )
            for name, one in self.producing.items()
            for part, first in one.first_offsets.items()
        ]

    def _census(self, topic_slice: TopicSlice) -> PartitionCensus:
        part = topic_slice.readable
        outcomes = Counter(one.record.outcome for one in self._records(part))
        return PartitionCensus(
            topic=part.topic,
            partition=part.partition,
            kafka_offset_start=part.kafka_offset_start,
            kafka_offset_end=part.kafka_offset_end,
            committed=outcomes[Outcome.COMMITTED],
            aborted=outcomes[Outcome.ABORTED],
            plain=0,
            commit_markers=len(part) - outcomes.total(),
            abort_markers=0,
            unexplained=0,
            without_producer_id=0,
            log_start=topic_slice.snapshot.log_start,
            lso=topic_slice.snapshot.lso,
            high_watermark=topic_slice.snapshot.high_watermark,
            spark_rows=outcomes[Outcome.COMMITTED],
        )

    def _records(self, part: OffsetRange) -> list[Written]:
        log = self.partitions[part.topic_partition]
        return [one for one in log[part.kafka_offset_start : part.kafka_offset_end] if one is not None]


def _event_id(record: LogRecord) -> str:
    part = record.topic_partition
    return topic_item_id(part.topic, part.partition, record.kafka_offset)


def _nothing_at_the_lso(part: PartitionSnapshot) -> TopicSlice:
    """As the product's baseline has it."""
    at_lso = OffsetRange(
        topic=part.topic, partition=part.partition, kafka_offset_start=part.lso, kafka_offset_end=part.lso
    )
    return TopicSlice(offsets=at_lso, snapshot=part, mark=part.lso)


def _seconds(moment: datetime) -> int:
    return int((moment - NOON).total_seconds())


def play(steps: Iterable[Step], direction: Direction = L2T, rule: SliceRule = BY_XMIN) -> Windows:
    windows = Windows(direction, rule=rule)
    for step in steps:
        windows.do(step)
    windows.close()
    return windows
