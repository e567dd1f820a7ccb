"""Every kind of HTTP sink against a real receiver that fails in every way: each alert is delivered at least once and in
order, there is one incident per key, and it is over once the books are clean.
"""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, text

from lab.servers.process import wait_until
from tallystick.alerting.sinks.alertmanager import AlertmanagerSink
from tallystick.alerting.sinks.pagerduty import PagerDutySink
from tallystick.alerting.sinks.registry import Sink
from tallystick.alerting.sinks.slack import SlackSink
from tallystick.alerting.sinks.webhook import WebhookSink
from tallystick.pipeline.deliver_alerts import DeliveryFailed, DeliverySummary, deliver_pending
from tallystick.store.engine import connect_store
from tests.alert_receiver import Receiver, receiving

from .alerts import alert

FAR = datetime(2100, 1, 1, tzinfo=UTC)
PATIENT, SHORT = 60, 0.2
"""Seconds: for a receiver that answers, however busy the machine, and for one that does not."""

Said = tuple[str, str]
"""What a receiver was told: trigger or resolve, and the incident's key."""


@dataclass(frozen=True)
class Kind:
    """One kind of sink: its name, how it is made, and how its receiver reads a message."""

    name: str
    make: Callable[[str, Receiver, float], Sink]
    read: Callable[[Any], Said]


def of_alertmanager(documents: Any) -> Said:
    fires = any(one["endsAt"] == FAR.isoformat() for one in documents)
    return "trigger" if fires else "resolve", documents[0]["annotations"]["dedup_key"]


def of_slack(message: Any) -> Said:
    over = message["blocks"][0]["text"]["text"].startswith("Resolved")
    return "resolve" if over else "trigger", message["blocks"][-1]["elements"][-1]["text"]


KINDS = (
    Kind(
        "webhook:hook",
        lambda name, to, limit: WebhookSink(name=name, address=to.address, timeout_seconds=limit),
        lambda message: (message["action"], message["dedup_key"]),
    ),
    Kind(
        "pagerduty:pd",
        lambda name, to, limit: PagerDutySink(name=name, address=to.base, routing_key="k", timeout_seconds=limit),
        lambda event: (event["event_action"], event["dedup_key"]),
    ),
    Kind(
        "alertmanager:am",
        lambda name, to, limit: AlertmanagerSink(
            name=name, address=to.base, fires_until=lambda _: FAR, timeout_seconds=limit
        ),
        of_alertmanager,
    ),
    Kind(
        "slack:chat",
        lambda name, to, limit: SlackSink(name=name, address=to.address, timeout_seconds=limit),
        of_slack,
    ),
)
NAMES = tuple(kind.name for kind in KINDS)


@dataclass
class Desk:
    """A receiver per kind of sink."""

    receivers: dict[str, Receiver]

    def sinks(self, limit: float = PATIENT) -> list[Sink]:
        return [kind.make(kind.name, self.receivers[kind.name], limit) for kind in KINDS]

    def answer(self, answer: int | str, *, only: tuple[str, ...] = NAMES) -> None:
        for name in only:
            self.receivers[name].answer = answer

    def said(self) -> dict[str, list[Said]]:
        """What each receiver took, without what it took twice in a row: a receiver deduplicates by the key."""
        told = {kind.name: [kind.read(message) for message in self.receivers[kind.name].taken] for kind in KINDS}
        return {name: [one for n, one in enumerate(said) if said[:n][-1:] != [one]] for name, said in told.items()}


@pytest.fixture
def desk() -> Iterator[Desk]:
    with ExitStack() as parts:
        yield Desk({name: parts.enter_context(receiving()) for name in NAMES})


KEY = "tallystick/payouts/phantom_in_topic"
ONE_INCIDENT = [("trigger", KEY), ("resolve", KEY)]
NOTHING = DeliverySummary(delivered=0, failed=0, held_back=0)


@pytest.mark.parametrize("fault", [500, 503, 429, "reset", "silence", "dribble", "late"])
def test_receivers_that_fail_are_told_one_incident_once_they_are_back(
    store: Engine, books: Any, desk: Desk, fault: int | str
) -> None:
    limit = PATIENT if isinstance(fault, int) or fault == "reset" else SHORT
    desk.answer(fault)
    books.commit(store, books.result(0), alerts=(alert(0, sinks=NAMES),))
    with pytest.raises(DeliveryFailed) as down:
        deliver_pending(store, "payouts", desk.sinks(limit))
    assert down.value.summary == DeliverySummary(delivered=0, failed=4, held_back=0)
    books.commit(store, books.result(1), alerts=(alert(1, "resolve", sinks=NAMES),))
    with pytest.raises(DeliveryFailed) as still_down:
        deliver_pending(store, "payouts", desk.sinks(limit))
    assert still_down.value.summary == DeliverySummary(delivered=0, failed=4, held_back=4)
    desk.answer(200)
    assert deliver_pending(store, "payouts", desk.sinks()).delivered == 8
    assert deliver_pending(store, "payouts", desk.sinks()) == NOTHING
    assert desk.said() == dict.fromkeys(NAMES, ONE_INCIDENT)


