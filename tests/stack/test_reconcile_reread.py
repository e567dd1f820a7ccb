"""A judged cut read again: the same bytes give the same digest, others are noticed, and the store never changes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.kafka_log import header_cache
from tallystick.kafka_log.header_cache import BatchHeads
from tallystick.model.open_item import ItemSide
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, SCAN_VARIABLE
from tallystick_spark import reconcile_app
from tallystick_spark import scan as cut_scan
from tallystick_spark.matching.hash_scan import HashScan
from tests.stack.live_books import TWO_LEGS, LiveBooks, both_legs, invoice, payment, table_contents

from .live import NewBooks

NUMBERS = b'{"event_id":12,"payment_id":7,"leg":"payment","amount_minor":1,"currency":"EUR"}'
TAIL = b'{"event_id":"t","payment_id":"t","leg":"payment","amount_minor":1,"currency":"EUR"} tail'
OBJECT = b'{"event_id":{"a":1.5},"payment_id":"t","leg":"payment","amount_minor":1,"currency":"EUR"}'


@pytest.fixture(scope="module")
def judged(new_books: NewBooks, spark: SparkSession) -> Iterator[tuple[LiveBooks, StoredRun]]:
    """A judged cut with breaks, open items and aborted records; its rows may be changed in place."""
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, ledger={"slice_by": "written_xid"}) as books:
        books.take_cut()
        books.produce(*both_legs("a", "b", "c"), abort=True)
        books.both(*both_legs("a", "b", "c"))
        books.produce(payment("a"))
        books.produce(*both_legs("unposted"))
        books.post(invoice("unposted"))
        books.both(payment("torn"))
        run = books.next_run()
        assert run.result.verdict is Verdict.BROKEN
        assert len(run.result.breaks) == 3
        yield books, run


def _reread(books: LiveBooks, run: StoredRun) -> None:
    """As the app does with --reread. Raises DigestChanged."""
    reconcile_app.reread_cut(books.store, books.contract, books.connections, run.cut, run.result)


def test_reading_again_fetches_every_byte_again_and_changes_nothing(
    judged: tuple[LiveBooks, StoredRun], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each slice is walked again, and what it holds is all read by Kafka's client too, for there is little of it.

    Of the ledger no row passes through Spark: they are read by COPY, and what differs comes home by its id.
    """
    books, run = judged
    before, last_query, scans = table_contents(books.store, contract=books.contract.name), _last_query(spark), []
    monkeypatch.setattr(cut_scan, "scan_by_hash", _kept(cut_scan.scan_by_hash, scans))
    _reread(books, run)
    assert table_contents(books.store, contract=books.contract.name) == before
    (scan,) = scans
    offsets = {(part.offsets.topic, part.offsets.partition) for part in run.cut.topic_slices}
    assert {(one.census.topic, one.census.partition) for one in scan.walked if one.fetched_bytes} == offsets
    figures, exceptional = run.result.figures, scan.scan.copies
    assert {copy.side for copy in exceptional} == {ItemSide.TOPIC, ItemSide.LEDGER}
    assert _rows_read(spark, after=last_query) == figures.topic_rows


