"""What is proposed rests on values that both sides have; what is not found is said, and is then in no contract."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract.contract import Contract, load_contract
from tallystick.contract.event import EventFields
from tallystick.contract.field_path import values_by_path
from tallystick.model.direction import Direction
from tallystick.proposal.contract_text import contract_text
from tallystick.proposal.fields import Proposal, propose
from tallystick.proposal.samples import Column, ColumnKind, TableSample, TopicSample

SPACE = UUID(int=0)
TEXT, INTEGER, DECIMAL, TIME = ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.DECIMAL, ColumnKind.TIME
EVENTS = tuple(
    {
        "id": str(uuid5(SPACE, str(n))),
        "order": f"o-{n // 2}",
        "type": "order",
        "quantity": n % 3,
        "price": 100 + n,
        "currency": "EUR" if n % 2 else "USD",
        "items": [n],
    }
    for n in range(40)
)
COLUMNS = (
    Column(name="booking_id", kind=INTEGER, leads_index=True, is_unique=True, is_primary_key=True),
    Column(name="source_event", kind=TEXT, leads_index=True),
    Column(name="order_ref", kind=TEXT),
    Column(name="leg", kind=TEXT),
    Column(name="cents", kind=INTEGER),
    Column(name="ccy", kind=TEXT),
    Column(name="booked_at", kind=TIME, has_zone=True),
)
ROWS = tuple(
    {
        "booking_id": n,
        "source_event": UUID(event["id"]),
        "order_ref": event["order"],
        "leg": "order",
        "cents": event["price"],
        "ccy": event["currency"],
        "booked_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    for n, event in enumerate(EVENTS[:36])
)


def topic(
    events: Sequence[Mapping[str, Any]] = EVENTS, *, name: str = "shop.orders", unreadable: int = 0
) -> TopicSample:
    return TopicSample(topic=name, events=tuple(events), unreadable=unreadable)


def table_of(
    rows: Sequence[Mapping[str, Any]] = ROWS, *, columns: Sequence[Column] = COLUMNS, kind: str = "postgres"
) -> TableSample:
    def find_rows(column: str, values: Sequence[Any]) -> list[Mapping[str, Any]]:
        assert any(one.name == column and one.leads_index for one in columns), "a look-up that would scan the table"
        return [row for row in rows if str(row[column]) in {str(value) for value in values}]

    return TableSample(table="shop.booking", kind=kind, columns=tuple(columns), rows=(), find_rows=find_rows)


def pairings(proposal: Proposal) -> dict[str, tuple[str, str]]:
    return {pairing.role: (pairing.key, pairing.column) for pairing in proposal.pairings}


ALL = {
    "match_key": ("id", "source_event"),
    "transaction_key": ("order", "order_ref"),
    "leg": ("type", "leg"),
    "amount_minor": ("price", "cents"),
    "currency": ("currency", "ccy"),
}


def test_keys_pair_with_the_columns_that_have_their_values_whatever_they_are_called() -> None:
    proposal = propose([topic()], table_of(), direction=None)
    assert pairings(proposal) == {**ALL, "transaction_key": ("id", "source_event")}  # `order` names no id
    assert proposal.missing == ()
    assert {p.role: p.why for p in proposal.pairings} == {
        "match_key": "36 of 40 values found in the column",
        "transaction_key": "no key of a larger transaction was seen, so each event is one of its own",
        "leg": "equal in 36 of 36 pairs",
        "amount_minor": "equal in 36 of 36 pairs",
        "currency": "equal in 36 of 36 pairs",
    }
    assert (proposal.row_id and proposal.row_id.value, proposal.written_at and proposal.written_at.value) == (
        "booking_id",
        "booked_at",
    )


def test_a_key_that_is_called_an_id_of_something_larger_is_the_transactions() -> None:
    events = [{**event, "orderId": event["order"]} for event in EVENTS]
    assert pairings(propose([topic(events)], table_of(), direction=None))["transaction_key"] == ("orderId", "order_ref")


def test_a_key_whose_values_stand_in_no_column_is_none_and_the_sentence_says_what_there_is() -> None:
    others = [{**row, "source_event": UUID(int=n + 1)} for n, row in enumerate(ROWS)]
    proposal = propose([topic()], table_of(others), direction=None)
    assert proposal.pairings == ()
    assert proposal.missing == (
        "match_key: no key of the payload (currency, id, order, price, quantity, type) has its values in a column of "
        "shop.booking (booking_id, source_event, order_ref, leg, cents, ccy); expected a key that differs in each "
        "event, and that the ledger stores",
    )


def test_a_key_that_repeats_is_no_match_key_though_all_its_values_are_found() -> None:
    events = [{**event, "id": EVENTS[0]["id"]} for event in EVENTS]
    assert propose([topic(events)], table_of(), direction=None).pairings == ()


def test_the_same_name_is_taken_where_the_table_is_empty_and_says_that_nothing_was_found() -> None:
    columns = [replace(column, name="event_id") if column.name == "source_event" else column for column in COLUMNS]
    events = [{**event, "event_id": event["id"]} for event in EVENTS]
    match, *_ = propose([topic(events)], table_of((), columns=columns), direction=None).pairings
    assert (match.key, match.column) == ("event_id", "event_id")
    assert match.why == "the same name; none of 40 values found in the column, so look again"


def test_a_number_that_differs_is_not_the_money() -> None:
    wrong = [{**row, "cents": row["cents"] + 1} for row in ROWS]
    proposal = propose([topic()], table_of(wrong), direction=None)
    assert "amount_minor" not in pairings(proposal)
    assert proposal.missing == (
        "amount_minor: no key of the payload has numbers that equal a column of whole or decimal numbers; expected one "
        "in both sides",
    )


@pytest.mark.parametrize(
    ("said", "stored", "kind", "units"),
    [
        (lambda n: 1000 + n, lambda n: 1000 + n, INTEGER, ("minor", "minor")),
        (lambda n: Decimal(1000 + n) / 100, lambda n: 1000 + n, INTEGER, ("major", "minor")),
        (lambda n: str(Decimal(1000 + n) / 100), lambda n: Decimal(1000 + n) / 100, DECIMAL, ("major", "major")),
        (lambda n: 1000 + n, lambda n: Decimal(1000 + n) / 100, DECIMAL, ("minor", "major")),
    ],
)
def test_units_follow_from_how_the_numbers_differ(said: Any, stored: Any, kind: ColumnKind, units: Any) -> None:
    events = [{**event, "price": said(n)} for n, event in enumerate(EVENTS)]
    rows = [{**row, "cents": stored(n)} for n, row in enumerate(ROWS)]
    columns = [replace(column, kind=kind) if column.name == "cents" else column for column in COLUMNS]
    proposal = propose([topic(events)], table_of(rows, columns=columns), direction=None)
    assert pairings(proposal)["amount_minor"] == ("price", "cents")
    assert (proposal.event_unit.value, proposal.ledger_unit.value) == units


def test_of_two_postings_the_word_that_picks_one_of_each_is_proposed() -> None:
    columns = (*COLUMNS, Column(name="side", kind=TEXT))
    both = [{**row, "side": side, "booking_id": 2 * n} for n, row in enumerate(ROWS) for side in ("debit", "credit")]
    where = propose([topic()], table_of(both, columns=columns), direction=None).where
    assert where is not None
    assert (where.value, where.why) == (
        "side = 'credit'",
        "up to 2 rows of one source_event; this picks one of each",
    )


def test_one_posting_needs_no_condition() -> None:
    columns = (*COLUMNS, Column(name="side", kind=TEXT))
    rows = [{**row, "side": ("debit", "credit")[n % 2]} for n, row in enumerate(ROWS)]
    assert propose([topic()], table_of(rows, columns=columns), direction=None).where is None


def test_each_topic_has_a_leg_of_its_own() -> None:
    first, second = [dict(event) for event in EVENTS[:20]], [{**event, "type": "refund"} for event in EVENTS[20:]]
    rows = [{**row, "leg": "refund" if n >= 20 else "order"} for n, row in enumerate(ROWS)]
    topics = [topic(first), topic(second, name="shop.refunds")]
    proposal = propose(topics, table_of(rows), direction=None)
    assert pairings(proposal)["leg"] == ("type", "leg")
    mixed = [topic([*first, *second]), topic(second, name="shop.refunds")]
    assert "leg" not in pairings(propose(mixed, table_of(rows), direction=None))


def test_a_relays_mark_says_outbox_unless_somebody_knows_better() -> None:
    columns = (*COLUMNS, Column(name="published_at", kind=TIME))
    rows = [{**row, "published_at": None} for row in ROWS]
    outbox = propose([topic()], table_of(rows, columns=columns), direction=None).direction
    assert (outbox.value, outbox.why) == (
        "ledger_to_topic",
        "published_at looks like a relay's mark: an outbox; check it",
    )
    asked = propose([topic()], table_of(rows, columns=columns), direction=Direction.TOPIC_TO_LEDGER).direction
    assert asked.value == "topic_to_ledger"
    assert propose([topic()], table_of(), direction=None).direction.value == "topic_to_ledger"


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (topic(()), "topic shop.orders: no committed event in it yet; expected some to look at"),
        (
            topic((), unreadable=7),
            "topic shop.orders: 7 records looked at, and none is a JSON object; expected JSON",
        ),
    ],
)
def test_a_topic_without_events_is_told(sample: TopicSample, reason: str) -> None:
    assert propose([sample], table_of(), direction=None).missing == (reason,)


def test_some_records_that_are_no_json_are_remarked_and_no_obstacle() -> None:
    proposal = propose([topic(unreadable=2)], table_of(), direction=None)
    assert proposal.remarks == ("topic shop.orders: 2 of 42 records looked at are no JSON object",)
    assert proposal.missing == ()


IN_AN_ENVELOPE = tuple(
    dict(
        values_by_path(
            {
                "type": "shop.order",
                "id": 7,
                "data": {
                    "order": {"id": event["id"], "kind": event["type"], "lines": [event["price"]]},
                    "order.total": event["price"],
                    "currency-code": event["currency"],
                },
            }
        )
    )
    for event in EVENTS
)


def test_fields_inside_an_envelope_are_proposed_by_their_paths(tmp_path: Path) -> None:
    table, topics = table_of(), [topic(IN_AN_ENVELOPE)]
    proposal = propose(topics, table, direction=None)
    assert pairings(proposal) == {
        "match_key": ("data.order.id", "source_event"),
        "transaction_key": ("data.order.id", "source_event"),
        "leg": ("data.order.kind", "leg"),
        "amount_minor": ('data."order.total"', "cents"),
        "currency": ("data.currency-code", "ccy"),
    }
    assert contract_written(tmp_path, proposal, topics, table).event == EventFields(
        match_key="data.order.id",
        transaction_key="data.order.id",
        leg="data.order.kind",
        amount_minor='data."order.total"',
        currency="data.currency-code",
    )


def test_the_keys_of_a_path_speak_together() -> None:
    columns = [replace(column, name="order_id") if column.name == "source_event" else column for column in COLUMNS]
    match, *_ = propose(
        [topic([{"event": 1, "message.id": event["id"]} for event in EVENTS])],
        table_of((), columns=[replace(column, name="message_id") for column in columns[1:2]]),
        direction=None,
    ).pairings
    assert (match.key, match.column) == ("message.id", "message_id")


@pytest.mark.parametrize("path", ["null", "on", "yes", '"order.id"', '"it\'s".id', 'a."b: c #d"', "orderId"])
def test_any_path_comes_back_from_yaml_as_it_is(tmp_path: Path, path: str) -> None:
    events = [{**{key: value for key, value in event.items() if key != "id"}, path: event["id"]} for event in EVENTS]
    table, topics = table_of(), [topic(events)]
    proposal = propose(topics, table, direction=None)
    assert contract_written(tmp_path, proposal, topics, table).event.match_key == path


def test_columns_that_need_quotes_are_proposed_in_quotes_and_others_are_remarked(tmp_path: Path) -> None:
    spoken = {"booking_id": "bookingId", "source_event": "Source Event", "ccy": "ccy%"}
    columns = [replace(column, name=spoken.get(column.name, column.name)) for column in COLUMNS]
    rows = [{spoken.get(name, name): value for name, value in row.items()} for row in ROWS]
    table, topics = table_of(rows, columns=columns), [topic()]
    proposal = propose(topics, table, direction=None, currency="EUR")
    assert proposal.remarks == ("columns that a contract cannot name, even in quotes: ccy%",)
    contract = contract_written(tmp_path, proposal, topics, table)
    assert (contract.ledger.columns.row_id, contract.ledger.columns.match_key) == ('"bookingId"', '"Source Event"')


def test_a_leg_of_one_topic_and_a_currency_that_is_said_are_stated_for_all(tmp_path: Path) -> None:
    gone = ("type", "leg", "currency", "ccy")
    events = [{name: value for name, value in event.items() if name not in gone} for event in EVENTS]
    rows = [{name: value for name, value in row.items() if name not in gone} for row in ROWS]
    table, topics = table_of(rows, columns=[one for one in COLUMNS if one.name not in gone]), [topic(events)]
    assert propose(topics, table, direction=None).missing == (
        "currency: no key of the payload has ISO 4217 codes that stand in a column too; --currency CODE says it of "
        "all; expected one in both sides",
    )
    another = [{**event, "ccy": "EUR" if n % 2 else "USD"} for n, event in enumerate(events)]
    assert propose([topic(another)], table, direction=None, currency="EUR").missing
    contract = contract_written(tmp_path, propose(topics, table, direction=None, currency="JPY"), topics, table)
    assert contract.legs == {"orders": "shop.orders"}
    assert contract.event.constants == contract.ledger.columns.constants == {"leg": "orders", "currency": "JPY"}


def contract_written(folder: Path, proposal: Proposal, topics: Sequence[TopicSample], table: TableSample) -> Contract:
    """What the file says that is made of a proposal."""
    file = folder / "shop_orders.yaml"
    file.write_text(
        contract_text(
            proposal,
            topics,
            table,
            name="shop_orders",
            connections={"kafka": "shop_kafka", "ledger": "shop_ledger"},
            now=datetime(2026, 11, 25, 18, 31, tzinfo=UTC),
        )
    )
    return load_contract(file)


@pytest.mark.parametrize("kind", ["postgres", "jdbc"])
def test_what_is_written_is_a_contract(tmp_path: Path, kind: str) -> None:
    table, topics = table_of(kind=kind), [topic()]
    contract = contract_written(tmp_path, propose(topics, table, direction=None), topics, table)
    assert (contract.name, contract.legs, contract.start_date.hour) == ("shop_orders", {"order": "shop.orders"}, 18)
    assert (contract.event.match_key, contract.ledger.columns.match_key) == ALL["match_key"]
    assert (contract.event.amount_minor, contract.ledger.columns.amount_minor) == ALL["amount_minor"]
    sliced = ("booking_id", 1000) if kind == "jdbc" else (None, None)
    assert (contract.ledger.order_by, contract.ledger.overlap) == sliced
    assert "# 36 of 40 values found in the column" in (tmp_path / "shop_orders.yaml").read_text()


TEXTS = st.text(max_size=8) | st.integers() | st.booleans() | st.none() | st.lists(st.integers(), max_size=2)


@example(
    events=[{"A": ""}], values=[("", "x", [], False, None, None, True), ("", [], None, None, False, None, [])]
).via("arrays beside two rows of one key")
@example(events=[{"A": ""}], values=[("", "", "", "", None, None, None)]).via("what all have alike is stated")
@given(
    st.lists(st.dictionaries(st.text(max_size=6), TEXTS, max_size=5), max_size=8),
    st.lists(st.tuples(*[TEXTS] * len(COLUMNS)), max_size=8),
)
def test_no_payload_and_no_row_stops_it_and_a_key_is_only_proposed_with_a_column(
    events: list[dict[str, Any]], values: list[tuple[Any, ...]]
) -> None:
    rows = [dict(zip([column.name for column in COLUMNS], one, strict=True)) for one in values]
    proposal = propose([topic(events)], table_of(rows), direction=None)
    assert all(bool(one.key) == bool(one.column) != bool(one.constant) for one in proposal.pairings)
    assert proposal.missing or len(proposal.pairings) == len(ALL)
