"""A client of transaction.version 2 gets a new epoch with every transaction (KIP-890); nothing depends on the epoch."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lab.services.java_producer import JavaProducer, open_java_producer
from tallystick.kafka_log.fetch import fetcher, open_admin
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, walk_batches
from tallystick.kafka_log.offset_census import take_census
from tallystick.model.offsets import OffsetRange
from tallystick.model.verdict import Verdict
from tests.stack.live_books import Event, LiveBooks, doubts, expected, kinds, payment, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

Offset = tuple[int, int]  # partition, offset


@pytest.fixture
def books(new_books: NewBooks) -> Iterator[LiveBooks]:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        yield books


@pytest.fixture
def producer(books: LiveBooks, tmp_path: Path) -> Iterator[JavaProducer]:
    name = f"{books.contract.name}-java"
    with open_java_producer(books.stack.bootstrap_servers, name, log=tmp_path / "java.log") as producer:
        yield producer


def test_each_record_ends_as_its_transaction_did_and_markers_carry_the_next_epoch(
    books: LiveBooks, producer: JavaProducer
) -> None:
    kept, dropped = payments(*"abcdefgh"), payments(*"stuvw")
    outcomes: dict[Offset, Outcome] = {}
    for events, commit in ((kept[:3], True), (dropped[:2], False), (dropped[2:], False), (kept[3:], True)):
        written = _transact(books, producer, events, commit=commit)
        outcomes |= dict.fromkeys(written, Outcome.COMMITTED if commit else Outcome.ABORTED)
    books.wait_stable()
    batches = list(_walk(books))
    assert {
        (partition, batch.header.base_offset): batch.outcome
        for partition, batch in batches
        if batch.outcome is not Outcome.MARKER
    } == outcomes
    data_epochs = {batch.header.producer_epoch for _, batch in batches if batch.outcome is not Outcome.MARKER}
    assert len(data_epochs) == 4
    assert len({batch.header.producer_id for _, batch in batches}) == 1
    assert _marker_epochs_after_data(batches) == {1}


def test_a_census_of_its_traffic_is_whole_and_the_books_agree(books: LiveBooks, producer: JavaProducer) -> None:
    kept, dropped = payments(*"abcd"), payments(*"xyz")
    _transact(books, producer, dropped, commit=False)
    _transact(books, producer, kept, commit=True)
    _transact(books, producer, dropped, commit=True)  # tried again, and this time it went well
    books.post(*kept, *dropped)
    run = books.next_run()
    assert (run.result.verdict, run.result.breaks, doubts(run)) == (Verdict.MATCHED, (), [])
    census = run.result.figures.census
    assert sum(part.unexplained for part in census) == 0
    assert (sum(part.committed for part in census), sum(part.aborted for part in census)) == (7, 3)


def test_what_the_application_sends_again_is_a_new_session_and_no_zombie(
    books: LiveBooks, producer: JavaProducer
) -> None:
    """One producer id under two epochs is a zombie's trace under transaction.version 1, and ordinary here."""
    twice, once = payment("twice"), payment("once")
    for events in ((twice, once), (twice,)):
        _transact(books, producer, events, commit=True)
    books.post(twice, once)
    run = books.next_run()
    assert kinds(run) == expected(("duplicate_in_topic_new_session", twice))


def test_two_processes_of_one_id_that_both_commit_an_event_are_a_zombie_here_too(
    books: LiveBooks, producer: JavaProducer, tmp_path: Path
) -> None:
    event = payment("twice")
    _transact(books, producer, [event], commit=True)
    name = f"{books.contract.name}-java"
    with open_java_producer(books.stack.bootstrap_servers, name, log=tmp_path / "heir.log") as heir:
        _transact(books, heir, [event], commit=True, session="heir")
    books.post(event)
    assert kinds(books.next_run()) == expected(("duplicate_in_topic_zombie", event))


def _transact(
    books: LiveBooks, producer: JavaProducer, events: Sequence[Event], *, commit: bool, session: str = "java"
) -> list[Offset]:
    """One transaction; gives where its records stand."""
    producer.begin()
    written = []
    for event in events:
        place = (books.contract.legs[event.leg], event.partition)
        kafka_offset = producer.send(
            place, key=event.payment_id, value=event.value.decode(), headers={"session": session}
        )
        written.append((event.partition, kafka_offset))
    if commit:
        producer.commit()
    else:
        producer.abort()
    return written


def _walk(books: LiveBooks) -> Iterator[tuple[int, DecidedBatch]]:
    """Every batch of both partitions; the census of each adds up."""
    with open_admin(books.connections.kafka) as admin:
        fetch = fetcher(admin)
        for part in books.snapshot():
            whole = OffsetRange(
                topic=part.topic, partition=part.partition, kafka_offset_start=0, kafka_offset_end=part.lso
            )
            assert take_census(fetch, whole).unexplained == 0
            yield from ((part.partition, batch) for batch in walk_batches(fetch, whole))


def _marker_epochs_after_data(batches: Sequence[tuple[int, DecidedBatch]]) -> set[int]:
    """By how much each marker's epoch is above that of the data before it on its partition."""
    steps: set[int] = set()
    data_epoch: dict[int, int] = {}
    for partition, batch in batches:
        if batch.outcome is Outcome.MARKER:
            steps.add(batch.header.producer_epoch - data_epoch[partition])
        else:
            data_epoch[partition] = batch.header.producer_epoch
    return steps