def test_pairing_row_by_row_gives_the_same_digest(
    judged: tuple[LiveBooks, StoredRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reading was by the log and by hash; none of its answers may differ from those of the full way."""
    monkeypatch.setenv(SCAN_VARIABLE, PAIR_BY_PAIR)
    monkeypatch.setattr(cut_scan, "scan_by_hash", _must_not_be_called)
    _reread(*judged)


def test_reading_by_kafkas_client_gives_the_same_digest(
    judged: tuple[LiveBooks, StoredRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCAN_VARIABLE, BY_CLIENT)
    monkeypatch.setattr(cut_scan, "LogTopic", _must_not_be_called)
    _reread(*judged)


@pytest.mark.parametrize(("a_fetch_is_worth", "one_by_one"), [(0, True), (1 << 40, False)])
def test_batches_that_are_brought_home_one_by_one_give_what_a_walk_gives(
    judged: tuple[LiveBooks, StoredRun], monkeypatch: pytest.MonkeyPatch, a_fetch_is_worth: int, one_by_one: bool
) -> None:
    books, run = judged
    picks: list[tuple[int, ...] | None] = []
    picked = BatchHeads.picked

    def keep(heads: BatchHeads, offsets: Iterable[int]) -> tuple[int, ...] | None:
        picks.append(picked(heads, offsets))
        return picks[-1]

    monkeypatch.setattr(header_cache, "FETCH_WORTH_BYTES", a_fetch_is_worth)
    monkeypatch.setattr(BatchHeads, "picked", keep)
    assert books.judge_again(run) == replace(run.result, key_index=None)
    assert {one is not None for one in picks} == {one_by_one}


def test_odd_payloads_give_the_same_digest_in_every_way(
    new_books: NewBooks, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished, wrong = b'{"event_id":"x"', b'{"event_id":{"a":[1]},"amount_minor":"1"}'
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(payment("a"))
        for value in (unfinished, None, b"", wrong, b"[]", NUMBERS, TAIL, OBJECT):
            books.produce_raw(value)
        run = books.next_run()
        for way in (BY_CLIENT, PAIR_BY_PAIR):
            monkeypatch.setenv(SCAN_VARIABLE, way)
            _reread(books, run)


@pytest.mark.parametrize("partitions", [1, 5])
def test_order_and_partitioning_change_no_digest(
    judged: tuple[LiveBooks, StoredRun], spark: SparkSession, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    books, run = judged

    def shuffled(read: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
        def read_and_shuffle(*arguments: object, **named: object) -> DataFrame:
            rows = read(*arguments, **named)
            return rows.repartition(partitions, F.rand(seed=partitions)).sortWithinPartitions(F.rand(seed=7))

        return read_and_shuffle

    monkeypatch.setenv(SCAN_VARIABLE, BY_CLIENT)
    for reader in ("read_topics", "read_ledger"):
        monkeypatch.setattr(cut_scan, reader, shuffled(getattr(cut_scan, reader)))
    shuffle_partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        again = books.judge_again(run)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", shuffle_partitions)
    assert again == replace(run.result, key_index=None)


def test_an_amount_that_was_changed_since_is_noticed_and_stores_nothing(judged: tuple[LiveBooks, StoredRun]) -> None:
    books, run = judged
    before = table_contents(books.store, contract=books.contract.name)
    change = f"UPDATE {books.table} SET amount_minor = %s WHERE event_id = %s"
    books.ledger.execute(change, [999, payment("b").event_id])
    with pytest.raises(
        reconcile_app.DigestChanged, match=f"{books.contract.name}/1: digest .*, stored {run.result.digest}"
    ):
        _reread(books, run)
    books.ledger.execute(change, [1000, payment("b").event_id])
    _reread(books, run)
    assert table_contents(books.store, contract=books.contract.name) == before


def test_records_that_have_left_the_log_since_are_noticed_and_store_nothing(
    judged: tuple[LiveBooks, StoredRun],
) -> None:
    """Last in this file: the records do not come back."""
    books, run = judged
    before = table_contents(books.store, contract=books.contract.name)
    books.delete_records("invoice", 0, before=1)
    with pytest.raises(reconcile_app.DigestChanged):
        _reread(books, run)
    assert table_contents(books.store, contract=books.contract.name) == before


def _kept(scan: Callable[..., HashScan], scans: list[HashScan]) -> Callable[..., HashScan]:
    def keeping(*arguments: object, **named: object) -> HashScan:
        scans.append(scan(*arguments, **named))
        return scans[-1]

    return keeping


def _last_query(spark: SparkSession) -> int:
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    return max(executions.apply(number).executionId() for number in range(executions.size()))


def _rows_read(spark: SparkSession, *, after: int) -> int:
    """Rows that Spark's queries after that one have read from Kafka and over JDBC, by the metrics of their scans."""
    store, rows = spark._jsparkSession.sharedState().statusStore(), 0
    for query in range(after + 1, _last_query(spark) + 1):
        values, nodes = store.executionMetrics(query), store.planGraph(query).allNodes()
        for node in map(nodes.apply, range(nodes.size())):
            if node.name().startswith(("BatchScan KafkaTable", "Scan JDBCRelation")):
                metrics = node.metrics()
                for metric in map(metrics.apply, range(metrics.size())):
                    if metric.name() == "number of output rows" and values.contains(metric.accumulatorId()):
                        rows += int(values.get(metric.accumulatorId()).get())
    return rows


def _must_not_be_called(*_: object, **__: object) -> None:
    raise AssertionError("the quick way was turned off")
