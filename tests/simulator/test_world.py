"""The world's two servers behave as the real ones do, in what rules rest on."""

import pytest

from tallystick.kafka_log.batch_header import Marker, read_batches
from tallystick.kafka_log.log_walk import Outcome, walk_batches
from tallystick.kafka_log.open_batch import is_whole, open_batch
from tallystick.model.offsets import OffsetRange, TopicPartition
from tests.simulator.world.batches import Record
from tests.simulator.world.broker import Broker
from tests.simulator.world.database import Database, Row
from tests.simulator.world.interleaving import Interleaving, Killed

PLACE = TopicPartition(topic="t", partition=0)


def a_broker() -> Broker:
    broker = Broker()
    broker.create_topic("t", 1)
    return broker


def an_event(n: int) -> Record:
    return Record(b"k", b'{"event_id": "%d"}' % n, 1_000 + n)


def a_row(key: str) -> Row:
    return Row(0, key, f"pay-{key}", "payout", 100, "EUR", 0)


def walked(broker: Broker) -> list[tuple[int, str]]:
    log = broker.partitions[PLACE]
    inside = OffsetRange(topic="t", partition=0, kafka_offset_start=log.log_start, kafka_offset_end=log.lso)
    found = walk_batches(lambda part, offset, committed: log.fetch(offset, committed), inside)
    return [(batch.header.base_offset, str(batch.outcome)) for batch in found]


def test_the_products_walk_reads_the_worlds_log() -> None:
    broker = a_broker()
    one, other = broker.init("one", now_ms=1), broker.init("other", now_ms=1)
    broker.write(one, PLACE, [an_event(1), an_event(2)], now_ms=1)
    broker.write(other, PLACE, [an_event(3)], now_ms=1)
    broker.write_plain(PLACE, [an_event(4)])
    for producer, marker in ((other, Marker.ABORT), (one, Marker.COMMIT)):
        broker.decide(producer, marker)
        broker.finish(producer, now_ms=2)
    assert walked(broker) == [(0, "committed"), (2, "aborted"), (3, "plain"), (4, "marker"), (5, "marker")]
    assert [broker.partitions[PLACE].outcome_of(offset) for offset in (0, 2, 3)] == ["committed", "aborted", "plain"]


def test_a_batch_holds_what_was_written_and_its_checksum_is_right() -> None:
    broker = a_broker()
    broker.write_plain(PLACE, [an_event(1)])
    log = broker.partitions[PLACE]
    inside = OffsetRange(topic="t", partition=0, kafka_offset_start=0, kafka_offset_end=1)
    (batch,) = walk_batches(lambda part, offset, committed: log.fetch(offset, committed), inside)
    assert is_whole(batch) and batch.outcome is Outcome.PLAIN
    assert [record.value for record in open_batch(batch)] == [b'{"event_id": "1"}']


def test_the_stable_end_waits_for_a_marker_to_be_replicated() -> None:
    broker = a_broker()
    producer = broker.init("one", now_ms=1)
    broker.write(producer, PLACE, [an_event(1)], now_ms=1)
    broker.partitions[PLACE].replicated = 1
    broker.decide(producer, Marker.COMMIT)
    broker.finish(producer, now_ms=2)
    log = broker.partitions[PLACE]
    assert (log.lso, log.high_watermark, log.end) == (0, 1, 2)
    log.replicated = None
    assert (log.lso, log.high_watermark, log.end) == (2, 2, 2)


def test_the_stable_end_of_a_transaction_whose_events_have_expired_is_the_log_s_start() -> None:
    broker = a_broker()
    log, producer = broker.partitions[PLACE], broker.init("one", now_ms=1)
    broker.write(producer, PLACE, [an_event(1)], now_ms=1)
    assert log.lso == 0
    log.retain_from(1)
    assert (log.lso, log.log_start, log.high_watermark) == (1, 1, 1)
    broker.write(producer, PLACE, [an_event(2)], now_ms=2)
    assert (log.lso, log.high_watermark) == (1, 2)


def test_whoever_comes_back_under_a_transactional_id_ends_what_was_open() -> None:
    broker = a_broker()
    producer = broker.init("one", now_ms=1)
    broker.write(producer, PLACE, [an_event(1)], now_ms=1)
    epoch = producer.epoch
    assert broker.init("one", now_ms=2).epoch > epoch
    assert walked(broker) == [(0, "aborted"), (1, "marker")]


