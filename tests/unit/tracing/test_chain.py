"""Contracts are joined by the topics and ledgers that they name on the same connection, in the event's way."""

import pytest

from tallystick.contract.contract import Contract
from tallystick.tracing.chain import chains_of, upstream_of


def contract(name: str, direction: str, *, topic: str, ledger: str, kafka: str = "kafka_billing") -> Contract:
    """One leg. ledger: a table, or the input topic."""
    of_topic = {"kind": "topic", "connection": kafka, "topics": [ledger]}
    of_table = {"connection": "ledger_billing", "table": ledger}
    return Contract.model_validate(
        {
            "contract": name,
            "version": 1,
            "owner": "billing-team",
            "direction": direction,
            "schedule": "* * * * *",
            "start_date": "2026-01-01T00:00:00Z",
            "kafka": {"connection": kafka},
            "legs": {"payment": topic},
            "ledger": of_topic if direction == "topic_to_topic" else of_table,
        }
    )


OUTBOX = contract("z_outbox", "ledger_to_topic", topic="orders", ledger="shop.outbox")
SERVICE = contract("m_service", "topic_to_topic", topic="payments", ledger="orders")
POSTING = contract("a_posting", "topic_to_ledger", topic="payments", ledger="books.posting")
ELSEWHERE = contract("elsewhere", "topic_to_ledger", topic="payments", ledger="lake.posting", kafka="kafka_other")


def names(*contracts: Contract) -> list[list[str]]:
    return [[one.name for one in chain] for chain in chains_of(contracts)]


def test_a_chain_goes_the_events_way_whatever_the_names() -> None:
    assert names(POSTING, OUTBOX, SERVICE) == [["z_outbox", "m_service", "a_posting"]]


def test_two_readers_of_one_topic_are_one_chain_and_go_by_name() -> None:
    lake = contract("b_lake", "topic_to_ledger", topic="payments", ledger="lake.payments")
    assert names(lake, POSTING) == [["a_posting", "b_lake"]]


def test_two_that_share_a_ledger_are_one_chain() -> None:
    outbox = contract("outbox", "ledger_to_topic", topic="posted", ledger="books.posting")
    assert names(outbox, POSTING) == [["a_posting", "outbox"]]


def test_a_topic_of_the_same_name_on_another_connection_is_another_topic() -> None:
    assert names(POSTING, ELSEWHERE) == [["a_posting"], ["elsewhere"]]


def test_without_the_one_between_them_two_are_two_chains() -> None:
    assert names(POSTING, OUTBOX) == [["a_posting"], ["z_outbox"]]


@pytest.mark.parametrize("turned", [False, True])
def test_a_circle_goes_by_name(turned: bool) -> None:
    back = contract("back", "topic_to_topic", topic="orders", ledger="payments")
    both = (SERVICE, back) if turned else (back, SERVICE)
    assert names(*both) == [["back", "m_service"]]


def test_upstream_is_all_that_lies_before_and_no_sibling() -> None:
    lake = contract("b_lake", "topic_to_ledger", topic="payments", ledger="lake.payments")
    chain = (OUTBOX, SERVICE, POSTING, lake)
    assert upstream_of(POSTING, chain) == upstream_of(lake, chain) == {"z_outbox", "m_service"}
    assert upstream_of(SERVICE, chain) == {"z_outbox"}
    assert upstream_of(OUTBOX, chain) == set()


def test_in_a_circle_each_is_upstream_of_the_other() -> None:
    back = contract("back", "topic_to_topic", topic="orders", ledger="payments")
    assert upstream_of(SERVICE, (SERVICE, back)) == {"back"}
    assert upstream_of(back, (SERVICE, back)) == {"m_service"}
