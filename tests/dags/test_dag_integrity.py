"""Every contract has its DAGs, whole and in order; a bad contract shows itself and takes no other down."""

import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.serialization.decoders import decode_deadline_alert

REPOSITORY = Path(__file__).parents[2]
DAGS = REPOSITORY / "dags"


def parse_dags() -> BundleDagBag:
    return BundleDagBag(dag_folder=str(DAGS), bundle_path=DAGS, bundle_name="dags-folder")


@pytest.fixture(scope="module")
def bag() -> BundleDagBag:
    return parse_dags()


def test_the_examples_import_without_error_or_warning(bag: BundleDagBag) -> None:
    assert (bag.import_errors, bag.captured_warnings) == ({}, {})
    assert sorted(bag.dag_ids) == [
        "compensate_billing_payouts",
        "reconcile_billing_payments",
        "reconcile_billing_payouts",
    ]


EDGES_OF_RECONCILE = {
    "finish": {"settle"},
    "settle": {"cut"},
    "cut": {"reconcile"},
    "reconcile": {"report", "alert"},
    "report": {"judge"},
    "alert": set(),
    "judge": set(),
}


@pytest.mark.parametrize(
    ("dag_id", "edges"),
    [
        ("reconcile_billing_payments", EDGES_OF_RECONCILE),
        (
            "reconcile_billing_payouts",  # allows compensation, so it offers it
            EDGES_OF_RECONCILE | {"reconcile": {"report", "alert", "offer_compensation"}, "offer_compensation": set()},
        ),
        (
            "compensate_billing_payouts",
            {
                "plan": {"approve"},
                "approve": {"second_approval"},
                "second_approval": {"act"},
                "act": {"verify"},
                "verify": set(),
            },
        ),
    ],
)
def test_the_tasks_stand_in_their_order(bag: BundleDagBag, dag_id: str, edges: dict[str, set[str]]) -> None:
    assert {task.task_id: set(task.downstream_task_ids) for task in bag.dags[dag_id].tasks} == edges


def test_a_reconciliation_covers_windows_and_misses_none(bag: BundleDagBag) -> None:
    dag = bag.dags["reconcile_billing_payments"]
    assert type(dag.timetable).__name__ == "CronDataIntervalTimetable"  # a bare cron string has empty windows
    assert (dag.timetable.expression, str(dag.timetable.timezone)) == ("0 * * * *", "UTC")
    assert (dag.catchup, dag.max_active_runs, dag.start_date.isoformat()) == (True, 1, "2026-11-21T00:00:00+00:00")


