"""A run that ended without a verdict pages, and the next verdict resolves that page, once."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine

from tallystick.alert import Alert
from tallystick.alert_message import SinkFailed
from tallystick.contract import Contract
from tallystick.no_verdict_alert import page_no_verdict, resolve_no_verdict


@dataclass
class Phone:
    """Takes alerts while it is on."""

    name: str
    is_on: bool = True
    heard: list[tuple[str, str]] = field(default_factory=list)

    def deliver(self, alert: Alert) -> str:
        if not self.is_on:
            raise SinkFailed("it is off")
        self.heard.append((alert.action, alert.dedup_key))
        return "202"


TRIGGER = ("trigger", "tallystick/payouts/no_verdict")
RESOLVE = ("resolve", "tallystick/payouts/no_verdict")


@pytest.fixture
def contract(new_contract: Callable[..., Contract]) -> Contract:
    return new_contract()


def page(store: Engine, contract: Contract, *phones: Phone) -> None:
    page_no_verdict(store, contract, phones, scheduler_run_id="scheduled__1", cut_n=None)


def test_a_page_is_resolved_once_when_verdicts_are_back(store: Engine, contract: Contract) -> None:
    phone = Phone("phone")
    page(store, contract, phone)
    assert [resolve_no_verdict(store, contract, (phone,)) for _ in range(2)] == [True, False]
    assert phone.heard == [TRIGGER, RESOLVE]


def test_where_nothing_was_paged_nothing_is_resolved(store: Engine, contract: Contract) -> None:
    phone = Phone("phone")
    assert resolve_no_verdict(store, contract, (phone,)) is False
    assert phone.heard == []


def test_a_second_silence_pages_again(store: Engine, contract: Contract) -> None:
    phone = Phone("phone")
    page(store, contract, phone)
    resolve_no_verdict(store, contract, (phone,))
    page(store, contract, phone)
    assert resolve_no_verdict(store, contract, (phone,)) is True


def test_a_phone_that_is_off_keeps_nobody_else_from_hearing(store: Engine, contract: Contract) -> None:
    off, on = Phone("off", is_on=False), Phone("on")
    with pytest.raises(SinkFailed, match="off: it is off"):
        page(store, contract, off, on)
    assert resolve_no_verdict(store, contract, (on,)) is True
    assert on.heard == [TRIGGER, RESOLVE]


def test_a_resolve_that_was_not_heard_is_sent_again(store: Engine, contract: Contract) -> None:
    phone = Phone("phone")
    page(store, contract, phone)
    phone.is_on = False
    with pytest.raises(SinkFailed):
        resolve_no_verdict(store, contract, (phone,))
    phone.is_on = True
    assert resolve_no_verdict(store, contract, (phone,)) is True
    assert phone.heard == [TRIGGER, RESOLVE]
