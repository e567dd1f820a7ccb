"""The lab's ordinary traffic writes each batch once, whatever becomes of its client."""

import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from subprocess import Popen

import pytest

import lab.services.workload
from lab.rounds.delivery_mode_round import prepare
from lab.servers.process import freeze
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg
from lab.services.workload import Traffic, Workload
from lab.truth.independent_reader import read_topic

pytestmark = [pytest.mark.stack, pytest.mark.lab]


@pytest.fixture
def desk(lab_stack: LabStack) -> Iterator[Workload]:
    name = f"desk_{uuid.uuid4().hex[:8]}"
    prepare(lab_stack, DeliveryMode.EXACTLY_ONCE, 1, name)
    with Workload.open(lab_stack, name, "relay", "1") as desk:
        yield desk


@pytest.fixture
def broker(lab_stack: LabStack) -> Iterator[Popen[bytes]]:
    """Its process; afterwards it goes on."""
    child = lab_stack.broker.child
    assert child is not None
    yield child
    child.send_signal(signal.SIGCONT)


def _committed(stack: LabStack, desk: Workload) -> Counter[str]:
    return Counter(
        record.event["event_id"] for record in read_topic(stack.bootstrap_servers, desk.names.topic(Leg.PAYOUT))
    )


def _publish(traffic: Traffic, amid: Callable[[], None]) -> str:
    row = traffic.desk.add_payout(traffic.desk.payment())
    traffic.publish([(row.event, row.source)], amid)
    return str(row.event.event_id)


def test_a_client_whose_commit_does_not_return_is_replaced_and_its_batch_stands_once(
    lab_stack: LabStack, desk: Workload, broker: Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = Traffic(desk)
    first, open_writer = traffic.writer, traffic._open_writer
    monkeypatch.setattr(lab.services.workload, "_END_SECONDS", 3.0)
    monkeypatch.setattr(traffic, "_open_writer", lambda: (broker.send_signal(signal.SIGCONT), open_writer())[1])

    event_id = _publish(traffic, lambda: freeze(broker))

    assert traffic.writer is not first
    assert _committed(lab_stack, desk) == {event_id: 1}


def test_a_client_whose_commit_returns_stays(lab_stack: LabStack, desk: Workload) -> None:
    traffic = Traffic(desk)
    first = traffic.writer

    event_ids = [_publish(traffic, lambda: None) for _ in range(3)]

    assert traffic.writer is first
    assert _committed(lab_stack, desk) == dict.fromkeys(event_ids, 1)
