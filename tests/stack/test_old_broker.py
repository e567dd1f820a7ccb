"""A broker that cannot say which transactions are open: what it holds back is held, and nothing of it is missing."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from lab.servers.broker import Broker
from lab.servers.ports import free_port
from lab.servers.stack import LabStack
from tallystick.connections.connections import environment_variable
from tallystick.model.finding_names import Doubt
from tallystick.model.verdict import Verdict
from tests.stack.live_books import KAFKA, LiveBooks, doubts, payment

from .forgetful_front import KIP_664, forgetful_front
from .live import NewBooks


@pytest.fixture(scope="module")
def old_broker(build_folder: Path) -> Iterator[Broker]:
    broker = Broker(folder=build_folder / f"old-{uuid4().hex[:8]}", proxied_port=free_port())
    broker.initialise()
    try:
        with forgetful_front(broker.proxied_port, broker.upstream_port, without=KIP_664):
            broker.start()
            yield broker
    finally:
        broker.stop()


@pytest.fixture
def books(
    stack: LabStack, old_broker: Broker, new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveBooks]:
    servers = old_broker.proxied_bootstrap_servers
    monkeypatch.setenv(environment_variable(KAFKA), json.dumps({"bootstrap.servers": servers}))
    with new_books(direction="topic_to_ledger") as opened:
        books = replace(opened, stack=replace(stack, bootstrap_servers=servers), producers={})
        books.make_topics()
        yield books
        books.producers.clear()  # before their broker goes


@pytest.mark.usefixtures("spark")
def test_what_a_broker_without_kip_664_holds_back_is_held_and_matched_once_it_is_free(books: LiveBooks) -> None:
    books.take_cut()
    books.both(payment("a"))
    books.wait_stable()
    holder = books.producer("holder")
    holder.begin_transaction()
    books.send(holder, payment("held"))
    books.post(payment("held"))  # its event is looked for on the log, and is there, of an unknown transaction
    run = books.next_run(settled=False)
    (found,) = [found for found in run.result.doubts if found.doubt is Doubt.HELD_BY_OPEN_TRANSACTION]
    assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
    assert "a producer transaction that this broker does not name (KIP-664, Kafka 3.0) holds the LSO" in found.sentence
    assert found.details["transactional_id"] == ""
    assert run.result.figures.matched_rows == 1

    holder.commit_transaction()
    after = books.next_run()
    assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])
