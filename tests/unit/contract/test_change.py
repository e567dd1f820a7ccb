"""What a changed contract does to its books: a change that fires each rule, and its twin that does not.

One file, since each field of a contract has its case in one table.
"""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from tallystick.contract.change import (
    RULES,
    ChangeEffect,
    ContractChange,
    ContractChangeRefused,
    contract_changes,
    gravest,
    refuse_other_books,
    value_text,
)
from tallystick.contract.contract import Contract
from tallystick.contract.error_lines import fields_by_key, model_inside
from tallystick.contract.event import InputFields
from tallystick.contract.field_types import Constant, Place
from tallystick.model.direction import Direction
from tallystick.pipeline.make_cut import next_topic_slices
from tests.unit.builders import NOON, T2T, contract_of, cut_of, partition_at, sample_at, slice_of

KEPT, ANEW, REFUSED = ChangeEffect.KEPT, ChangeEffect.RE_EVALUATED, ChangeEffect.REFUSED
TWO_LEGS = {"payout": "billing.payouts", "fee": "billing.fees"}
RECEIPT_COLUMNS = {"receipt_partition": "sent_partition", "receipt_offset": "sent_offset"}
REPAIRS = {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": {"EUR": 100}}
REVERSES = {"classes": ["duplicate_in_topic_zombie"], "max_amount_minor": {"EUR": 100}}
ORDERED = {"ordering_key": "account", "sequence": "number"}
ORIGINS = {"origin_header": "service", "known_origins": ["payouts"]}


def posting(**changes: Any) -> Contract:
    post = {
        "connection": "poster",
        "actions_table": "billing.posted_action",
        "columns": {"event_id": "event_id"},
        "rows": {"payout": [{"side": "credit"}]},
    }
    rules = {"classes": ["missing_in_ledger"], "max_amount_minor": {"EUR": 100}, "post": post | changes}
    return contract_of(Direction.TOPIC_TO_LEDGER, compensation=rules)


def counterposting(reversal: str) -> Contract:
    post = {
        "connection": "poster",
        "actions_table": "billing.posted_action",
        "columns": {"amount_minor": "amount_minor"},
        "rows": {"payout": [{"side": "credit"}]},
    }
    rules = {"classes": ["duplicate_in_ledger"], "max_amount_minor": {"EUR": 100}, "post": post, "reversal": reversal}
    ledger = contract_of().model_dump(mode="json", exclude_defaults=True)["ledger"]
    columns = {"reverses": "reverses_entry"}
    return contract_of(Direction.TOPIC_TO_LEDGER, ledger=ledger | {"columns": columns}, compensation=rules)


def with_parts(**parts: dict[str, Any]) -> Contract:
    """The plain contract; each part's keys are added to it."""
    plain = contract_of().model_dump(mode="json")
    return Contract.model_validate(plain | {name: (plain[name] or {}) | keys for name, keys in parts.items()})


def with_columns(**columns: str) -> Contract:
    return with_parts(ledger={"slice_by": "written_xid", "columns": columns})


def with_inputs(**ledger: Any) -> Contract:
    plain = contract_of(T2T).model_dump(mode="json")["ledger"]
    return contract_of(T2T, ledger=plain | ledger)


PLAIN = contract_of()
PLAIN_LEDGER = PLAIN.model_dump(mode="json", exclude_defaults=True)["ledger"]
BY_WRITTEN_XID = with_columns()
TRIGGER: dict[str, Any] = {"connection": "airflow", "dags": {"phantom_in_topic": "by_hand"}}
REPAIRED = contract_of(compensation=REPAIRS)
RECEIPTS = with_columns(**RECEIPT_COLUMNS)
GROWS = {"kind": "jdbc", "order_by": "entry_id", "overlap": 10}
BY_COLUMN = with_parts(ledger=GROWS)
BY_INNODB = with_parts(ledger={"kind": "jdbc", "order_by": "row_start", "horizon": "innodb"})
FILES = {"kind": "parquet", "quiet_seconds": 60}
IN_FILES = with_parts(ledger=FILES)


OF_INPUTS = with_inputs()


def effects(before: Contract, after: Contract) -> dict[str, ChangeEffect]:
    return {change.field: change.effect for change in contract_changes(before, after)}


def fields_of(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Dotted names of all that a document may say; what stands many times, as in a list, is one."""
    for name, field in fields_by_key(model).items():
        inside = None if get_origin(field.annotation) in (tuple, dict) else model_inside(field.annotation)
        inside = None if inside in get_args(Constant | Place) else inside
        yield from fields_of(inside, f"{above}{name}.") if inside else (f"{above}{name}",)


def test_every_field_of_a_contract_has_its_rule_and_no_rule_is_without_field() -> None:
    assert list(RULES) == sorted(RULES, key=list(fields_of(Contract)).index)
    assert set(RULES) == set(fields_of(Contract))


OF_AVRO = with_parts(kafka={"schema_registry": "schemas"}, event={"format": "avro"})

SPELT_OUT = contract_of(compare={"fee": {"exact": "text", "event": "fee", "column": "fee"}})
COMPARES_ELSEWHERE = contract_of(compare={"fee": {"exact": "text", "column": "cost"}})

CASES = [
    *(
        (
            f"ledger.columns.{name}",
            contract_of(Direction.TOPIC_TO_LEDGER),
            contract_of(Direction.TOPIC_TO_LEDGER, ledger=PLAIN_LEDGER | {"columns": {name: "other"}}),
            ANEW,
        )
        for name in ("reverses", "action_id")
    ),
    ("contract", PLAIN, contract_of(contract="another"), REFUSED),
    ("version", PLAIN, contract_of(version=2), KEPT),
    ("description", PLAIN, contract_of(description="Payouts."), KEPT),
    ("owner", PLAIN, contract_of(owner="others"), KEPT),
    ("schedule", PLAIN, contract_of(schedule="30 * * * *"), KEPT),
    ("start_date", PLAIN, contract_of(start_date=NOON), KEPT),
    ("kafka.connection", PLAIN, with_parts(kafka={"connection": "other"}), REFUSED),
    ("kafka.stray_topics", PLAIN, with_parts(kafka={"stray_topics": ["billing.dead"]}), ANEW),
    ("kafka.producers", PLAIN, with_parts(kafka={"producers": "transactional"}), KEPT),
    ("legs.fee", PLAIN, contract_of(legs=TWO_LEGS), ANEW),
    ("legs.fee", contract_of(legs=TWO_LEGS), PLAIN, REFUSED),
    ("legs.payout", PLAIN, contract_of(legs={"payout": "billing.fees"}), REFUSED),
    ("kafka.schema_registry", OF_AVRO, with_parts(kafka={"schema_registry": "other"}, event={"format": "avro"}), ANEW),
    ("compare.fee", PLAIN, contract_of(compare={"fee": "exact"}), ANEW),
    ("compare.fee", contract_of(compare={"fee": "exact"}), PLAIN, ANEW),
    ("compare.fee", contract_of(compare={"fee": "exact"}), contract_of(compare={"fee": "ignore"}), ANEW),
    ("compare.fee", contract_of(compare={"fee": {"abs": 1}}), contract_of(compare={"fee": {"rel": 0.1}}), ANEW),
    ("compare.fee", contract_of(compare={"fee": {"abs": 1}}), contract_of(compare={"fee": "exact"}), REFUSED),
    ("compare.fee", contract_of(compare={"fee": "exact"}), COMPARES_ELSEWHERE, REFUSED),
    ("compare.fee", contract_of(compare={"fee": "exact"}), SPELT_OUT, ANEW),
    ("event.format", OF_AVRO, with_parts(kafka={"schema_registry": "schemas"}, event={"format": "debezium"}), ANEW),
    ("event.match_key", PLAIN, with_parts(event={"match_key": "id"}), REFUSED),
    ("event.transaction_key", PLAIN, with_parts(event={"transaction_key": "id"}), REFUSED),
    ("event.leg", PLAIN, with_parts(event={"leg": "kind"}), REFUSED),
    ("event.amount_minor", PLAIN, with_parts(event={"amount_minor": "cents"}), REFUSED),
    ("event.currency", PLAIN, with_parts(event={"currency": "code"}), REFUSED),
    ("event.currency", PLAIN, with_parts(event={"currency": {"constant": "EUR"}}), REFUSED),
    ("event.amount_unit", PLAIN, with_parts(event={"amount_unit": "major"}), REFUSED),
    ("event.ordering_key", with_parts(event=ORDERED), with_parts(event=ORDERED | {"ordering_key": "iban"}), ANEW),
    ("event.sequence", with_parts(event=ORDERED), with_parts(event=ORDERED | {"sequence": "n"}), ANEW),
    ("event.origin_header", with_parts(event=ORIGINS), with_parts(event=ORIGINS | {"origin_header": "app"}), ANEW),
    ("event.known_origins", with_parts(event=ORIGINS), with_parts(event=ORIGINS | {"known_origins": ["x"]}), ANEW),
    ("ledger.order_by", BY_COLUMN, with_parts(ledger=GROWS | {"order_by": "created_at"}), REFUSED),
    ("ledger.overlap", BY_COLUMN, with_parts(ledger=GROWS | {"overlap": 9}), ANEW),
    ("ledger.overlap", BY_COLUMN, with_parts(ledger=GROWS | {"overlap": 11}), REFUSED),
    (
        "ledger.horizon",
        BY_INNODB.model_copy(update={"ledger": BY_INNODB.ledger.model_copy(update={"horizon": "overlap"})}),
        BY_INNODB,
        REFUSED,
    ),
    ("ledger.quiet_seconds", IN_FILES, with_parts(ledger=FILES | {"quiet_seconds": 59}), ANEW),
    ("ledger.quiet_seconds", IN_FILES, with_parts(ledger=FILES | {"quiet_seconds": 61}), REFUSED),
    (
        "ledger.kind",
        PLAIN.model_copy(update={"ledger": PLAIN.ledger.model_copy(update={"kind": "of old"})}),
        PLAIN,
        REFUSED,
    ),
    ("ledger.topics", OF_INPUTS, with_inputs(topics=["billing.others"]), REFUSED),
    *(
        (f"ledger.event.{name}", OF_INPUTS, with_inputs(event={name: "other"}), REFUSED)
        for name in InputFields.model_fields
        if name != "format"
    ),
    ("ledger.event.format", OF_INPUTS, with_inputs(event={"format": "json_schema"}), ANEW),
    ("ledger.index_windows", OF_INPUTS, with_inputs(index_windows=24), ANEW),
    ("ledger.index_windows", PLAIN, with_parts(ledger={"index_windows": 24}), ANEW),
    ("ledger.connection", PLAIN, with_parts(ledger={"connection": "other"}), REFUSED),
    ("ledger.primary_connection", PLAIN, with_parts(ledger={"primary_connection": "first"}), ANEW),
    ("ledger.table", PLAIN, with_parts(ledger={"table": "billing.other"}), REFUSED),
    ("ledger.where", PLAIN, with_parts(ledger={"where": "side = 'credit'"}), REFUSED),
    ("ledger.slice_by", PLAIN, BY_WRITTEN_XID, REFUSED),
    (
        "ledger.compared_windows",
        BY_WRITTEN_XID,
        with_parts(ledger={"slice_by": "written_xid", "compared_windows": 24}),
        ANEW,
    ),
    (
        "ledger.earlier_rows",
        BY_WRITTEN_XID,
        with_parts(ledger={"slice_by": "written_xid", "earlier_rows": "archived"}),
        ANEW,
    ),
    ("ledger.amount_unit", PLAIN, with_parts(ledger={"amount_unit": "major"}), REFUSED),
    *(
        (f"ledger.columns.{name}", BY_WRITTEN_XID, with_columns(**{name: "other"}), effect)
        for name, effect in {
            "row_id": REFUSED,
            "match_key": REFUSED,
            "transaction_key": REFUSED,
            "leg": REFUSED,
            "amount_minor": REFUSED,
            "currency": REFUSED,
            "occurred_at": KEPT,
            "written_at": ANEW,
        }.items()
    ),
    *(
        (f"ledger.columns.{name}", RECEIPTS, with_columns(**RECEIPT_COLUMNS | {name: "other"}), ANEW)
        for name in RECEIPT_COLUMNS
    ),
    ("currency_case", PLAIN, contract_of(currency_case="ignored"), ANEW),
    ("currency_case", contract_of(currency_case="ignored"), PLAIN, REFUSED),
    ("match.many_to_one", PLAIN, contract_of(match={"many_to_one": "events"}), REFUSED),
    ("timestamp_tolerance_seconds", PLAIN, contract_of(timestamp_tolerance_seconds=60), KEPT),
    ("partner_grace_seconds", PLAIN, contract_of(partner_grace_seconds=61), ANEW),
    ("partner_grace_cap_seconds", PLAIN, contract_of(partner_grace_cap_seconds=90), ANEW),
    ("settle_timeout_seconds", PLAIN, contract_of(settle_timeout_seconds=61), ANEW),
    ("verdict_within_seconds", PLAIN, contract_of(verdict_within_seconds=61), KEPT),
    ("shown_keys", PLAIN, contract_of(shown_keys=["match_key"]), KEPT),
    ("empty", PLAIN, contract_of(empty="allowed"), ANEW),
    ("expectations", PLAIN, contract_of(expectations="my_package.suites"), KEPT),
    ("alert.escalate_after_seconds", PLAIN, contract_of(alert={"escalate_after_seconds": 60}), KEPT),
    ("alert.backfilled", PLAIN, contract_of(alert={"backfilled": "same"}), KEPT),
    ("alert.match_keys", PLAIN, contract_of(alert={"match_keys": "shown"}), KEPT),
    ("alert.sinks", PLAIN, contract_of(alert={"sinks": [{"kind": "file", "path": "a.jsonl"}]}), KEPT),
    ("alert.critical_at_minor", PLAIN, contract_of(alert={"critical_at_minor": {"EUR": 1}}), KEPT),
    ("alert.severity_by_class", PLAIN, contract_of(alert={"severity_by_class": {"amount_mismatch": "info"}}), KEPT),
    *(
        (
            f"compensation.{name}",
            contract_of(compensation=REPAIRS),
            contract_of(compensation=REPAIRS | {name: now}),
            KEPT,
        )
        for name, now in {
            "classes": ["missing_in_topic_aborted_only"],
            "abort_hanging_transactions": True,
            "max_items": 7,
            "max_amount_minor": {"EUR": 1},
            "max_items_per_day": 7,
            "max_amount_minor_per_day": {"EUR": 1},
            "acting_minutes": "* 6 * * *",
            "four_eyes_above_minor": {"EUR": 1},
            "approvers": ["ada"],
            "approval_timeout_seconds": 60,
            "approval_valid_seconds": 60,
        }.items()
    ),
    *(
        (
            f"compensation.post.{name}",
            posting(),
            posting(**{name: now}),
            REFUSED if name == "actions_table" else KEPT,
        )
        for name, now in {
            "connection": "another",
            "actions_table": "billing.another",
            "columns": {"event_id": "event_id", "leg": "leg"},
            "rows": {"payout": [{}]},
        }.items()
    ),
    *(
        (
            f"compensation.trigger.{name}",
            contract_of(compensation=REPAIRS | {"trigger": TRIGGER}),
            contract_of(compensation=REPAIRS | {"trigger": TRIGGER | {name: now}}),
            KEPT,
        )
        for name, now in {"connection": "another", "dags": {"phantom_in_topic": "another"}}.items()
    ),
    (
        "compensation.reversal",
        contract_of(compensation=REVERSES | {"reversal": "negated"}),
        contract_of(compensation=REVERSES | {"reversal": "header"}),
        KEPT,
    ),
    (
        "compensation.reversal",
        counterposting("negated"),
        counterposting("column"),
        ANEW,
    ),
]


@pytest.mark.parametrize(("field", "before", "after", "effect"), CASES, ids=[f"{case[0]} {case[3]}" for case in CASES])
def test_a_change_does_what_its_field_says_and_its_twin_does_nothing(
    field: str, before: Contract, after: Contract, effect: ChangeEffect
) -> None:
    assert effects(before, after) == {field: effect}
    assert contract_changes(after, Contract.model_validate(after.model_dump(mode="json"))) == ()


# direction, kind and consumer_isolation stand apart: each goes with others.


def test_another_kind_of_ledger_is_refused_and_the_same_one_is_no_change() -> None:
    assert effects(PLAIN, BY_COLUMN)["ledger.kind"] is effects(BY_COLUMN, PLAIN)["ledger.kind"] is REFUSED
    assert effects(PLAIN, with_parts(ledger={"kind": "postgres"})) == {}


def test_another_direction_is_refused_and_the_same_one_is_no_change() -> None:
    other = contract_of(Direction.TOPIC_TO_LEDGER)
    assert effects(PLAIN, other) == {"direction": REFUSED}
    assert effects(other, contract_of(Direction.TOPIC_TO_LEDGER)) == {}


def test_the_declared_isolation_of_the_consumer_is_kept() -> None:
    before = contract_of(Direction.TOPIC_TO_LEDGER)
    after = before.model_copy(
        update={"ledger": before.ledger.model_copy(update={"consumer_isolation": "read_uncommitted"})}
    )
    assert effects(before, after) == {"ledger.consumer_isolation": KEPT}


def test_every_field_has_a_case() -> None:
    tried = {field.split(".")[0] if field.startswith(("legs.", "compare.")) else field for field, *_ in CASES}
    assert tried | {"direction", "ledger.kind", "ledger.consumer_isolation"} == set(RULES)


# Values.


def test_the_order_of_legs_in_a_file_is_no_change() -> None:
    assert contract_changes(contract_of(legs=TWO_LEGS), contract_of(legs=dict(reversed(TWO_LEGS.items())))) == ()


def test_a_renamed_leg_is_one_that_goes_and_one_that_comes() -> None:
    assert effects(PLAIN, contract_of(legs={"payment": "billing.payouts"})) == {
        "legs.payment": ANEW,
        "legs.payout": REFUSED,
    }


def test_a_part_that_is_new_is_told_by_its_fields() -> None:
    changes = contract_changes(PLAIN, contract_of(compensation=REPAIRS))
    assert [(one.field, one.before, one.after) for one in changes] == [
        ("compensation.classes", None, ["missing_in_topic_never_produced"]),
        ("compensation.abort_hanging_transactions", None, False),
        ("compensation.max_items", None, 100),
        ("compensation.max_amount_minor", None, {"EUR": 100}),
        ("compensation.max_amount_minor_per_day", None, {}),
        ("compensation.four_eyes_above_minor", None, {}),
        ("compensation.approvers", None, []),
        ("compensation.approval_timeout_seconds", None, 86_400),
        ("compensation.approval_valid_seconds", None, 86_400),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "none"), ("minor", '"minor"'), (60, "60"), (["a"], '["a"]'), ({"EUR": 1}, '{"EUR": 1}')]
)
def test_a_value_is_shown_as_it_is_written(value: object, text: str) -> None:
    assert value_text(value) == text


# The gravest effect, and what a cut makes of it.


@pytest.mark.parametrize(
    ("found", "worst"), [((), KEPT), ((KEPT,), KEPT), ((KEPT, ANEW), ANEW), ((ANEW, REFUSED, KEPT), REFUSED)]
)
def test_the_gravest_effect_decides(found: tuple[ChangeEffect, ...], worst: ChangeEffect) -> None:
    changes = [ContractChange(field="f", before=1, after=2, effect=effect, why="") for effect in found]
    assert gravest(changes) is worst


def test_books_do_not_go_on_on_another_table_and_the_sentence_says_what_to_do() -> None:
    after = with_parts(ledger={"table": "billing.other", "connection": "other"})
    with pytest.raises(ContractChangeRefused) as raised:
        refuse_other_books(PLAIN, after)
    connection, table = str(raised.value).splitlines()
    assert connection.startswith("billing_payouts: ledger.connection: got ")
    assert table.startswith(
        'billing_payouts: ledger.table: got "billing.other"; expected "billing.payout", as in its stored cuts.'
    )
    assert table.endswith("What to do: put the old value back, or begin a contract under a new name.")


def test_books_go_on_under_another_grace_and_begin_under_any_contract() -> None:
    refuse_other_books(PLAIN, contract_of(partner_grace_seconds=61, owner="others"))
    refuse_other_books(None, with_parts(ledger={"table": "billing.other"}))


# What the sentences say of the code.


def test_the_topic_of_an_added_leg_is_read_from_its_log_start_and_not_from_its_end() -> None:
    new = partition_at(topic="billing.fees", log_start=3, lso=9, high_watermark=9)
    parts = next_topic_slices(cut_of(slice_of(10, 20)), [partition_at(), new], sample_at(NOON, 20, 300))
    added = parts[0].offsets
    assert (added.topic, added.kafka_offset_start, added.kafka_offset_end) == ("billing.fees", 3, 9)
    assert "read from its log start" in contract_changes(PLAIN, contract_of(legs=TWO_LEGS))[0].why


def test_the_table_of_posted_actions_may_come_and_go_with_its_section() -> None:
    without = posting().model_copy(update={"compensation": None})
    for before, after in ((posting(), without), (without, posting())):
        assert effects(before, after)["compensation.post.actions_table"] is KEPT


@pytest.mark.parametrize(("table", "effect"), [("billing.another", REFUSED), ("billing.posted_action", None)])
def test_an_actions_table_that_went_comes_back_as_the_same_one_or_not_at_all(
    table: str, effect: ChangeEffect | None
) -> None:
    """Cuts without a section that posts lie between."""
    before, after = contract_of(Direction.TOPIC_TO_LEDGER), posting(actions_table=table)
    found = {one.field: one.effect for one in contract_changes(before, after, posted_in="billing.posted_action")}
    assert found.get("compensation.post.actions_table") is effect
    assert found["compensation.post.connection"] is KEPT
    assert effects(before, after)["compensation.post.actions_table"] is KEPT  # nothing was posted before