def test_what_a_receiver_took_too_late_for_us_is_sent_again_under_the_same_keys(
    store: Engine, books: Any, desk: Desk
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0, sinks=NAMES[:1]),))
    hook = desk.receivers[NAMES[0]]
    hook.answer = "late"
    while not hook.taken:  # a machine under load may not even have sent it in so short a time
        with pytest.raises(DeliveryFailed):
            deliver_pending(store, "payouts", desk.sinks(SHORT))
    hook.answer = 200
    deliver_pending(store, "payouts", desk.sinks())
    assert len(hook.taken) > 1
    assert len({headers["webhook-id"] for _, headers, _ in hook.requests}) == 1
    assert len({body for _, _, body in hook.requests}) == 1


@pytest.mark.parametrize("down", NAMES)
def test_one_receiver_that_is_down_delays_nobody_else(store: Engine, books: Any, desk: Desk, down: str) -> None:
    desk.answer(500, only=(down,))
    for n, action in enumerate(("trigger", "resolve")):
        books.commit(store, books.result(n), alerts=(alert(n, action, sinks=NAMES),))
        with pytest.raises(DeliveryFailed):
            deliver_pending(store, "payouts", desk.sinks())
    assert desk.said() == dict.fromkeys(NAMES, ONE_INCIDENT) | {down: []}
    desk.answer(200)
    deliver_pending(store, "payouts", desk.sinks())
    assert desk.said() == dict.fromkeys(NAMES, ONE_INCIDENT)


def test_alerts_that_were_written_before_a_restart_are_delivered_after_it(
    store_dsn: str, store: Engine, books: Any, desk: Desk
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0, sinks=NAMES),))
    books.commit(store, books.result(1), alerts=(alert(1, "resolve", sinks=NAMES),))
    store.dispose()
    deliver_pending(connect_store(store_dsn), "payouts", desk.sinks())
    assert desk.said() == dict.fromkeys(NAMES, ONE_INCIDENT)


DELIVERER = """
import sys
from tallystick.pipeline.deliver_alerts import deliver_pending
from tallystick.store.engine import connect_store
from tallystick.alerting.sinks.webhook import WebhookSink
dsn, address = sys.stdin.read().split()
deliver_pending(connect_store(dsn), "payouts", [WebhookSink(name="webhook:hook", address=address, timeout_seconds=600)])
"""


def test_a_deliverer_that_is_killed_after_sending_is_repeated_under_the_same_keys(
    store_dsn: str, store: Engine, books: Any, desk: Desk
) -> None:
    books.commit(store, books.result(0), alerts=(alert(0, sinks=NAMES[:1]),))
    hook = desk.receivers[NAMES[0]]
    hook.answer = "late"
    child = subprocess.Popen([sys.executable, "-c", DELIVERER], stdin=subprocess.PIPE, text=True)
    try:
        assert child.stdin is not None
        child.stdin.write(f"{store_dsn} {hook.address}")
        child.stdin.close()
        wait_until(lambda: len(hook.taken) == 1, what="the message is taken", deadline_seconds=120)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    hook.answer = 200
    deliver_pending(store, "payouts", desk.sinks()[:1])
    assert len(hook.taken) == 2
    assert len({headers["webhook-id"] for _, headers, _ in hook.requests}) == 1
    with store.connect() as connection:
        recorded = connection.execute(text("select delivered from tallystick.alert_delivery")).scalars().all()
    assert recorded == [True]  # of the killed one nobody knows


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_fails_and_whenever_no_alert_is_lost_or_overtaken(
    store: Engine, books: Any, desk: Desk, seed: int
) -> None:
    """Seven runs with two classes that come and go, while receivers fail at random, between two messages too."""
    chance = random.Random(seed)
    fires = {"phantom_in_topic": False, "missing_in_ledger": False}
    written: list[Said] = []
    for n in range(7):
        changed = [topic for topic in sorted(fires) if chance.random() < 0.6]
        told = []
        for topic in changed:
            fires[topic] = not fires[topic]
            told.append(alert(n, "trigger" if fires[topic] else "resolve", name=topic, sinks=NAMES))
        written += [(one.action, one.dedup_key) for one in told]
        books.commit(store, books.result(n), alerts=tuple(told))
        for receiver in desk.receivers.values():
            receiver.first_answers = chance.choices([200, 200, 500, "reset"], k=chance.randint(0, 5))
        with suppress(DeliveryFailed):
            deliver_pending(store, "payouts", desk.sinks())
    for receiver in desk.receivers.values():
        receiver.first_answers = []
    deliver_pending(store, "payouts", desk.sinks())
    for name, said in desk.said().items():
        for key in {key for _, key in written}:
            of_key = [one for one in said if one[1] == key]
            once = [one for n, one in enumerate(of_key) if of_key[:n][-1:] != [one]]
            assert once == [one for one in written if one[1] == key], name