def test_a_verdict_is_due_so_long_after_the_windows_end(bag: BundleDagBag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = bag.dags["reconcile_billing_payments"]
    (alert,) = dag.deadline
    assert (alert.interval, alert.callback.path) == (
        timedelta(minutes=10, hours=1),
        "tallystick_airflow.overdue_verdict.page_if_overdue",
    )
    assert set(alert.callback.kwargs) == {"contract_json", "store_conn_id"}
    # As the scheduler stores it, and reads it back with what the plugin registers.
    (stored,) = DagSerialization.serialize_dag(dag)["deadline"]
    reference = decode_deadline_alert(stored).reference
    assert reference.serialize_reference() == {"reference_type": "WindowEnd"}


def test_the_verdict_is_the_result_of_the_run(bag: BundleDagBag) -> None:
    dag = bag.dags["reconcile_billing_payouts"]
    assert [task.task_id for task in dag.tasks if task.returns_dag_result] == ["reconcile"]


@pytest.mark.parametrize(
    ("task_id", "retries", "trigger_rule"),
    [
        ("finish", 2, "all_success"),
        ("settle", 2, "all_success"),
        ("reconcile", 2, "all_success"),
        ("report", 1, "all_success"),
        ("alert", 5, "all_done"),  # pages also when there is no verdict to page about
        ("judge", 2, "all_done"),  # turns red also when nothing was proven
    ],
)
def test_what_may_fail_is_tried_again_and_what_must_run_runs(
    bag: BundleDagBag, task_id: str, retries: int, trigger_rule: str
) -> None:
    task = bag.dags["reconcile_billing_payouts"].get_task(task_id)
    assert (task.retries, task.trigger_rule) == (retries, trigger_rule)


def test_an_approval_has_no_default_and_is_asked_once(bag: BundleDagBag) -> None:
    dag = bag.dags["compensate_billing_payouts"]
    approve = dag.get_task("approve")
    assert (approve.defaults, approve.retries, approve.response_timeout.total_seconds()) == (None, 0, 14_400)
    assert set(dag.allowed_run_types) == {"manual", "operator_triggered"}
    assert dag.schedule is None


def test_every_dag_survives_serialization(bag: BundleDagBag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in bag.dags.values():
        again = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
        assert set(again.task_dict) == set(dag.task_dict)


def test_a_bad_contract_shows_file_and_fault_while_the_good_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contracts = shutil.copytree(DAGS / "contracts", tmp_path / "contracts")
    bad = contracts / "billing_refunds.yaml"
    bad.write_text((contracts / "billing_payouts.yaml").read_text().replace("ledger_to_topic  ", "sideways  "))
    monkeypatch.setenv("TALLYSTICK_CONTRACTS_DIR", str(contracts))
    bag = parse_dags()
    assert sorted(bag.dag_ids) == [
        "compensate_billing_payouts",
        "reconcile_billing_payments",
        "reconcile_billing_payouts",
    ]
    assert list(bag.import_errors) == ["refused_contracts_dag.py"]
    (message,) = bag.import_errors.values()
    assert str(bad) in message
    assert "direction" in message


def test_of_two_files_with_one_contract_the_second_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contracts = shutil.copytree(DAGS / "contracts", tmp_path / "contracts")
    shutil.copy(contracts / "billing_payouts.yaml", contracts / "copy_of_payouts.yaml")
    monkeypatch.setenv("TALLYSTICK_CONTRACTS_DIR", str(contracts))
    bag = parse_dags()
    assert len(bag.dag_ids) == 3
    assert "copy_of_payouts.yaml" in bag.import_errors["refused_contracts_dag.py"]


def test_parsing_loads_no_client_and_no_engine() -> None:
    heavy = (
        "pyspark",
        "great_expectations",
        "confluent_kafka",
        "kafka",
        "psycopg",
        "sqlalchemy.dialects.postgresql",
        "pandas",
    )
    script = f"""
import sys, importlib.machinery, importlib.util
import airflow.sdk, airflow.providers.apache.spark.operators.spark_submit, airflow.providers.standard.operators.hitl
before = set(sys.modules)
for name in ("reconcile_dag", "refused_contracts_dag"):
    loader = importlib.machinery.SourceFileLoader(name, {str(DAGS)!r} + f"/{{name}}.py")
    loader.exec_module(importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader)))
print(sorted(name for name in {heavy!r} if name in set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_plugin_loads_and_none_of_the_package_is_run_as_a_plugin() -> None:
    from airflow import plugins_manager

    plugins_manager._get_plugins.cache_clear()
    assert plugins_manager.get_import_errors() == {}
    plugins, _ = plugins_manager._get_plugins()
    assert [plugin.name for plugin in plugins if "tallystick" in str(plugin.name)] == ["tallystick"]
    assert "connections" not in sys.modules  # what Airflow would name plugins/tallystick_airflow/connections.py


def test_what_a_dag_file_imports_is_there_once_the_plugin_is_loaded() -> None:
    """Airflow forks its workers, whose children are tasks, from a process that has loaded the plugins."""
    code = (
        "import sys, runpy, tallystick_airflow.plugin; before = {*sys.modules}; "
        "runpy.run_path('dags/reconcile_dag.py'); print(*({*sys.modules} - before))"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    late = {name for name in told.stdout.split() if not name.startswith("tallystick")}
    assert late & {"openlineage.client", "requests", "pydantic", "yaml"} == set()
    assert "tallystick.contract.contract" not in told.stdout.split()
