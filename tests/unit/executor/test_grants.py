"""The rights that a contract needs follow from what it says: nothing of what it leaves out is asked for."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.contract.compensation import ABOUT_EVENTS, REPUBLISHABLE
from tallystick.contract.contract import Contract, ContractRefused
from tallystick.executor.grants import kafka_acls, kafka_commands, postgres_statements
from tallystick.model.finding_names import BreakClass
from tests.unit.builders import INPUT, L2T, T2L, T2T, TOPIC, contract_of

CAPS = {"max_amount_minor": {"EUR": 1}}
REPUBLISHES = CAPS | {"classes": list(REPUBLISHABLE)}
POSTS = CAPS | {
    "classes": ["missing_in_ledger"],
    "post": {
        "connection": "poster",
        "actions_table": "ours.posted_action",
        "columns": {"event_id": "event_id", "amount_minor": "amount_minor"},
        "rows": {"payout": [{"side": "debit"}, {"side": "credit", "book": "main"}]},
    },
}
READER = {
    ("reader", "topic", TOPIC, "Read DescribeConfigs"),
    ("reader", "cluster", "", "DescribeConfigs"),
    ("reader", "transactional-id", "*", "Describe"),
    ("reader", "topic", "__transaction_state", "Describe"),
}


def acls(contract: Contract) -> set[tuple[str, str, str, str]]:
    found = kafka_acls(contract, reader="reader", executor="executor", environment="test")
    return {(one.principal, str(one.resource), one.name, " ".join(one.operations)) for one in found}


def statements(contract: Contract) -> list[str]:
    found = postgres_statements(contract, reader="reader", poster='the "poster"')
    return [one for one in found if one.startswith("GRANT")]


DOCS = Path(__file__).parents[3] / "docs"


def documented(page: str, section: str) -> set[tuple[str, str]]:
    """Rights and what they are on, of the table in a section of a page that has a row for each."""
    text = (DOCS / page).read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]
    right, on = head.index("right"), head.index("on")
    return {(row[right], row[on].partition(":")[0]) for row in rows}


def in_words(contract: Contract, principal: str) -> set[tuple[str, str]]:
    """The same of what is granted."""
    own = {
        "topic tallystick.compensation.billing_payouts": "the topic `tallystick.compensation.<contract>`",
        "topic __transaction_state": "the topic `__transaction_state`",
        "transactional-id tallystick-compensation-test-billing_payouts": (
            "the transactional id `tallystick-compensation-<environment>-<contract>`"
        ),
    }
    kinds = {"topic": "the topics", "cluster": "the cluster", "transactional-id": "all transactional ids"}
    return {
        (", ".join(operations.split()), own.get(f"{kind} {name}", kinds[kind]))
        for who, kind, name, operations in acls(contract)
        if who == principal
    }


def test_the_docs_name_the_rights_that_are_granted_and_no_others() -> None:
    strays = {"connection": "kafka_billing", "stray_topics": ["billing.old"]}
    assert documented("install.md", "2. Kafka") == in_words(contract_of(L2T, kafka=strays), "reader")
    repairing = (
        contract_of(L2T, compensation=REPUBLISHES),
        contract_of(T2L, compensation=POSTS),
        contract_of(L2T, compensation=CAPS | {"abort_hanging_transactions": True}),
    )
    granted = set[tuple[str, str]]().union(*(in_words(contract, "executor") for contract in repairing))
    assert documented("repairs.md", "Rights") == granted


def test_the_docs_name_what_a_reader_of_the_ledger_is_granted() -> None:
    needs = (DOCS / "install.md").read_text().split("The reader's role needs ")[1].split(".\n")[0]
    found = "\n".join(postgres_statements(contract_of(L2T), reader="reader", poster="poster"))
    granted = re.findall(r"GRANT (\w+)", found)
    assert granted == ["CONNECT", "USAGE", "SELECT", "pg_read_all_stats"]
    assert [word for word in granted if word not in needs] == []


def test_a_contract_that_repairs_nothing_only_reads() -> None:
    assert acls(contract_of(L2T)) == READER
    strays = {"connection": "kafka_billing", "stray_topics": ["billing.old"]}
    assert acls(contract_of(L2T, kafka=strays)) == READER | {("reader", "topic", "billing.old", "Read DescribeConfigs")}
    assert acls(contract_of(T2T)) == READER | {("reader", "topic", INPUT, "Read DescribeConfigs")}


def test_what_is_published_again_is_written_under_a_name_of_the_contracts_own() -> None:
    assert acls(contract_of(L2T, compensation=REPUBLISHES)) - READER == {
        ("executor", "topic", TOPIC, "Read Write"),
        ("executor", "topic", "tallystick.compensation.billing_payouts", "Create Read Write DescribeConfigs"),
        ("executor", "transactional-id", "tallystick-compensation-test-billing_payouts", "Write"),
    }


def test_what_is_posted_into_the_ledger_writes_nothing_to_kafka() -> None:
    assert acls(contract_of(T2L, compensation=POSTS)) - READER == {
        ("executor", "topic", TOPIC, "Read"),
    }


def test_only_a_contract_that_ends_transactions_may_alter_the_cluster() -> None:
    assert acls(contract_of(L2T, compensation=CAPS | {"abort_hanging_transactions": True})) - READER == {
        ("executor", "topic", TOPIC, "Read"),
        ("executor", "cluster", "", "Alter DescribeConfigs"),
        ("executor", "transactional-id", "*", "Describe"),
        ("executor", "topic", "__transaction_state", "Describe"),
    }


def to_dag(break_class: str, **rules: Any) -> dict[str, Any]:
    return CAPS | {"trigger": {"connection": "airflow", "dags": {break_class: "by_hand"}}} | rules


@pytest.mark.parametrize("form", ["json", "json_schema", "avro"])
@pytest.mark.parametrize("break_class", ABOUT_EVENTS)
def test_for_what_a_dag_is_handed_the_topics_are_read_whatever_the_format(break_class: str, form: str) -> None:
    kafka = {"connection": "kafka_billing"} | ({"schema_registry": "registry"} if form == "avro" else {})
    contract = contract_of(L2T, kafka=kafka, event={"format": form}, compensation=to_dag(break_class))
    assert acls(contract) - READER == {("executor", "topic", TOPIC, "Read")}


def test_for_what_a_dag_is_handed_the_topics_of_all_legs_are_read() -> None:
    contract = contract_of(L2T, legs={"payout": TOPIC, "fee": "billing.fees"}, compensation=to_dag(ABOUT_EVENTS[0]))
    granted = {one[2:] for one in acls(contract) if one[0] == "executor"}
    assert granted == {(TOPIC, "Read"), ("billing.fees", "Read")}


@pytest.mark.parametrize("break_class", [one for one in BreakClass if one not in ABOUT_EVENTS])
def test_for_what_nobody_reads_before_a_dag_is_handed_it_nothing_is_granted(break_class: str) -> None:
    assert acls(contract_of(L2T, compensation=to_dag(break_class))) == READER


def test_a_row_is_taken_back_by_the_ledger_alone() -> None:
    columns = {"columns": {"reverses": "reverses_entry"}}
    ledger: dict[str, Any] = {"connection": "ledger_billing", "table": "billing.payout"} | columns
    takes_back = POSTS | {"classes": ["duplicate_in_ledger"], "reversal": "negated"}
    assert acls(contract_of(T2L, ledger=ledger, compensation=takes_back)) == READER


@pytest.mark.parametrize(
    ("direction", "rules", "operations", "why"),
    [
        (
            L2T,
            to_dag("missing_in_ledger", abort_hanging_transactions=True),
            ("Read",),
            "the proof of what a DAG is handed; what hangs there",
        ),
        (
            L2T,
            to_dag("missing_in_ledger", classes=list(REPUBLISHABLE), abort_hanging_transactions=True),
            ("Read", "Write"),
            "what it publishes, and the proof of it; the proof of what a DAG is handed; what hangs there",
        ),
        (T2L, POSTS, ("Read",), "the proof of what it posts"),
    ],
)
def test_a_right_that_is_needed_for_several_things_is_granted_once(
    direction: Any, rules: dict[str, Any], operations: tuple[str, ...], why: str
) -> None:
    """Found by review: Read was printed twice."""
    found = kafka_acls(contract_of(direction, compensation=rules), reader="r", executor="e", environment="test")
    assert [(one.operations, one.why) for one in found if (one.principal, one.name) == ("e", TOPIC)] == [
        (operations, why)
    ]


def test_a_command_quotes_what_a_shell_would_read() -> None:
    found = kafka_acls(contract_of(L2T), reader="a reader", executor="e", environment="test")
    commands = [line for line in kafka_commands(found) if not line.startswith("#")]
    assert commands[0] == (
        "kafka-acls.sh --bootstrap-server BROKER --command-config ADMIN.properties --add --allow-principal "
        f"'User:a reader' --operation Read --operation DescribeConfigs --topic {TOPIC}"
    )
    assert commands[2].endswith("--operation Describe --transactional-id '*'")


def test_a_comment_before_each_command_says_what_it_is_for() -> None:
    found = kafka_acls(contract_of(L2T, compensation=REPUBLISHES), reader="r", executor="e", environment="test")
    lines = list(kafka_commands(found))
    assert lines[::2] == [f"# {one.why}" for one in found]
    assert all(line.startswith("kafka-acls.sh ") for line in lines[1::2])
    assert lines[0] == "# its events and settings"


def test_a_comment_calls_the_config_check_by_its_name_of_today() -> None:
    contract = contract_of(L2T, compensation=REPUBLISHES)
    found = kafka_acls(contract, reader="reader", executor="executor", environment="test")
    assert [one.why for one in found if one.name == "" and one.principal == "reader"] == [
        "the brokers' settings, for the config check"
    ]
    assert [one.why for one in found if "posture" in one.why] == []


def test_a_reader_selects_from_its_table_alone() -> None:
    assert statements(contract_of(L2T)) == [
        'GRANT USAGE ON SCHEMA billing TO "reader";',
        'GRANT SELECT ON billing.payout TO "reader";',
        'GRANT pg_read_all_stats TO "reader";',
    ]
    by_column = {"kind": "jdbc", "connection": "l", "table": "billing.payout", "order_by": "n", "overlap": 0}
    assert statements(contract_of(L2T, ledger=by_column)) == statements(contract_of(L2T))[:2]


def test_each_role_may_connect_to_the_database_whatever_its_name() -> None:
    """The roles' names are quoted, and so is the name of the database, which is known on the server alone."""
    text = "DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), '{}'); END $$;"
    found = list(postgres_statements(contract_of(T2L, compensation=POSTS), reader="reader", poster="o'neill"))
    lines = [line for line in found if line.startswith("DO $$ BEGIN")]
    assert lines == [text.format("reader"), text.format("o''neill")]
    numbering = found[-1]
    assert "'billing.payout'::regclass" in numbering
    assert "GRANT USAGE ON SEQUENCE %s TO %I', numbering, 'o''neill')" in numbering


