"""A contract is refused with file, path, value and what was expected; its twin, one fact away, is read."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tallystick.contract.compensation import COUNTERPOSTABLE, POSTABLE, REPUBLISHABLE, REVERSIBLE
from tallystick.contract.contract import Contract, ContractRefused, load_contract, load_contracts
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass

GOOD: dict[str, Any] = {
    "contract": "billing",
    "version": 1,
    "owner": "payments",
    "direction": "ledger_to_topic",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01T00:00:00Z",
    "kafka": {"connection": "kafka_billing"},
    "legs": {"payment": "billing.payments", "invoice": "billing.invoices"},
    "ledger": {"connection": "ledger_billing", "table": "ledger.posting", "where": "side = 'credit'"},
}
RECEIPT = {"receipt_partition": "sent_partition", "receipt_offset": "sent_offset"}
WITH_RECEIPT = {"connection": "l", "table": "a.b", "slice_by": "written_xid", "columns": RECEIPT}
INPUTS = {"kind": "topic", "connection": "k", "topics": ["billing.requests"]}
TO_TOPIC: dict[str, Any] = {"direction": "topic_to_topic", "ledger": INPUTS}
REPAIR: dict[str, Any] = {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": {"EUR": 100_000}}
ABORTS: dict[str, Any] = {"abort_hanging_transactions": True, "max_amount_minor": {"EUR": 100_000}}
TRIGGERS: dict[str, Any] = {
    "max_amount_minor": {"EUR": 100_000},
    "trigger": {
        "connection": "airflow",
        "dags": {"missing_in_topic_never_produced": "by_hand", "foreign_in_topic": "b.c"},
    },
}
REPAIRABLE = REPUBLISHABLE + REVERSIBLE + POSTABLE + COUNTERPOSTABLE
POSTS: dict[str, Any] = {
    "classes": ["missing_in_ledger"],
    "max_amount_minor": {"EUR": 100_000},
    "post": {
        "connection": "poster",
        "actions_table": "ledger.posted_action",
        "columns": {"event_id": "event_id", "leg": "leg"},
        "rows": {"payment": [{"side": "debit"}, {"side": "credit"}]},
    },
}
TAKES_BACK: dict[str, Any] = POSTS | {
    "classes": ["duplicate_in_ledger"],
    "reversal": "negated",
    "post": POSTS["post"] | {"columns": {"event_id": "event_id", "amount_minor": "amount_minor"}},
}
NAMED: dict[str, Any] = {"direction": "topic_to_ledger", "ledger__columns": {"reverses": "reverses_entry"}}


def shown(value: object) -> str:
    """As a refusal shows it: cut to a line."""
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def changed(**changes: Any) -> dict[str, Any]:
    """GOOD with some keys set; `ledger__table` reaches into `ledger`, and None takes a key out."""
    document = yaml.safe_load(yaml.safe_dump(GOOD))
    for path, value in changes.items():
        *parents, key = path.split("__")
        mapping = document
        for parent in parents:
            mapping = mapping.setdefault(parent, {})
        mapping[key] = value
        if value is None:
            del mapping[key]
    return document


def refusal(folder: Path, text: str) -> str:
    """The one line that refuses this text, without the path it begins with."""
    path = folder / "billing.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ContractRefused) as refused:
        load_contract(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


CRON = "expected a cron expression of five fields, in UTC, such as '0 * * * *'"
MOMENT = "expected a time with its zone, such as 2026-01-31T00:00:00Z"
BY_COLUMN = {"kind": "jdbc", "order_by": "entry_id", "overlap": 0}
IN_FILES = {"kind": "parquet", "quiet_seconds": 60}
DIRECTIONS = "expected 'ledger_to_topic', 'topic_to_ledger' or 'topic_to_topic'"
NAME = "expected a name in lower case letters, digits and _, beginning with a letter"
FILE_SINK = {"kind": "file", "path": "alerts.jsonl"}
ORDERED = {"ordering_key": "account", "sequence": "number"}


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        # keys
        ({"owner": None}, "owner: missing; expected a value: the team that answers for it"),
        ({"kafka__connection": None}, "kafka.connection: missing; expected a value: id of the Airflow connection"),
        ({"alret": {}}, "alret: unknown key; expected 'alert'?"),
        ({"ledger__tabel": "ledger.posting"}, "ledger.tabel: unknown key; expected 'table'?"),
        ({"zzz": 1}, "zzz: unknown key; expected one of contract, version, description, owner, direction"),
        ({"alert__sinks": [{**FILE_SINK, "zzz": 1}]}, "alert.sinks.0.zzz: unknown key; expected one of kind, connec"),
        # types: nothing is guessed from a neighbour type
        ({"owner": 12}, "owner: got 12; expected text; put it in quotes"),
        ({"owner": ""}, 'owner: got ""; expected some text'),
        ({"version": "1"}, 'version: got "1"; expected a whole number'),
        ({"version": True}, "version: got true; expected a whole number"),
        ({"version": 1.0}, "version: got 1.0; expected a whole number"),
        ({"version": 0}, "version: got 0; expected 1 or more"),
        ({"kafka": "kafka_billing"}, 'kafka: got "kafka_billing"; expected a mapping'),
        ({"legs": ["billing.payments"]}, 'legs: got ["billing.payments"]; expected a mapping'),
        ({"alert__sinks": FILE_SINK}, 'alert.sinks: got {"kind": "file", "path": "alerts.jsonl"}; expected a list'),
        ({"alert__sinks": [FILE_SINK] * 9}, "alert.sinks: got [{"),
        # names
        ({"contract": "Billing"}, f'contract: got "Billing"; {NAME}'),
        ({"contract": "a" * 64}, f'contract: got "{"a" * 64}"; {NAME}'),
        ({"legs": {}}, "legs: got {}; expected at least one"),
        ({"legs": {"Pay": "billing"}}, f'legs.Pay: got "Pay"; {NAME}'),
        (
            {"legs": {"pay": "bill ing"}},
            "legs.pay: got \"bill ing\"; expected a Kafka topic name: letters, digits, '.'",
        ),
        ({"legs": {"pay": "billing\n"}}, 'legs.pay: got "billing\\n"; expected a Kafka topic name'),
        (
            {"legs": {"pay": "billing", "refund": "billing"}},
            'legs: got {"pay": "billing", "refund": "billing"}; '
            "expected a topic of its own for each leg: 'billing' is named twice",
        ),
        ({"event__match_key": "event id"}, 'event.match_key: got "event id"; expected a key of the JSON payload'),
        ({"ledger__table": "posting"}, 'ledger.table: got "posting"; expected schema.table, such as ledger.posting'),
        ({"ledger__columns__leg": "Leg"}, 'ledger.columns.leg: got "Leg"; expected a column name in lower case'),
        ({"ledger__where": ""}, 'ledger.where: got ""; expected some text'),
        ({"ledger__slice_by": "ctid"}, "ledger.slice_by: got \"ctid\"; expected 'xmin' or 'written_xid'"),
        # direction
        ({"direction": "sideways"}, f'direction: got "sideways"; {DIRECTIONS}'),
        # time
        ({"schedule": "61 * * * *"}, f'schedule: got "61 * * * *"; {CRON}'),
        ({"schedule": "* * * *"}, f'schedule: got "* * * *"; {CRON}'),
        ({"schedule": "0 * * * * *"}, f'schedule: got "0 * * * * *"; {CRON}'),
        ({"schedule": "@hourly"}, f'schedule: got "@hourly"; {CRON}'),
        ({"start_date": "2026-01-01T00:00:00"}, f'start_date: got "2026-01-01T00:00:00"; {MOMENT}'),
        ({"start_date": datetime(2026, 1, 1).date()}, f'start_date: got "2026-01-01"; {MOMENT}'),  # noqa: DTZ001
        ({"start_date": 2026}, f"start_date: got 2026; {MOMENT}"),
        ({"start_date": "soon"}, f'start_date: got "soon"; {MOMENT}'),
        ({"partner_grace_seconds": -1}, "partner_grace_seconds: got -1; expected 0 or more"),
        (
            {"partner_grace_seconds": 90, "partner_grace_cap_seconds": 89},
            "partner_grace_cap_seconds: got 89; expected no less than partner_grace_seconds, which is 90",
        ),
        ({"partner_grace_seconds": 1.5}, "partner_grace_seconds: got 1.5; expected a whole number"),
        ({"settle_timeout_seconds": False}, "settle_timeout_seconds: got false; expected a whole number"),
        ({"empty": True}, "empty: got true; expected 'refused' or 'allowed'"),
        # alerts
        (
            {"alert__sinks": [{"kind": "mail"}]},
            "alert.sinks.0.kind: got \"mail\"; expected 'email'?",
        ),
        (
            {"alert__sinks": [{"kind": "webhook"}]},
            'alert.sinks.0: got {"kind": "webhook"}; expected a connection and no path for a webhook sink',
        ),
        (
            {"alert__sinks": [{"kind": "email", "connection": "mail", "path": "x"}]},
            'alert.sinks.0: got {"kind": "email", "connection": "mail", "path": "x"}; '
            "expected a connection and no path for an email sink",
        ),
        (
            {"alert__sinks": [{"kind": "file", "connection": "pager"}]},
            'alert.sinks.0: got {"kind": "file", "connection": "pager"}; '
            "expected a path and no connection for a file sink",
        ),
        (
            {"alert__sinks": [{"kind": "file", "path": "/etc/passwd"}]},
            'alert.sinks.0.path: got "/etc/passwd"; expected a path inside the artifacts folder',
        ),
        (
            {"alert__sinks": [{"kind": "file", "path": "../alerts"}]},
            'alert.sinks.0.path: got "../alerts"; expected a path inside the artifacts folder',
        ),
        (
            {"alert__severity_by_class": {"missing_in_legder": "error"}},
            "alert.severity_by_class.missing_in_legder: got \"missing_in_legder\"; expected 'missing_in_ledger'?",
        ),
        (
            {"alert__severity_by_class": {"missing_in_ledger": "loud"}},
            "alert.severity_by_class.missing_in_ledger: got \"loud\"; expected 'info', 'warning', 'error' or 'crit",
        ),
        # money
        ({"alert__critical_at_minor": {"EUR": 10.0}}, "alert.critical_at_minor.EUR: got 10.0; expected a whole number"),
        ({"alert__critical_at_minor": {"EUR": True}}, "alert.critical_at_minor.EUR: got true; expected a whole number"),
        ({"alert__critical_at_minor": {"EUR": -1}}, "alert.critical_at_minor.EUR: got -1; expected 0 or more"),
        (
            {"alert__critical_at_minor": {"ERU": 1}},
            "alert.critical_at_minor.ERU: got \"ERU\"; expected an ISO 4217 code, such as 'EUR'",
        ),
        # compensation
        (
            {"compensation": {**REPAIR, "classes": []}},
            'compensation: got {"classes": [], "max_amount_minor": {"EUR": 100000}}; expected at least one of classes, '
            "or trigger, or abort_hanging_transactions",
        ),
        (
            {"compensation": {**TRIGGERS, "classes": ["missing_in_topic_never_produced"]}},
            f"compensation: got {shown(TRIGGERS | {'classes': ['missing_in_topic_never_produced']})}; expected "
            "missing_in_topic_never_produced in classes or in trigger.dags: a break is repaired once",
        ),
        (
            {"compensation": {**TRIGGERS, "trigger": {"connection": "airflow", "dags": {}}}},
            "compensation.trigger.dags: got {}; expected at least one",
        ),
        (
            {"compensation": {**TRIGGERS, "trigger": {"connection": "airflow", "dags": {"phantom_in_topic": "a b"}}}},
            'compensation.trigger.dags.phantom_in_topic: got "a b"; expected a DAG\'s id: letters, digits,',
        ),
        (
            {"compensation": {**ABORTS, "abort_hanging_transactions": 1}},
            "compensation.abort_hanging_transactions: got 1; expected true or false",
        ),
        (
            {"compensation": {**REPAIR, "classes": ["missing_in_legder"]}},
            "compensation.classes.0: got \"missing_in_legder\"; expected 'missing_in_ledger'?",
        ),
        (
            {"compensation": {**REPAIR, "classes": ["phantom_in_topic"]}},
            'compensation.classes: got ["phantom_in_topic"]; phantom_in_topic is nothing that a '
            f"compensation repairs: expected {' or '.join(repr(str(one)) for one in REPAIRABLE)}",
        ),
        (
            {"compensation": {**POSTS, "post": None}, "direction": "topic_to_ledger"},
            'compensation: got {"classes": ["missing_in_ledger"], "max_amount_minor": {"EUR": 100000}, "post": ...; '
            "expected post with missing_in_ledger and classes of rows too many, and only with them",
        ),
        (
            {"compensation": {**REPAIR, "post": POSTS["post"]}},
            'compensation: got {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": {"EUR": 100...; '
            "expected post with missing_in_ledger and classes of rows too many, and only with them",
        ),
        (
            {"compensation": POSTS},
            'compensation: got {"classes": ["missing_in_ledger"], "max_amount_minor": {"EUR": 100000}, "post": ...; '
            "expected no class missing_in_ledger with direction ledger_to_topic: only the side that is",
        ),
        (
            {"compensation": POSTS, "direction": "topic_to_ledger", "ledger__amount_unit": "major"},
            'compensation: got {"classes": ["missing_in_ledger"], "max_amount_minor": {"EUR": 100000}, "post": ...; '
            "expected none with ledger.amount_unit major",
        ),
        *(
            (
                {"compensation": {**POSTS, "post": {**POSTS["post"], "rows": rows}}, "direction": "topic_to_ledger"},
                f"compensation.post.rows: got {json.dumps(rows)}; {expected}",
            )
            for rows, expected in (
                ({"payment": []}, "expected at least one row for payment; {} is one without constants"),
                ({"payment": [{"leg": "x"}]}, "expected each column once: 'leg' is copied from the event too"),
            )
        ),
        *(
            (
                {"compensation": {**REPAIR, **changes}},
                'compensation: got {"classes": '
                f'["{changes.get("classes", REPAIR["classes"])[0]}"], "max_amount_minor": {{"EUR": 100{cut}; '
                "expected reversal with classes of copies too many, and only with them",
            )
            for changes, cut in (
                ({"classes": ["duplicate_in_topic_zombie"]}, "000}}"),
                ({"reversal": "negated"}, "..."),
            )
        ),
        *(
            (changes, expected)
            for changes, expected in (
                (
                    {"direction": "topic_to_ledger", "compensation": TAKES_BACK},
                    f"compensation: got {shown(TAKES_BACK)}; expected ledger.columns.reverses with classes of rows too",
                ),
                (
                    NAMED | {"compensation": TAKES_BACK | {"post": POSTS["post"]}},
                    f"compensation: got {shown(TAKES_BACK | {'post': POSTS['post']})}; expected amount_minor in "
                    "post.columns",
                ),
                (
                    NAMED
                    | {
                        "compensation": POSTS
                        | {"post": POSTS["post"] | {"rows": {"payment": [{"reverses_entry": "4"}]}}}
                    },
                    f"compensation: got {shown(POSTS)}; expected no reverses_entry in post: its value is",
                ),
                (
                    NAMED | {"compensation": TAKES_BACK | {"reversal": "header"}},
                    f"compensation: got {shown(TAKES_BACK)}; expected no reversal header with these classes",
                ),
                (
                    {"compensation": {**REPAIR, "classes": ["duplicate_in_topic_zombie"], "reversal": "column"}},
                    'compensation: got {"classes": ["duplicate_in_topic_zombie"], "max_amount_minor": {"EUR": 100000}, '
                    "...; expected no reversal column with these classes",
                ),
                (
                    {"compensation": TAKES_BACK},
                    f"compensation: got {shown(TAKES_BACK)}; expected no class duplicate_in_ledger with direction",
                ),
                *(
                    (
                        {"ledger": {"connection": "l", "table": "a.b", "columns": {name: "a"}}},
                        f'ledger: got {{"connection": "l", "table": "a.b", "columns": {{"{name}": "a"}}}}; expected '
                        "columns reverses and action_id with direction topic_to_ledger only",
                    )
                    for name in ("reverses", "action_id")
                ),
            )
        ),
        (
            {"compensation": {**REPAIR, "max_amount_minor": {}}},
            "compensation.max_amount_minor: got {}; expected at least one",
        ),
        *(
            (
                {"compensation": {**REPAIR, "acting_minutes": minutes}},
                f'compensation.acting_minutes: got "{minutes}"; expected a cron expression of five fields, in UTC, '
                "such as '* 6-17 * * 1-5'",
            )
            for minutes in ("* 25 * * *", "06:00-18:00", "* 6-17 * * 1-5 *")
        ),
        (
            {"compensation": {**REPAIR, "max_items_per_day": 0}},
            "compensation.max_items_per_day: got 0; expected more than 0",
        ),
        ({"compensation": {**REPAIR, "max_items": 0}}, "compensation.max_items: got 0; expected more than 0"),
        (
            {"compensation": {**REPAIR, "max_items": 100_001}},
            "compensation.max_items: got 100001; expected 100,000 or less",
        ),
        (
            {"compensation": REPAIR, "direction": "topic_to_ledger"},
            'compensation: got {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": {"EUR": 100...; '
            "expected no class missing_in_topic_never_produced with direction topic_to_ledger: only the side that is "
            "written second is repaired",
        ),
        *(
            (
                {"compensation": REPAIR, **changes},
                'compensation: got {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": '
                f'{{"EUR": 100...; expected none with {reason}',
            )
            for changes, reason in (
                (
                    {"event": {"amount_unit": "major"}},
                    "event.amount_unit major or currency_case ignored: a republished",
                ),
                ({"currency_case": "ignored"}, "event.amount_unit major or currency_case ignored: a republished event"),
                ({"event": ORDERED}, "event.sequence: a republished event would stand out of order"),
            )
        ),
        # where events may stray, who may write them, what was acknowledged
        ({"kafka__stray_topics": ["a topic"]}, 'kafka.stray_topics.0: got "a topic"; expected a Kafka topic name'),
        (
            {"kafka__stray_topics": ["billing.invoices"]},
            'legs: got {"invoice": "billing.invoices", "payment": "billing.payments"}; '
            "expected no leg on a stray topic: 'billing.invoices' is that of 'invoice'",
        ),
        (
            {"event": {"origin_header": "service"}},
            'event: got {"origin_header": "service"}; expected origin_header and known_origins together, or neither',
        ),
        (
            {"event": {"known_origins": ["relay"]}},
            'event: got {"known_origins": ["relay"]}; expected origin_header and known_origins together, or neither',
        ),
        (
            {"event": {"origin_header": "", "known_origins": ["relay"]}},
            'event.origin_header: got ""; expected some te',
        ),
        (
            {"ledger__columns": {"receipt_offset": "sent_offset"}},
            'ledger.columns: got {"receipt_offset": "sent_offset"}; '
            "expected receipt_partition and receipt_offset together, or neither",
        ),
        (
            {"ledger": {"connection": "l", "table": "a.b", "columns": RECEIPT}},
            'ledger: got {"connection": "l", "table": "a.b", "columns": {"receipt_partition": "sent_parti...; '
            "expected slice_by: written_xid with receipt columns: storing a receipt updates the row",
        ),
        (
            {"direction": "topic_to_ledger", "ledger": {**WITH_RECEIPT}},
            'ledger: got {"connection": "l", "table": "a.b", "slice_by": "written_xid", "columns": {"rece...; '
            "expected no receipt columns with direction topic_to_ledger: its rows are the consumer's",
        ),
        # how money is written, order, time, isolation
        ({"event__amount_unit": "cents"}, "event.amount_unit: got \"cents\"; expected 'minor' or 'major'"),
        ({"ledger__amount_unit": "Major"}, "ledger.amount_unit: got \"Major\"; expected 'minor' or 'major'"),
        ({"currency_case": True}, "currency_case: got true; expected 'exact' or 'ignored'"),
        (
            {"event": {"ordering_key": "account"}},
            'event: got {"ordering_key": "account"}; expected ordering_key and sequence together, or neither',
        ),
        (
            {"event": {"sequence": "number"}},
            'event: got {"sequence": "number"}; expected ordering_key and sequence together, or neither',
        ),
        (
            {"event": {"ordering_key": "account", "sequence": "amount_minor"}},
            'event: got {"ordering_key": "account", "sequence": "amount_minor"}; '
            "expected a key of its own for sequence: 'amount_minor' is named twice",
        ),
        ({"timestamp_tolerance_seconds": -1}, "timestamp_tolerance_seconds: got -1; expected 0 or more"),
        (
            {"ledger__consumer_isolation": "serializable"},
            "ledger.consumer_isolation: got \"serializable\"; expected 'read_committed' or 'read_uncommitted'",
        ),
        (
            {"ledger": {"connection": "l", "table": "a.b", "consumer_isolation": "read_uncommitted"}},
            'ledger: got {"connection": "l", "table": "a.b", "consumer_isolation": "read_uncommitted"}; '
            "expected no consumer_isolation with direction ledger_to_topic: no consumer writes the ledger",
        ),
        # kinds of ledgers
        ({"ledger__kind": "oracle"}, "ledger.kind: got \"oracle\"; expected 'postgres', 'jdbc', 'parquet' or 'topic'"),
        *(
            ({"ledger": {"connection": "l", "table": "a.b", **stated}}, ("; " + told))
            for stated, told in (
                ({"order_by": "entry_id"}, "expected no order_by with kind postgres: only jdbc is read by it"),
                ({"overlap": 0}, "expected no overlap with kind postgres: only jdbc is read by it"),
                ({"kind": "jdbc", "overlap": 0}, "expected order_by with kind jdbc: the column that grows"),
                ({"kind": "jdbc", "order_by": "n"}, "expected overlap with kind jdbc: how far behind the newest"),
                ({**BY_COLUMN, "slice_by": "written_xid"}, "expected no slice_by with kind jdbc: only postgres slices"),
                (
                    {**BY_COLUMN, "quiet_seconds": 9},
                    "expected no quiet_seconds with kind jdbc: only parquet is read by",
                ),
                ({"kind": "parquet"}, "expected quiet_seconds with kind parquet: how long a file that is still"),
                ({**IN_FILES, "where": "true"}, "expected no where and no receipt columns with kind parquet"),
                ({**IN_FILES, "columns": RECEIPT}, "expected no where and no receipt columns with kind parquet"),
                ({**BY_COLUMN, "amount_unit": "major"}, "expected amount_unit minor with kind jdbc"),
            )
        ),
        (
            {"ledger": {"connection": "l", "table": "a.b", **BY_COLUMN}, "compensation": REPAIR},
            "; expected none with ledger.kind jdbc: it repairs from and in PostgreSQL only",
        ),
        # input topics
        (
            {"ledger": INPUTS},
            f"ledger: got {shown(INPUTS)}; got kind topic with direction ledger_to_topic; expected kind",
        ),
        (
            {"direction": "topic_to_topic", "ledger": {"connection": "l", "table": "a.b"}},
            'ledger: got {"connection": "l", "table": "a.b"}; got kind postgres with direction topic_to_topic;',
        ),
        ({"ledger": {"connection": "l"}}, "ledger.table: missing; expected a value: schema.table"),
        (
            TO_TOPIC | {"ledger": {"kind": "topic", "connection": "k"}},
            "ledger.topics: missing; expected a value: the input topics",
        ),
        (
            TO_TOPIC | {"ledger": INPUTS | {"topics": ["in", "in"]}},
            'ledger.topics: got ["in", "in"]; expected each input topic once',
        ),
        (
            TO_TOPIC | {"ledger": INPUTS | {"topics": ["billing.payments"]}},
            'ledger: got {"kind": "topic", "connection": "k", "topics": ["billing.payments"]}; expected input topics '
            "of other names than the legs' and the stray topics: 'billing.payments' is one of them; also on another",
        ),
        *(
            (TO_TOPIC | {"ledger": INPUTS | {name: value}}, f"ledger: got {shown(INPUTS | {name: value})}; {refused}")
            for name, value, refused in (
                ("where", "a = 1", "expected no where with kind topic"),
                ("table", "a.b", "expected no table with kind topic"),
                ("columns", {"leg": "x"}, "expected no columns with kind topic"),
            )
        ),
        *(
            (
                {"ledger": {"connection": "l", "table": "a.b", name: value}},
                f"ledger: got {shown({'connection': 'l', 'table': 'a.b', name: value})}; expected no {name} with kind",
            )
            for name, value in (("topics", ["in"]), ("event", {"leg": "x"}))
        ),
        (TO_TOPIC | {"ledger": INPUTS | {"index_windows": 0}}, "ledger.index_windows: got 0; expected more than 0"),
        (
            TO_TOPIC | {"compensation": REPAIR},
            f"compensation: got {shown(REPAIR)}; expected none with direction topic_to_topic: what the service makes",
        ),
    ],
)
def test_a_bad_field_is_refused_with_its_path_its_value_and_what_was_expected(
    tmp_path: Path, changes: dict[str, Any], refused: str
) -> None:
    told = refusal(tmp_path, yaml.safe_dump(changed(**changes), sort_keys=False))
    assert refused in told if refused.startswith("; ") else told.startswith(refused)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"owner": "12"},
        {"contract": "a" * 63},
        {"legs": {"pay": "billing"}},
        {"legs": {"pay": "Billing.v2_pay-1", "refund": "billing.refund"}},
        {"event": {"match_key": "eventId"}},
        {"ledger__slice_by": "written_xid"},
        {"ledger": {**WITH_RECEIPT}},
        {"ledger": {"connection": "l", "table": "a.b", **BY_COLUMN}},
        {"ledger": {"connection": "l", "table": "a.b", **IN_FILES}},
        {"ledger": {"connection": "l", "table": "a.b", **BY_COLUMN, "columns": RECEIPT}},
        {"kafka__stray_topics": ["billing.refunds"]},
        {"event": {"origin_header": "service", "known_origins": ["relay", "backfill"]}},
        {"direction": "topic_to_ledger"},
        {"schedule": "*/15 0-6 * * mon"},
        {"start_date": "2026-01-01T00:00:00+02:00"},
        {"partner_grace_seconds": 0},
        {"empty": "allowed"},
        {"alert__sinks": [FILE_SINK] * 8},
        {"alert__sinks": [{"kind": "webhook", "connection": "pager"}]},
        {"alert__severity_by_class": {"missing_in_ledger": "critical"}},
        {"alert__critical_at_minor": {"JPY": 0}},
        {"compensation": REPAIR},
        {"compensation": {**REPAIR, "max_items": 100_000}},
        {"compensation": ABORTS},
        {"compensation": TRIGGERS},
        TO_TOPIC | {"compensation": TRIGGERS},
        {"compensation": ABORTS, "direction": "topic_to_ledger"},
        {"compensation": ABORTS, "event": {"amount_unit": "major"}},
        {"compensation": {**REPAIR, "classes": ["duplicate_in_topic_zombie"], "reversal": "header"}},
        {"compensation": {**REPAIR, "acting_minutes": "* 6-17 * * 1-5", "max_items_per_day": 1}},
        {"compensation": REPAIR, "ledger__amount_unit": "major"},
        {"compensation": POSTS, "direction": "topic_to_ledger"},
        NAMED | {"compensation": TAKES_BACK},
        NAMED | {"compensation": TAKES_BACK | {"reversal": "column", "classes": ["duplicate_in_ledger_compensated"]}},
        {"event": {"amount_unit": "major"}, "ledger__amount_unit": "minor", "currency_case": "ignored"},
        {"event": ORDERED},
        {"event": {"ordering_key": "payment_id", "sequence": "number"}},
        {"timestamp_tolerance_seconds": 0},
        {"direction": "topic_to_ledger", "ledger__consumer_isolation": "read_uncommitted"},
        TO_TOPIC,
        TO_TOPIC | {"ledger": INPUTS | {"event": {"match_key": "request_id"}, "amount_unit": "major"}},
    ],
    ids=str,
)
def test_its_twin_is_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "billing.yaml"
    path.write_text(yaml.safe_dump(changed(**changes)))
    assert isinstance(load_contract(path), Contract)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("", "got nothing; expected a mapping that begins with 'contract:'"),
        ("- contract: billing\n", "got a list; expected a mapping that begins with 'contract:'"),
        ("billing\n", "got a text; expected a mapping that begins with 'contract:'"),
        ("contract: [billing\n", "not readable as YAML: line 2, column 1: expected ',' or ']', but got '<stream end>'"),
        ("contract: billing\n\towner: x\n", "not readable as YAML: line 2, column 1: found character '\\t'"),
        ("a: 1\n---\na: 2\n", "not readable as YAML: line 2, column 1: but found another document"),
        ("a: !!python/object:os.system x\n", "not readable as YAML: line 1, column 4: could not determine a construc"),
        (
            "legs:\n  pay: billing\n  pay: refunds\n",
            "not readable as YAML: line 3, column 3: the key 'pay' stands twice in one mapping; expected it once",
        ),
    ],
)
def test_a_file_that_is_no_yaml_mapping_is_refused_in_one_line(tmp_path: Path, text: str, refused: str) -> None:
    assert refusal(tmp_path, text).startswith(refused)


def test_a_missing_file_a_folder_and_a_binary_file_are_refused_by_name(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"contract: \xff")
    for path, refused in (
        (tmp_path / "none.yaml", "no such file; expected a contract in YAML"),
        (tmp_path, "Is a directory; expected a readable file"),
        (binary, "byte 10 is no UTF-8; expected a text file in UTF-8"),
    ):
        with pytest.raises(ContractRefused, match=re.escape(f"{path}: {refused}")):
            load_contract(path)


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "billing.yaml"
    path.write_text(yaml.safe_dump(changed(owner=None, version="1", alret={})))
    with pytest.raises(ContractRefused) as refused:
        load_contract(path)
    assert len(str(refused.value).splitlines()) == 3


def test_an_address_pasted_where_an_id_belongs_is_shown_without_its_password(tmp_path: Path) -> None:
    message = refusal(tmp_path, yaml.safe_dump(changed(ledger__connection="postgresql://audit:hunter2@db/billing")))
    assert message.startswith('ledger.connection: got "postgresql://***@db/billing"')


def test_a_contract_says_what_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "billing.yaml"
    path.write_text(yaml.safe_dump(changed(start_date="2026-01-01T02:00:00+02:00", compensation=REPAIR)))
    contract = load_contract(path)
    assert contract.direction is Direction.LEDGER_TO_TOPIC
    assert contract.topics == ("billing.invoices", "billing.payments")
    assert contract.start_date == datetime(2026, 1, 1, tzinfo=UTC)
    assert contract.start_date.tzinfo is UTC
    assert contract.compensation is not None
    assert contract.compensation.classes == (BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,)


def test_comments_key_order_and_zone_do_not_change_the_fingerprint(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    turned = {**changed(start_date="2026-01-01T01:00:00+01:00"), "legs": dict(reversed(GOOD["legs"].items()))}
    one.write_text(yaml.safe_dump(GOOD, sort_keys=False))
    two.write_text("# a note\n" + yaml.safe_dump(turned, sort_keys=False))
    assert list(load_contract(one).legs) != list(load_contract(two).legs)
    assert load_contract(one).fingerprint == load_contract(two).fingerprint


@pytest.mark.parametrize(
    "changes", [{"partner_grace_seconds": 61}, {"ledger__where": "side = 'debit'"}, {"version": 2}]
)
def test_each_change_of_meaning_changes_the_fingerprint(changes: dict[str, Any]) -> None:
    good, other = Contract.model_validate(GOOD), Contract.model_validate(changed(**changes))
    assert good.fingerprint != other.fingerprint


def test_a_folder_is_read_in_the_order_of_its_file_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(changed(contract=name)))
    (tmp_path / "notes.txt").write_text("not a contract")
    assert [contract.contract for contract in load_contracts(tmp_path)] == ["a", "b"]


def test_a_folder_is_refused_with_the_faults_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(GOOD))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(GOOD))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(changed(version=0)))
    (tmp_path / "d.yml").write_text(yaml.safe_dump(GOOD))
    with pytest.raises(ContractRefused) as refused:
        load_contracts(tmp_path)
    assert str(refused.value).splitlines() == [
        f"{tmp_path}/d.yml: got the ending .yml; expected .yaml",
        f"{tmp_path}/b.yaml: contract: got 'billing'; expected a name of its own, {tmp_path}/a.yaml has it too",
        f"{tmp_path}/c.yaml: version: got 0; expected 1 or more",
    ]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractRefused, match="no such folder"):
        load_contracts(tmp_path / "contracts")


def test_a_field_of_a_later_release_does_not_change_the_fingerprint_until_it_says_something() -> None:
    silent = Contract.model_validate(GOOD)
    spoken_default = Contract.model_validate(changed(partner_grace_cap_seconds=None, currency_case="exact"))
    assert spoken_default.fingerprint == silent.fingerprint
    assert Contract.model_validate(changed(currency_case="ignored")).fingerprint != silent.fingerprint
