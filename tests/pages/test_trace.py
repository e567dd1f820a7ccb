"""A key is traced by a form, so that it stands in no address, through contracts that the reader may read."""

import json
import re
from typing import Any

import pytest
from sqlalchemy import Engine

from tallystick.contract.event import PayloadKey
from tallystick.tracing.document import trace_document
from tallystick.tracing.trace_key import trace_key
from tests.stored_books import fill, mismatch, missing, payments, payouts

ADDRESS = "/tallystick/trace"
pytestmark = pytest.mark.usefixtures("own_store")


def token_of(user: Any) -> str:
    _, _, rest = user.get(ADDRESS).text.partition('name="token" value="')
    return str(rest.partition('"')[0])


def traced(user: Any, key: str) -> str:
    answer = user.post(ADDRESS, data={"key": key, "token": token_of(user)})
    assert answer.status_code == 200
    return str(answer.text)


def states(page: str) -> list[tuple[str, str]]:
    """Contract and state of each row."""
    return re.findall(r'<tr><th scope="row"><a href="[^"]*">([^<]*)</a></th><td><span class="[^"]*">([^<]*)<', page)


@pytest.mark.parametrize(
    ("key", "state", "words"),
    [
        ("pay-1", "broken", "First lost at billing_payouts: Cut 12 found a break"),
        ("pay-2", "closed", "it is repaired"),
        ("pay-15", "closed", "it is written off"),
        ("pay-30", "waiting", "It is in flight since cut 29"),
    ],
)
def test_a_key_is_told_with_its_state_its_run_and_its_break(viewer: Any, key: str, state: str, words: str) -> None:
    page = traced(viewer, key)
    assert (payouts().name, state) in states(page)
    assert words in page
    assert 'value="pay-' not in page and f"key={key}" not in page
    if key == "pay-1":
        assert f'href="/tallystick/break/{missing(payouts(), key, 125_000).break_id}"' in page
        assert 'href="/tallystick/run/billing_payouts/12"' in page


def test_a_key_that_begins_as_another_is_another(viewer: Any) -> None:
    assert "broken" not in dict(states(traced(viewer, "pay-"))).values()
    assert "broken" not in dict(states(traced(viewer, "PAY-1"))).values()


def test_contracts_that_the_reader_may_not_read_are_neither_asked_nor_named(viewer: Any, stranger: Any) -> None:
    key = "pay-1"
    assert payouts().name in traced(viewer, key)
    page = traced(stranger, key)
    assert payouts().name not in page and payments().name in page


def test_contracts_that_hide_their_keys_are_named_and_not_asked(own_store: Engine, viewer: Any) -> None:
    from tests.pages.readers import add_dags

    contract = payouts().model_copy(update={"name": "veiled_payouts", "shown_keys": (PayloadKey.ORDERING_KEY,)})
    fill(own_store, contract)
    add_dags(f"reconcile_{contract.name}")
    page = traced(viewer, "pay-1")
    assert "Not asked here, since their contracts hide their keys: veiled_payouts." in page
    assert contract.name not in dict(states(page))
    assert str(mismatch(contract, "pay-15").break_id) not in traced(viewer, "pay-15")


def test_where_it_is_asked_nonetheless_a_hidden_key_stands_in_nothing_that_is_told(own_store: Engine) -> None:
    """As the command line asks. A torn transaction's key is a part of its item's id."""
    shown, hidden = (payouts().model_copy(update={"name": name}) for name in ("seen_payouts", "unseen_payouts"))
    hidden = hidden.model_copy(update={"shown_keys": ()})
    for contract, expected in ((shown, True), (hidden, False)):
        fill(own_store, contract)
        for key, state in (("pay-1", "broken"), ("order-pay-9", "broken"), ("pay-15", "closed")):
            (trace,) = trace_key(own_store, [contract], key, artifacts=None)
            assert trace.hops[0].state == state
        told = json.dumps(trace_document(trace_key(own_store, [contract], "order-pay-9", artifacts=None)))
        assert ("legs:order-pay-9" in told, "pay-9" in told) == (expected, expected)
        assert ("legs:masked" in told) is not expected


def test_the_form_of_nobody_or_of_another_is_refused(client: Any, viewer: Any, op: Any) -> None:
    token = token_of(viewer)
    assert client.post(ADDRESS, data={"key": "pay-1", "token": token}).status_code == 401
    for wrong in ("", "x", token[:-1], token_of(op)):
        answer = viewer.post(ADDRESS, data={"key": "pay-1", "token": wrong})
        assert answer.status_code in (403, 422) and "pay-1 " not in answer.text
    assert viewer.post(ADDRESS, data={"key": "pay-1"}).status_code == 422


@pytest.mark.parametrize("key", ["", "\x00", "k" * 1001])
def test_what_is_no_key_is_refused_before_the_store_is_asked(viewer: Any, key: str) -> None:
    assert viewer.post(ADDRESS, data={"key": key, "token": token_of(viewer)}).status_code == 422


def test_a_key_in_the_address_is_not_asked(viewer: Any) -> None:
    page = viewer.get(f"{ADDRESS}?key=pay-1").text
    assert states(page) == [] and "pay-1" not in page


def test_the_overview_leads_to_the_form(viewer: Any) -> None:
    assert f'href="{ADDRESS}"' in viewer.get("/tallystick/").text
