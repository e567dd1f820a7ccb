"""A contract's repairs, field by field: what is refused, and the twins that are read."""

import json
from typing import Any

from tallystick.contract.compensation import COUNTERPOSTABLE, POSTABLE, REPUBLISHABLE, REVERSIBLE
from tests.unit.contract.documents import BY_COLUMN, ORDERED, REPAIR, TO_TOPIC, FieldCases, shown

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


class TestFields(FieldCases):
    refused = (
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
            {"compensation": {**REPAIR, "acting_minutes": "R * * * *"}},
            'compensation.acting_minutes: got "R * * * *"; expected the same firings whenever they are asked for',
        ),
        *(
            (
                {"compensation": {**REPAIR, name: 315_360_001}},
                f"compensation.{name}: got 315360001; expected 315,360,000 or less, which is ten years",
            )
            for name in ("approval_timeout_seconds", "approval_valid_seconds")
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
        (
            {"compensation": REPAIR, "event": {"amount_minor": "data.amount"}},
            'compensation: got {"classes": ["missing_in_topic_never_produced"], "max_amount_minor": {"EUR": 100...; '
            "expected no class missing_in_topic_never_produced where a field is a path, as data.amount is: a "
            "republished event has the contract's fields alone, and would lack the rest of the objects around them",
        ),
        (
            {"ledger": {"connection": "l", "table": "a.b", **BY_COLUMN}, "compensation": REPAIR},
            "; expected none with ledger.kind jdbc: it repairs from and in PostgreSQL only",
        ),
        (
            {"ledger": {"connection": "l", "table": "a.b", "primary_connection": "p"}, "compensation": REPAIR},
            "; expected none with ledger.primary_connection: a repair reads the ledger as it is now, and a standby",
        ),
        (
            TO_TOPIC | {"compensation": REPAIR},
            f"compensation: got {shown(REPAIR)}; expected none with direction topic_to_topic: what the service makes",
        ),
    )

    read = (
        {"compensation": REPAIR},
        {"compensation": {**REPAIR, "max_items": 100_000}},
        {"compensation": ABORTS},
        {"compensation": TRIGGERS},
        TO_TOPIC | {"compensation": TRIGGERS},
        {"compensation": ABORTS, "direction": "topic_to_ledger"},
        {"compensation": ABORTS, "event": {"amount_unit": "major"}},
        {"compensation": {**REPAIR, "classes": ["duplicate_in_topic_zombie"], "reversal": "header"}},
        {
            "compensation": {**REPAIR, "classes": ["duplicate_in_topic_zombie"], "reversal": "negated"},
            "event": {"amount_minor": "data.amount"},
        },
        {"compensation": REPAIR, "event": {"amount_minor": '"amount.minor"'}},
        {"compensation": {**REPAIR, "acting_minutes": "* 6-17 * * 1-5", "max_items_per_day": 1}},
        {"compensation": REPAIR, "ledger__amount_unit": "major"},
        {"compensation": POSTS, "direction": "topic_to_ledger"},
        NAMED | {"compensation": TAKES_BACK},
        NAMED | {"compensation": TAKES_BACK | {"reversal": "column", "classes": ["duplicate_in_ledger_compensated"]}},
    )