def test_the_right_to_read_everybodys_activity_says_what_it_is_for() -> None:
    found = list(postgres_statements(contract_of(L2T), reader="reader", poster="poster"))
    assert found[-2].startswith("-- whose transaction holds a row back")
    assert found[-1].startswith("GRANT pg_read_all_stats")


def test_a_poster_inserts_the_contracts_columns_alone() -> None:
    posting = contract_of(T2L, compensation=POSTS)
    assert statements(posting)[3:] == [
        'GRANT USAGE ON SCHEMA billing TO "the ""poster""";',
        'GRANT USAGE ON SCHEMA ours TO "the ""poster""";',
        'GRANT SELECT, INSERT (amount_minor, book, event_id, side) ON billing.payout TO "the ""poster""";',
        'GRANT SELECT, INSERT ON ours.posted_action TO "the ""poster""";',
    ]
    columns = {"columns": {"reverses": "reverses_entry", "action_id": "action_id"}}
    ledger: dict[str, Any] = {"connection": "ledger_billing", "table": "billing.payout"} | columns
    takes_back = POSTS | {"classes": ["duplicate_in_ledger"], "reversal": "negated"}
    both = contract_of(T2L, ledger=ledger, compensation=takes_back)
    inserted = next(one for one in statements(both) if "INSERT (" in one)
    assert "(action_id, amount_minor, book, event_id, reverses_entry, side)" in inserted
    takes_none_back = contract_of(T2L, ledger=ledger, compensation=POSTS)
    inserted = next(one for one in statements(takes_none_back) if "INSERT (" in one)
    assert "(action_id, amount_minor, book, event_id, side)" in inserted


def test_a_ledger_without_a_database_grants_nothing(tmp_path: Path) -> None:
    with pytest.raises(ContractRefused, match="its ledger is of kind topic; expected one in a database"):
        statements(contract_of(T2T))
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(contract_of(T2T).model_dump(mode="json", exclude_defaults=True)))
    refused = CliRunner().invoke(app, ["grants", str(path), "--for", "postgres"])
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_the_command_prints_what_one_role_needs_of_one_server(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    contract = contract_of(L2T, compensation=REPUBLISHES)
    path.write_text(yaml.safe_dump(contract.model_dump(mode="json", exclude_defaults=True)))
    result = CliRunner().invoke(app, ["grants", str(path), "--for", "kafka", "--environment", "staging"])
    assert result.exit_code == 0
    assert "--transactional-id tallystick-compensation-staging-billing_payouts" in result.stdout
    assert "User:tallystick_reader" in result.stdout