def test_a_log_that_is_cut_below_a_marker_has_its_transaction_open_again() -> None:
    broker = a_broker()
    producer = broker.init("one", now_ms=1)
    broker.write(producer, PLACE, [an_event(1)], now_ms=1)
    broker.decide(producer, Marker.COMMIT)
    broker.finish(producer, now_ms=2)
    broker.partitions[PLACE].truncate_to(1)
    assert broker.partitions[PLACE].lso == 0


def test_a_row_is_seen_at_its_commit_and_holds_the_horizon_until_then() -> None:
    database = Database()
    row_id = database.insert("a", a_row("ev-1"))
    database.insert("b", a_row("ev-2"))
    database.commit("b")
    assert row_id not in database.rows
    assert (database.horizon, database.next_xid) == (100, 102)
    database.commit("a")
    assert database.rows[row_id].xid == 100
    assert database.horizon == 102


def test_a_savepoints_row_has_an_id_of_its_own_and_its_transactions_in_the_owners_column() -> None:
    database = Database()
    database.insert("a", a_row("ev-1"))
    database.savepoint("a")
    row_id = database.insert("a", a_row("ev-2"))
    database.commit("a")
    assert (database.rows[row_id].xid, database.rows[row_id].written_xid) == (101, 100)


def test_an_update_makes_a_version_under_another_id_and_keeps_the_owners_column() -> None:
    database = Database()
    row_id = database.insert("a", a_row("ev-1"))
    database.commit("a")
    assert database.update("b", row_id, amount_minor=7)
    assert not database.update("c", row_id, amount_minor=8)
    database.commit("b")
    row = database.rows[row_id]
    assert (row.xid, row.written_xid, row.amount_minor) == (101, 100, 7)


def test_a_crash_gives_ids_away_again_that_nothing_on_disk_names() -> None:
    database = Database()
    database.insert("a", a_row("ev-1"))
    database.rollback("a")
    database.crash()
    assert database.next_xid == 100
    database.insert("a", a_row("ev-1"))
    database.read_snapshot()
    database.crash()
    assert database.next_xid == 101


def test_a_prepared_transaction_outlives_a_crash() -> None:
    database = Database()
    row_id = database.insert("a", a_row("ev-1"))
    database.prepare("a")
    database.crash()
    assert database.horizon == 100
    database.commit("a")
    assert row_id in database.rows


def test_a_backup_that_is_put_back_has_another_timeline_and_the_ids_of_then() -> None:
    database = Database()
    backup = database.copy_now()
    row_id = database.insert("a", a_row("ev-1"))
    database.commit("a")
    database.restore(backup)
    assert (database.timeline, database.next_xid, row_id in database.rows) == (2, 100, False)


def test_an_epoch_moves_with_each_transaction_of_version_2_and_its_marker_carries_the_next() -> None:
    assert epochs_of("app-0") == [(0, 1), (1, 2)]


def test_an_epoch_of_version_1_stays_until_somebody_starts_again() -> None:
    assert epochs_of("app-1") == [(0, 0), (0, 0)]


def test_a_transaction_that_outlives_its_topic_is_ended_in_the_topic_made_anew() -> None:
    broker = a_broker()
    producer = broker.init("one", now_ms=1)
    broker.write(producer, PLACE, [an_event(1)], now_ms=1)
    broker.create_topic("t", 1)
    broker.decide(producer, Marker.COMMIT)
    broker.finish(producer, now_ms=1)
    log = broker.partitions[PLACE]
    assert ([batch.marker for batch in log.batches], log.lso, log.end) == ([Marker.COMMIT], 1, 1)


def epochs_of(name: str) -> list[tuple[int, int]]:
    """Two transactions: the epochs of each one's record and of its marker."""
    broker = a_broker()
    producer = broker.init(name, now_ms=1)
    for n in range(2):
        broker.write(producer, PLACE, [an_event(n)], now_ms=1)
        broker.decide(producer, Marker.COMMIT)
        broker.finish(producer, now_ms=1)
    raw = b"".join(batch.raw for batch in broker.partitions[PLACE].batches)
    epochs = [header.producer_epoch for header, _ in read_batches(raw)]
    return list(zip(epochs[::2], epochs[1::2], strict=True))


def test_what_is_asked_aside_the_world_does_not_hear() -> None:
    happened: list[str] = []
    point = Interleaving()
    point.begin([(1, lambda: happened.append("now"))], kill_at=2)
    with point.aside():
        point.reached("first")
        point.reached("second")
    assert (point.at, happened) == (0, [])
    point.reached("first")
    with pytest.raises(Killed):
        point.reached("second")
    assert happened == ["now"]
