"""Cuts on a real broker, ledger and store: each offset and each transaction id belongs to one cut, in order."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from tallystick.contract.change import ContractChangeRefused
from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tallystick.model.offsets import TopicPartition
from tallystick.model.verdict import Verdict
from tallystick.pipeline import make_cut
from tallystick.pipeline.make_cut import resolve_cut
from tallystick.pipeline.sources import observe
from tallystick.pipeline.window_order import WindowNotOver, WindowOutOfOrder
from tallystick.store.runs.cut_store import CutAlreadyOpen, claim_attempt, last_cut, open_cut
from tallystick.store.runs.run_store import commit_run, judged_until, read_run
from tallystick.store.runs.sample_store import read_samples
from tests.stack.live_books import LiveBooks, payment, payments

from .live import NewBooks

MINUTE = timedelta(minutes=1)


def test_the_first_cut_is_empty_begins_where_the_books_are_and_is_closed_at_once(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.both(*payments("a", "b", "c"))
        books.wait_stable()
        cut = books.take_cut()
        assert [len(part.offsets) for part in cut.topic_slices] == [0, 0]
        assert sum(part.offsets.kafka_offset_end for part in cut.topic_slices) == 5  # three events, two markers
        assert cut.ledger_slice.position_start == cut.ledger_slice.position_end == cut.ledger_slice.baseline_position
        assert open_cut(books.store, cut.contract) is None
        baseline = books.stored_run(cut).result
        assert (baseline.verdict, baseline.figures.ledger_older_rows) == (Verdict.INCONCLUSIVE, 3)
        assert [found.doubt for found in baseline.doubts] == [Doubt.BASELINE]


def test_cuts_tile_while_both_sides_are_written(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic") as books:
        cuts, posted = [books.take_cut()], 0
        for number in range(4):
            books.both(*payments(f"a-{number}", f"b-{number}"))
            posted += 2
            cuts.append(books.take_cut())
            _close(books, cuts[-1])
        for before, after in itertools.pairwise(cuts):
            assert after.n == before.n + 1
            assert after.ledger_slice.position_start == before.ledger_slice.position_end
            for part, next_part in zip(before.topic_slices, after.topic_slices, strict=True):
                assert next_part.offsets.topic_partition == part.offsets.topic_partition
                assert next_part.offsets.kafka_offset_start == part.offsets.kafka_offset_end
                assert next_part.offsets.kafka_offset_end <= next_part.snapshot.lso
        now = {part.topic_partition: part.lso for part in books.snapshot()}
        assert {part.offsets.topic_partition: part.offsets.kafka_offset_end for part in cuts[-1].topic_slices} == now
        assert _rows_between(books, cuts[0], cuts[-1]) == posted


def test_a_window_has_one_cut_and_another_window_waits_for_its_verdict(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(payment("a"))
        cut = books.take_cut()
        books.both(payment("b"))
        assert _resolve(books, cut.window_end_utc) == cut
        with pytest.raises(CutAlreadyOpen, match=f"{cut.contract}: cut 2 was not stored"):
            books.take_cut()
        assert last_cut(books.store, cut.contract) == cut
        _close(books, cut)
        assert _resolve(books, cut.window_end_utc) == cut  # judged, and still the cut of its window
        assert books.take_cut().n == 2


def test_windows_are_cut_in_order_and_once_they_are_over(new_books: NewBooks) -> None:
    """Else a window that others have read is empty on both sides, and one of next year keeps the books punctual."""
    with new_books(direction="topic_to_ledger", empty="allowed") as books:
        newest = books.take_cut()
        for _ in range(2):
            books.both(payment("a"))
            newest = books.take_cut()
            _close(books, newest)
        cuts_read = f"cut 2, of the window .* has read all up to there.* tallystick show {newest.contract}/2$"
        for earlier in (newest.window_start_utc, newest.window_end_utc - MINUTE / 60):
            with pytest.raises(WindowOutOfOrder, match=cuts_read):
                _resolve(books, earlier)
        with pytest.raises(WindowNotOver, match="ends at 2126-01-01 00:00:00 UTC: expected one that is over"):
            _resolve(books, datetime(2126, 1, 1, tzinfo=UTC))
        with pytest.raises(WindowNotOver, match="the verdict store's clock says"):
            _observe(books, datetime(2126, 1, 1, tzinfo=UTC))
        assert last_cut(books.store, newest.contract) == newest
        assert judged_until(books.store, newest.contract) == newest.window_end_utc
        assert books.take_cut().n == 3


def test_books_do_not_go_on_under_a_contract_of_another_meaning(new_books: NewBooks) -> None:
    """No sample is taken either: it could be another server's, and would stay when the file is put right."""
    with new_books(direction="topic_to_ledger") as books:
        begun = books.take_cut()
        books.both(payment("a"))
        document = books.contract.model_dump(mode="json")
        other = replace(
            books, contract=Contract.model_validate(document | {"legs": {"other": books.contract.topics[0]}})
        )
        samples = read_samples(books.store, begun.contract, since_utc=begun.now_utc - MINUTE)
        says = f"{begun.contract}: legs.payment: got none; expected "
        with pytest.raises(ContractChangeRefused, match=says):
            _observe(other, datetime.now(UTC))
        with pytest.raises(ContractChangeRefused, match=says):
            other.resolve(datetime.now(UTC))
        assert read_samples(books.store, begun.contract, since_utc=begun.now_utc - MINUTE) == samples
        assert last_cut(books.store, begun.contract) == begun
        cut = books.take_cut()
        with pytest.raises(ContractChangeRefused, match=says):
            other.judge(cut)
        _close(books, cut)
        later = replace(books, contract=Contract.model_validate(document | {"partner_grace_seconds": 7}))
        assert later.take_cut().n == cut.n + 1


