"""Three brokers, two of them stopped: what a producer with acks=1 was told is there, no consumer can read.

The first broker is the only controller, so that it sees the others go.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from lab.servers.postgres import STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.stack import start_stack
from tallystick.kafka_log.committed_records import settle_topics
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.verdict import Verdict
from tallystick.store.engine import connect_store, migrate, open_store
from tests.stack.live_books import LiveBooks, doubts, environment_of, expected, kinds, open_live_books, payment

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBooks]:
    parent = REPOSITORY / "build" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="replicas-", dir=parent))
    try:
        with start_stack(folder, brokers=3, controllers=1) as stack:
            migrate(connect_store(stack.store_owner_dsn), grant_to=STORE_ROLE)
            for variable, value in environment_of(stack, tmp_path).items():
                monkeypatch.setenv(variable, value)
            with open_live_books(stack, open_store(stack.store_dsn), tmp_path, direction="ledger_to_topic") as made:
                yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_what_too_few_replicas_have_is_held_and_never_missing(books: LiveBooks) -> None:
    """One follower less is enough for min.insync.replicas 2; two less are not, and acks=1 does not ask."""
    first, second, third = books.stack.cluster.brokers
    places = [(books.contract.topics[0], partition) for partition in (0, 1)]
    for place in places:
        books.stack.cluster.assign(place, [first.node_id, second.node_id, third.node_id])
    told_by_one = Producer({"bootstrap.servers": first.bootstrap_servers, "acks": "1", "log_level": 0})
    books.take_cut()

    third.kill()
    for place in places:
        books.stack.cluster.wait_left_with(place, first.node_id, second.node_id)
    books.post(payment("a"))
    books.send(told_by_one, payment("a"))
    run = books.next_run()
    assert (run.result.verdict, doubts(run), run.result.figures.matched_rows) == (Verdict.MATCHED, [], 1)

    books.post(payment("b"))
    books.send(told_by_one, payment("b"))
    books.wait_stable()
    second.kill()
    for place in places:
        books.stack.cluster.wait_left_with(place, first.node_id)
    books.post(payment("unseen"), payment("never"))
    books.send(told_by_one, payment("unseen"))
    held = books.next_run(settled=False)
    assert (held.result.verdict, kinds(held)) == (Verdict.INCONCLUSIVE, [])
    assert doubts(held) == [Doubt.HELD_BY_REPLICATION, Doubt.PARTNER_NOT_SETTLED]
    assert held.result.figures.matched_rows == 1
    found = held.result.doubts[0]
    part = f"{books.contract.topics[0]}[{payment('unseen').partition}]"
    assert found.sentence.startswith(f"{part}: 1 offset could not be read: the high watermark stands at ")
    assert found.sentence.endswith(
        f"In sync are 1 of 3 replicas, and min.insync.replicas is 2. Out of sync: {second.node_id}, {third.node_id}."
    )
    settled = settle_topics(books.connections.kafka, books.contract.topics, wait_seconds=0)
    assert settled.held == set(books.contract.topics)  # a repair that would publish now is refused

    for broker in (second, third):
        broker.launch()
    books.stack.cluster.wait_in_sync(*places)
    after = books.next_run()
    assert doubts(after) == []
    assert kinds(after) == expected((BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, payment("never")))
    assert after.result.figures.matched_rows == 1
