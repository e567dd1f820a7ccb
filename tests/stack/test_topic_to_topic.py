"""topic_to_topic on a real service that consumes, transforms and produces: windows, with an index of their own."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lab.servers.kafka_cluster import Cluster, new_cluster
from lab.servers.process import REPOSITORY
from lab.services.transformer import Transformer
from tallystick.connections.connections import artifacts_folder, environment_variable
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.ledger.key_index import index_folder
from tallystick.model.cut import Cut
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.report.write_report import write_report
from tallystick_spark import reconcile_app
from tests.stack.live_books import Event, LiveBooks, doubts, expected, kinds, payments

from .live import NewBooks
from .retention import expire

pytestmark = pytest.mark.usefixtures("spark")


def send_inputs(producer: Producer, topic: str, *events: Event) -> None:
    """Hand inputs to a producer and wait until the broker has them."""
    for event in events:
        producer.produce(topic, key=event.payment_id, value=event.value, partition=event.partition)
    assert producer.flush(30) == 0


def write_inputs(producer: Producer, topic: str, *events: Event) -> None:
    """One producer transaction with these inputs."""
    producer.begin_transaction()
    send_inputs(producer, topic, *events)
    producer.commit_transaction()


@pytest.fixture(scope="module")
def other_cluster() -> Iterator[Cluster]:
    """A second broker, that knows nothing of the first."""
    folder = Path(tempfile.mkdtemp(prefix="inputs-", dir=REPOSITORY / "build" / "tests"))
    cluster = new_cluster(folder, brokers=1)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Service:
    """Books whose output a real service makes of their input."""

    books: LiveBooks
    transformer: Transformer

    @property
    def requests(self) -> str:
        return self.books.contract.input_topics[0]

    def request(self, *events: Event) -> None:
        """One producer transaction with these inputs."""
        write_inputs(self.books.producer("client"), self.requests, *events)

    def handle(self, *events: Event, lost: tuple[Event, ...] = ()) -> None:
        """The service reads these inputs; of the lost ones it saves the offset alone."""
        values = {event.value for event in lost}
        self.transformer.handle(len(events), skipped=lambda value: value in values)

    def handle_again(self, event: Event) -> None:
        self.transformer.handle_again(wanted=lambda value: value == event.value)

    def expire_inputs(self) -> None:
        """Retention takes all that the input topic holds."""
        with open_admin(self.books.connections.kafka) as admin:
            partitions = read_topic_snapshot(admin, [self.requests])
        for part in partitions:
            self.books.delete_records_of(part.topic, part.partition, before=part.high_watermark)


@contextmanager
def open_service(new_books: NewBooks, **contract: object) -> Iterator[Service]:
    with new_books(direction="topic_to_topic", **contract) as books:
        transformer = Transformer(
            books.stack.bootstrap_servers,
            f"{books.contract.name}-service",
            books.contract.input_topics[0],
            books.contract.legs["payment"],
            2,
        )
        with closing(transformer):
            yield Service(books, transformer)


def states(run: StoredRun) -> dict[str, ItemState]:
    """What the run left of each match key that it touched."""
    return {item.match_key: item.state for item in run.result.items}


def test_windows_of_a_real_service_are_told_apart_by_the_index_of_keys(new_books: NewBooks) -> None:
    before, once, twice, lost, phantom = payments("before", "once", "twice", "lost", "phantom")
    later, stray = payments("later", "stray")
    with open_service(new_books) as service:
        books = service.books
        service.request(before)
        books.take_cut()

        service.request(once, twice, lost)
        service.handle(before, once, twice, lost, lost=(lost,))
        books.produce(phantom)
        first = books.next_run()
        assert kinds(first) == expected(("missing_in_topic_never_produced", lost), ("phantom_in_topic", phantom))
        assert states(first)[before.event_id] is ItemState.UNDECIDABLE
        assert not any("ledger" in found.story or " row" in found.story for found in first.result.breaks)

        cut = _cut_after_a_killed_attempt(service, later, once, twice, stray)
        second = books.judge(cut)
        assert kinds(second) == expected(("duplicate_in_ledger", twice), ("duplicate_in_topic_new_session", once))
        assert states(second)[stray.event_id] is ItemState.UNDECIDABLE
        assert doubts(second) == ["partner_not_settled"]
        index = second.result.key_index
        assert index is not None
        assert {file.path.split("/")[-2] for file in index.files} == {"attempt=2"}
        kept = index_folder(artifacts_folder(), books.contract.name, cut.n, attempt=2)
        assert list(kept.parent.iterdir()) == [kept]
        assert books.judge_again(second).digest == second.result.digest


class _Killed(BaseException):
    """The process is gone: nothing after this line runs."""


def _die_at_the_commit(step: str, **figures: object) -> None:
    if step == "committing":
        raise _Killed


def _cut_after_a_killed_attempt(service: Service, later: Event, once: Event, twice: Event, stray: Event) -> Cut:
    """A window whose inputs have expired when one comes again; its first attempt ended before the commit."""
    books = service.books
    service.expire_inputs()
    service.request(later, twice)
    service.handle(later, twice)
    service.handle_again(once)
    books.produce(stray)
    cut = books.take_cut()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconcile_app, "announce", _die_at_the_commit)
        with pytest.raises(_Killed):
            reconcile_app.run_cut(books.store, books.contract, books.connections, cut)
    left = index_folder(artifacts_folder(), books.contract.name, cut.n, attempt=1)
    assert list(left.glob("*.parquet"))
    return cut


def test_beyond_index_and_log_a_second_processing_is_told_and_a_second_input_is_not_seen(new_books: NewBooks) -> None:
    """Nothing is left that knows of the first; docs/guarantees.md says so."""
    again, sent_again = payments("again", "sent again")
    with new_books(direction="topic_to_topic", ledger={"index_windows": 1}) as books:
        (requests,), client = books.contract.input_topics, books.producer("client")
        books.take_cut()
        for events in ((again, sent_again), payments("between")):
            write_inputs(client, requests, *events)
            books.produce(*events)
            assert books.next_run().result.verdict is Verdict.MATCHED
        expire(books)
        with open_admin(books.connections.kafka) as admin:
            for part in read_topic_snapshot(admin, [requests]):
                books.delete_records_of(requests, part.partition, before=part.high_watermark)
        write_inputs(client, requests, sent_again)
        books.produce(again, sent_again)
        run = books.next_run()
        assert (kinds(run), doubts(run)) == ([], ["partner_not_settled"])
        assert states(run) == {again.event_id: ItemState.UNDECIDABLE}
        assert run.result.figures.matched_rows == 1


def test_an_output_repeats_one_of_before_the_books_whose_input_stood_behind_an_open_transaction(
    new_books: NewBooks,
) -> None:
    twice, once = payments("twice", "once")
    held = payments(*(f"held {n}" for n in range(8)))
    assert {event.partition for event in held} == {0, 1}
    with new_books(direction="topic_to_topic") as books:
        (requests,), holder = books.contract.input_topics, books.producer("holder")
        holder.begin_transaction()
        send_inputs(holder, requests, *held)
        write_inputs(books.producer("client"), requests, twice, once)
        books.produce(twice, once)  # by a service that reads what is not committed
        books.take_cut(settled=False)
        books.produce(twice)
        holder.abort_transaction()
        run = books.next_run()
        assert kinds(run) == expected(("duplicate_in_topic_new_session", twice))
        assert books.judge_again(run).digest == run.result.digest


def test_inputs_on_another_cluster_are_told_as_held_and_never_missing_and_a_lost_index_is_told(
    new_books: NewBooks, other_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine, behind, held = payments("fine", "behind", "held")
    inputs = {"bootstrap.servers": other_cluster.bootstrap_servers}
    monkeypatch.setenv(environment_variable("kafka_inputs"), json.dumps(inputs))
    with new_books(direction="topic_to_topic", ledger={"connection": "kafka_inputs"}) as books:
        topic = books.contract.input_topics[0]
        admin = AdminClient(inputs)
        admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result(30)
        client, holder = (Producer(inputs | {"transactional.id": name}) for name in ("client", "holder"))
        for producer in (client, holder):
            producer.init_transactions(30)
        books.take_cut()

        write_inputs(client, topic, fine)
        books.produce(fine)
        matched = books.next_run()
        assert matched.result.verdict is Verdict.MATCHED

        holder.begin_transaction()
        send_inputs(holder, topic, held, behind)
        write_inputs(client, topic, behind)
        books.produce(behind)
        run = books.next_run(settled=False)
        assert kinds(run) == []
        told = next(found for found in run.result.doubts if found.doubt == "held_by_open_transaction")
        assert told.sentence.startswith(topic)
        assert "holder" in told.sentence
        holder.abort_transaction()

        index = matched.result.key_index
        assert index is not None
        of_spark = (artifacts_folder() / index.files[0].path).parent
        assert {path.stat().st_mode & 0o777 for path in of_spark.iterdir()} == {0o600}
        assert {folder.stat().st_mode & 0o777 for folder in (of_spark, *of_spark.parents[:3])} == {0o700}
        (artifacts_folder() / index.files[0].path).unlink()
        last = books.next_run()
        assert kinds(last) == []
        assert doubts(last) == ["key_index_lost"]
        assert "bytes a copy" in write_report(last, books.contract, artifacts_folder()).read_text()
