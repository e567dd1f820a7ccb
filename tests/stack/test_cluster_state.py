"""What stands around a cut, for real: hanging, created again, changed while it is read, compacted, about to expire."""

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka.admin import AbortTransactionSpec
from kafka.structs import TopicPartition

from lab.servers.process import wait_until
from lab.services.raw_producer import RawProducer, open_raw_admin, unverified_transactions
from tallystick.kafka_cluster.state import ClusterState
from tallystick.kafka_log.fetch import fetcher, open_admin
from tallystick.kafka_log.offset_census import take_census
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt, Notice
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import OffsetRange
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pipeline.lookups import LookUps
from tallystick_spark import reconcile_app
from tallystick_spark.matching.hash_scan import SourceChangedDuringScan
from tests.stack.live_books import Event, LiveBooks, RawEvent, doubts, payment, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")


def test_a_hanging_transaction_is_told_from_a_live_one_and_from_what_stands_behind_it(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        books.wait_stable()
        hanging, behind = _same_partition(("hanging",), count=2)
        start = books.snapshot()[hanging.partition].high_watermark
        hung = _hang(books, hanging)
        books.both(behind)
        holder = books.producer("live")
        live = next(one for one in payments(*map(str, range(50))) if one.partition != hanging.partition)
        holder.begin_transaction()
        books.send(holder, live)
        first = books.next_run(settled=False)
        assert (first.result.verdict, first.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert sorted(doubts(first)) == [Doubt.HANGING_TRANSACTION, Doubt.HELD_BY_OPEN_TRANSACTION]
        found = _doubt(first, Doubt.HANGING_TRANSACTION)
        assert (found.details["partition"], found.details["kafka_offset_start"]) == (hanging.partition, start)
        assert (found.details["producer_id"], found.details["age_seconds"]) == (hung.producer_id, 0)
        assert (found.details["held_events"], found.details["held_money"]) == (2, {"EUR": 2_000})
        assert (found.details["held_events_of_holder"], found.details["held_money_of_holder"]) == (1, {"EUR": 1_000})
        alive = _doubt(first, Doubt.HELD_BY_OPEN_TRANSACTION)
        assert alive.details["transactional_id"] == f"{books.contract.name}-live"
        assert (alive.details["partition"], alive.details["timeout_seconds"]) == (live.partition, 60)

        holder.abort_transaction()
        second = books.next_run(settled=False)
        again = _doubt(second, Doubt.HANGING_TRANSACTION)
        assert again.details["first_seen_utc"] == found.details["first_seen_utc"]
        assert again.details["age_seconds"] == int((second.now_utc - first.now_utc).total_seconds())

        third = books.next_run(settled=False)
        assert [one.notice for one in third.result.notices if one.notice is Notice.CURSOR_STOPPED] == []
        fourth = books.next_run(settled=False)
        (stopped,) = [one for one in fourth.result.notices if one.notice is Notice.CURSOR_STOPPED]
        assert (stopped.pages, stopped.details["partition"]) == (True, hanging.partition)
        assert (stopped.details["cursor"], stopped.details["windows"]) == (start, 3)
        assert (stopped.details["since_cut"], stopped.details["behind"]) == (second.result.cut_n, [3, 3, 3, 3])
        once_more = books.judge_again(fourth)
        assert (once_more.digest, once_more.notices) == (fourth.result.digest, fourth.result.notices)

        _end_hanging(books, hanging)
        after = books.next_run()
        assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])