def test_after_an_outage_each_window_ends_where_somebody_looked(new_books: NewBooks) -> None:
    """Two windows are late. The first ends at the sample of its end, the second takes what came after."""
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(payment("first window"))
        books.wait_stable()
        first_end = datetime.now(UTC)
        _observe(books, first_end)
        books.both(payment("second window"))
        books.wait_stable()
        second_end = datetime.now(UTC)
        first = _resolve(books, first_end)
        _close(books, first)
        second = _resolve(books, second_end)
        sizes = [sum(len(part.offsets) for part in cut.topic_slices) for cut in (first, second)]
        assert sizes == [2, 2]
        assert first.marked_at_utc - first_end < MINUTE
        assert _rows_between(books, first, first) == 0
        assert (_rows_of(books, first), _rows_of(books, second)) == (1, 1)


def test_without_samples_the_first_late_window_takes_all_and_the_next_is_empty(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        first_end = datetime.now(UTC)
        books.both(payment("first window"))
        second_end = datetime.now(UTC)
        books.both(payment("second window"))
        books.wait_stable()
        first = _resolve(books, first_end)
        _close(books, first)
        second = _resolve(books, second_end)
        assert (_rows_of(books, first), _rows_of(books, second)) == (2, 0)
        assert [sum(len(part.offsets) for part in cut.topic_slices) for cut in (first, second)] == [4, 0]


def test_a_new_partition_is_read_from_its_first_offset(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        topic = books.contract.legs["payment"]
        admin = AdminClient({"bootstrap.servers": books.stack.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
        books.produce_raw(b"x", partition=2)
        cut = books.take_cut()
        added = cut.topic_slices[2].offsets
        assert added.topic_partition == TopicPartition(topic=topic, partition=2)
        assert (added.kafka_offset_start, added.kafka_offset_end) == (0, 2)
        _close(books, cut)
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
        books.producers.clear()  # theirs does not know the partition yet
        books.produce_raw(b"x", partition=3)
        books.produce_raw(b"y", partition=3)
        books.wait_stable()
        books.delete_records("payment", 3, before=2)
        younger = books.take_cut().topic_slices[3]
        assert (younger.offsets.kafka_offset_start, younger.offsets.kafka_offset_end, younger.expired) == (0, 4, 2)


def test_nothing_of_a_topic_that_was_deleted_and_made_again_is_cut(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.both(*payments("a", "b"))
        books.wait_stable()
        baseline = books.take_cut()
        books.remake_topic("payment", partitions=3)
        books.produce(*payments("c", "d", "e"))
        cut = books.take_cut(settled=False)
        assert [len(part.offsets) for part in cut.topic_slices] == [0, 0]
        assert [part.snapshot for part in cut.topic_slices] == [part.snapshot for part in baseline.topic_slices]
        _close(books, cut)
        books.remake_topic("payment", partitions=1)
        assert [len(part.offsets) for part in books.take_cut(settled=False).topic_slices] == [0, 0]


def test_offsets_that_retention_took_before_any_cut_are_counted_as_expired(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*(payment(f"p{number}") for number in range(6)))
        books.wait_stable()
        books.delete_records("payment", 0, before=2)
        part = books.take_cut().topic_slices[0]
        assert (part.offsets.kafka_offset_start, part.expired) == (0, 2)
        assert part.readable.kafka_offset_start == 2


def test_a_crash_between_the_baseline_and_its_verdict_is_made_good(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        end = datetime.now(UTC)
        with monkeypatch.context() as patch:
            patch.setattr(make_cut, "commit_run", _power_cut)
            with pytest.raises(InterruptedError):
                _resolve(books, end)
        assert open_cut(books.store, books.contract.name) is not None
        assert _resolve(books, end).is_baseline
        assert open_cut(books.store, books.contract.name) is None


def test_settling_says_what_it_waits_for(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books, books.connect() as writer:
        books.wait_stable()
        holder, held = books.producer("holder"), payment("held")
        holder.begin_transaction()
        books.send(holder, held)
        writer.execute("BEGIN")
        writer.execute("SELECT pg_current_xact_id()")
        end = datetime.now(UTC)
        settled, waits = _observe(books, end)
        assert not settled
        assert waits[0] == f"{books.contract.legs['payment']}[{held.partition}]: the LSO stands at 0, the mark is 1"
        assert waits[1].startswith("ledger: the horizon stands at ")
        writer.execute("COMMIT")
        assert _observe(books, end)[1] == waits[:1]
        holder.commit_transaction()
        books.wait_stable()
        assert _observe(books, end) == (True, ())
        assert _observe(books, datetime.now(UTC) + MINUTE)[0] is False


def _close(books: LiveBooks, cut: Cut) -> None:
    """Close a cut without reading it: these tests are about cuts, not verdicts."""
    baseline = read_run(books.store, cut.contract, 0)
    assert baseline is not None
    result = replace(baseline.result, cut_n=cut.n, digest=f"closed-{cut.n}")
    commit_run(books.store, result, attempt=claim_attempt(books.store, cut.contract, cut.n), alerts=())


def _resolve(books: LiveBooks, window_end_utc: datetime) -> Cut:
    return resolve_cut(
        books.store,
        books.contract,
        books.connections,
        window_start_utc=window_end_utc - MINUTE,
        window_end_utc=window_end_utc,
        now_utc=datetime.now(UTC),
        scheduler_run_id="late",
    )


def _observe(books: LiveBooks, window_end_utc: datetime) -> tuple[bool, tuple[str, ...]]:
    now = datetime.now(UTC)
    seen = observe(books.store, books.contract, books.connections, window_end_utc=window_end_utc, now_utc=now)
    return seen.settled, seen.waits_for


def _rows_of(books: LiveBooks, cut: Cut) -> int:
    return _count(books, cut.ledger_slice.position_start, cut.ledger_slice.position_end)


def _rows_between(books: LiveBooks, first: Cut, last: Cut) -> int:
    return _count(books, first.ledger_slice.position_end, last.ledger_slice.position_end)


def _count(books: LiveBooks, start: int, end: int) -> int:
    """By the id that each row carries in a column, not by the product's SQL."""
    with psycopg.connect(books.stack.ledger_owner_dsn) as owner:
        inside = f"written_xid >= {start} AND written_xid < {end}"
        row = owner.execute(f"SELECT count(*) FROM {books.table} WHERE side = 'credit' AND {inside}").fetchone()
        assert row is not None
        return int(row[0])


def _power_cut(*_: object, **__: object) -> None:
    raise InterruptedError