def test_books_of_a_topic_that_was_made_anew_are_inconclusive_for_ever_and_invent_nothing(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.remake_topic("payment")
        for names in (("c",), ("d", "e", "f", "g", "h")):
            books.both(*payments(*names))  # beyond the old books' end in the second round
            run = books.next_run(settled=False)
            assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
            assert {Doubt.TOPIC_RECREATED, Doubt.VACUOUS_RUN, Doubt.PARTNER_NOT_SETTLED} == set(doubts(run))
            found = _doubt(run, Doubt.TOPIC_RECREATED)
            assert (found.details["topic"], found.details["partitions"]) == (books.contract.legs["payment"], 2)
            assert run.result.figures.topic_rows == 0
            assert {item.state for item in run.result.items} == {ItemState.UNDECIDABLE}
            assert books.judge_again(run).digest == run.result.digest


def test_a_cut_whose_topic_is_made_anew_before_it_is_judged_is_recreated_not_expired(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        cut = books.take_cut()
        books.remake_topic("payment")
        run = books.judge(cut)
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert Doubt.TOPIC_RECREATED in doubts(run)
        assert Doubt.LOG_EXPIRED not in doubts(run)


def test_a_partition_that_is_added_while_the_run_reads_tears_the_cut_and_one_added_before_does_not(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        cut = books.take_cut()
        scan = reconcile_app.scan_cut

        def scan_while_it_grows(*arguments: object, **named: object) -> object:
            scanned = scan(*arguments, **named)  # type: ignore[arg-type]
            _grow(books, 3)
            return scanned

        with monkeypatch.context() as patch:
            patch.setattr(reconcile_app, "scan_cut", scan_while_it_grows)
            torn = books.judge(cut)
        assert (torn.result.verdict, doubts(torn)) == (Verdict.INCONCLUSIVE, [Doubt.TORN_CUT])
        assert torn.result.doubts[0].details["partition"] == 2
        books.both(*payments("c", "d"))
        assert books.next_run().result.verdict is Verdict.MATCHED


def test_offsets_that_were_compacted_away_are_no_gap_and_what_lay_there_is_not_called_missing(
    new_books: NewBooks,
) -> None:
    with new_books(direction="ledger_to_topic") as books:
        books.take_cut()
        books.configure_topic(
            "payment",
            cleanup_policy="compact",
            segment_ms="100",
            min_cleanable_dirty_ratio="0.01",
            delete_retention_ms="100",
        )
        lost, kept = payment("same"), payment("same", 2_000)
        producer = Producer(books._client())
        books.send(producer, lost, kept)
        books.post(payment("other"))
        books.wait_stable()
        for _ in range(3):  # a later segment closes the one before it
            time.sleep(0.2)
            books.send(producer, *(one for one in payments(*map(str, range(10))) if one.partition == lost.partition))
        wait_until(lambda: _has_hole(books, lost.partition), what="the cleaner", deadline_seconds=90)
        cut = books.take_cut()
        wait_until(lambda: _is_judged(books, cut), what="an attempt that no cleaner came into", deadline_seconds=90)
        run = books.stored_run(cut)
        assert run.result.verdict is not Verdict.MATCHED
        assert Doubt.LOG_COMPACTED in doubts(run)
        assert Doubt.UNEXPLAINED_GAP not in doubts(run)
        assert payment("other").event_id not in {one.match_key for one in run.result.breaks}
        assert run.result.figures.census[lost.partition].compacted > 0


def test_retention_that_will_overtake_the_next_run_is_told_and_settings_are_kept(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.configure_topic("payment", retention_ms="600000")
        books.both(*payments("a", "b"))
        first = books.next_run()
        assert [one.notice for one in first.result.notices if one.pages] == []  # all is read
        (settings,) = _around(first).topic_settings
        assert (settings.retention_ms, settings.cleanup_policy, settings.replication_factor) == (
            600_000,
            ("delete",),
            1,
        )
        broker = _around(first).broker_settings
        assert broker is not None
        assert (broker.transaction_max_timeout_ms, broker.transaction_version) == (3_600_000, 2)

        books.both(payment("c"))
        books.wait_stable()
        holder = books.producer("holder")
        holder.begin_transaction()
        books.send(holder, payment("c"))
        run = books.next_run(settled=False)
        (notice,) = [one for one in run.result.notices if one.notice is Notice.RETENTION_OVERTAKES]
        assert notice.pages
        assert f"[{payment('c').partition}]: unread offsets" in notice.sentence
        holder.abort_transaction()


def test_a_log_that_is_as_it_was_read_is_not_called_rewritten(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        for names in (("a", "b"), ("c",), ("d", "e", "f")):
            books.both(*payments(*names))
            run = books.next_run()
            assert (run.result.verdict, doubts(run)) == (Verdict.MATCHED, [])
        anchors = _around(run).anchors
        assert {one.topic_partition.partition for one in anchors} == {0, 1}
        assert {one.read_by_cut for one in anchors} == {1, 2, 3}
        assert not _around(run).rewritten


def _hang(books: LiveBooks, event: Event) -> RawProducer:
    with open_raw_admin(books.stack.bootstrap_servers) as admin:
        producer = RawProducer(admin, f"{books.contract.name}-hanging")
        producer.open()
        with unverified_transactions(admin):
            producer.produce(books.contract.legs["payment"], event.partition, RawEvent(event), {})  # type: ignore[arg-type]
        return producer


def _end_hanging(books: LiveBooks, event: Event) -> None:
    where = TopicPartition(books.contract.legs["payment"], event.partition)
    with open_raw_admin(books.stack.bootstrap_servers) as admin:
        for one in admin.describe_producers([where])[where].active_producers:
            if one.current_transaction_start_offset >= 0:
                admin.abort_transaction(AbortTransactionSpec(where, one.producer_id, one.producer_epoch))


def _same_partition(first: tuple[str, ...], *, count: int) -> tuple[Event, ...]:
    (one,) = payments(*first)
    others = (other for other in payments(*map(str, range(50))) if other.partition == one.partition)
    return (one, *(next(others) for _ in range(count - 1)))


def _grow(books: LiveBooks, partitions: int) -> None:
    topic, admin = books.contract.legs["payment"], AdminClient({"bootstrap.servers": books.stack.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
    wait_until(lambda: len(books.snapshot()) == partitions, what="the new partition")


def _is_judged(books: LiveBooks, cut: Cut) -> bool:
    """One of a scheduler's attempts, which fails where the cleaner goes on while the cut is read."""
    try:
        books.judge(cut)
    except SourceChangedDuringScan:
        return False
    return True


def _has_hole(books: LiveBooks, partition: int) -> bool:
    """Ask the census itself: the cleaner says nowhere that it was there."""
    now = books.snapshot()[partition]
    whole = OffsetRange(
        topic=now.topic, partition=partition, kafka_offset_start=now.log_start, kafka_offset_end=now.lso
    )
    with open_admin(books.connections.kafka) as admin:
        return take_census(fetcher(admin), whole).holes > 0


def _doubt(run: StoredRun, doubt: Doubt) -> DoubtFound:
    (found,) = [one for one in run.result.doubts if one.doubt is doubt]
    return found


def _around(run: StoredRun) -> ClusterState:
    return LookUps.from_json(run.result.look_ups).cluster_state
