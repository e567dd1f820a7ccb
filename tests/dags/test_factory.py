"""A DAG file of two lines has the DAGs of its contracts, with the settings that its team asks for."""

import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowFailException
from airflow.serialization.serialized_objects import DagSerialization

from tallystick.contract.contract import ContractRefused
from tallystick_airflow import (
    compensation_dags,
    reconcile_dags,
    reconcile_task_group,
    refuse_contract_dags,
    verdict_deadline,
)
from tallystick_airflow.contract_files import ContractFile, read_contract_files
from tallystick_airflow.dags import factory, reconcile_dag
from tallystick_airflow.dags.settings import COMPENSATE_TASKS, RECONCILE_TASKS, DagSettings, SettingRefused

CONTRACTS = Path(__file__).parents[2] / "dags" / "contracts"
PAYOUTS = CONTRACTS / "billing_payouts.yaml"
SHOWN = "Contract files that are refused, and DAGs that could not be built:"
ALL = ["compensate_billing_payouts", "reconcile_billing_payments", "reconcile_billing_payouts"]
TWO_LINES = """from tallystick_airflow import reconcile_dags
globals().update(reconcile_dags("their_contracts"))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An adopter's: a DAG file of two lines, and contracts beside it.

    Tests write that file again within a second, and Python takes byte code for its own that is of that size and second.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    shutil.copytree(CONTRACTS, tmp_path / "their_contracts")
    (tmp_path / "ours_dag.py").write_text(TWO_LINES)
    return tmp_path


def parse(folder: Path) -> BundleDagBag:
    return BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="theirs")


def refuse_one(contracts: Path) -> None:
    text = (contracts / "billing_payouts.yaml").read_text()
    (contracts / "billing_refunds.yaml").write_text(text.replace("ledger_to_topic  ", "sideways  "))


def of_task(dags: dict[str, DAG], dag_id: str, task_id: str) -> Any:
    return dags[dag_id].get_task(task_id)


def test_a_file_of_two_lines_has_all_dags_of_the_folder_beside_it(folder: Path) -> None:
    bag = parse(folder)
    assert (bag.import_errors, bag.captured_warnings, sorted(bag.dag_ids)) == ({}, {}, ALL)
    task: Any = bag.dags["reconcile_billing_payouts"].get_task("cut")
    assert task.contract_file == str(folder / "their_contracts" / "billing_payouts.yaml")


def test_without_a_folder_it_is_contracts_beside_the_file_or_what_the_environment_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "ours_dag.py").write_text(TWO_LINES.replace('"their_contracts"', ""))
    assert parse(folder).dag_ids == []  # there is no folder of that name
    monkeypatch.setenv("TALLYSTICK_CONTRACTS_DIR", str(folder / "their_contracts"))
    assert sorted(parse(folder).dag_ids) == ALL


def test_a_refused_contract_is_a_red_dag_beside_the_others(folder: Path) -> None:
    refuse_one(folder / "their_contracts")
    bag = parse(folder)
    assert (bag.import_errors, sorted(bag.dag_ids)) == ({}, sorted([*ALL, "refused_contracts"]))
    refused = bag.dags["refused_contracts"]
    assert refused.description == f"{SHOWN} 1"
    assert "billing_refunds.yaml" in str(refused.doc_md)
    show: Any = refused.get_task("show")
    with pytest.raises(AirflowFailException, match=r"billing_refunds\.yaml: direction"):
        show.execute({})


def test_a_refused_contract_is_an_import_error_of_a_file_of_its_own(folder: Path) -> None:
    refuse_one(folder / "their_contracts")
    (folder / "ours_dag.py").write_text(TWO_LINES.replace('contracts")', 'contracts", show_refused=False)'))
    (folder / "refused_dag.py").write_text(
        'from tallystick_airflow import refuse_contract_dags\nrefuse_contract_dags("their_contracts")\n'
    )
    bag = parse(folder)
    assert (sorted(bag.dag_ids), list(bag.import_errors)) == (ALL, ["refused_dag.py"])
    assert "billing_refunds.yaml: direction" in bag.import_errors["refused_dag.py"]
    (folder / "their_contracts" / "billing_refunds.yaml").unlink()
    assert parse(folder).import_errors == {}


def test_a_file_of_another_ending_is_shown_as_refused(folder: Path) -> None:
    (folder / "their_contracts" / "billing_payouts.yaml").rename(folder / "their_contracts" / "billing_payouts.yml")
    bag = parse(folder)
    assert sorted(bag.dag_ids) == ["reconcile_billing_payments", "refused_contracts"]
    assert "billing_payouts.yml: got the ending .yml; expected .yaml" in str(bag.dags["refused_contracts"].doc_md)


@pytest.mark.parametrize("arguments", ["", ", show_refused=False"])
def test_a_contract_whose_dag_cannot_be_built_is_shown_and_takes_no_other_down(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    (folder / "ours_dag.py").write_text(TWO_LINES.replace('contracts")', f'contracts"{arguments})'))
    add = reconcile_dag.add_window_tasks

    def fails_for_payouts(file: ContractFile, settings: DagSettings) -> Any:
        tasks = add(file, settings)
        if file.contract.name == "billing_payouts":
            raise OverflowError("date value out of range")
        return tasks

    monkeypatch.setattr(reconcile_dag, "add_window_tasks", fails_for_payouts)
    bag = parse(folder)
    others = [dag_id for dag_id in ALL if dag_id != "reconcile_billing_payouts"]
    assert (bag.import_errors, sorted(bag.dag_ids)) == ({}, [*others, "refused_contracts"])
    fault = "reconcile_billing_payouts could not be built: OverflowError: date value out of range"
    assert f"billing_payouts.yaml: {fault}" in str(bag.dags["refused_contracts"].doc_md)


def test_contracts_that_are_good_are_not_refused() -> None:
    refuse_contract_dags(CONTRACTS)


def test_a_task_builds_its_own_dag_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(reconcile_dags(CONTRACTS)) == ALL
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "compensate_billing_payouts")  # as a task's process has it
    assert sorted(reconcile_dags(CONTRACTS)) == ["compensate_billing_payouts"]
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "t_reconcile_billing_payouts")
    assert sorted(reconcile_dags(CONTRACTS, dag_id_prefix="t_")) == ["t_reconcile_billing_payouts"]


def on_failure(_: Any) -> None: ...


def test_settings_reach_every_task() -> None:
    pod = {"pod_override": "a pod"}
    dags = reconcile_dags(
        CONTRACTS,
        pool="kafka",
        queue="large",
        executor_config=pod,
        tags=["payments"],
        default_args={"owner": "team-a", "retries": 4, "on_failure_callback": on_failure},
        task_args={"reconcile": {"pool": "spark", "queue": "huge"}, "finish": {"pool": "spark"}, "act": {"retries": 0}},
        on_failure_callback=on_failure,
        access_control={"team-a": {"can_read"}},
    )
    for dag in dags.values():
        assert "payments" in dag.tags
        assert dag.on_failure_callback == on_failure
        assert set(dag.access_control or {}) == {"team-a"}
        for task in dag.tasks:
            assert (task.owner, task.executor_config) == ("team-a", pod)
            assert task.on_failure_callback == [on_failure]
            assert task.pool == ("spark" if task.task_id in {"reconcile", "finish"} else "kafka")
            assert task.queue == ("huge" if task.task_id == "reconcile" else "large")
    retries = {task.task_id: task.retries for dag in dags.values() for task in dag.tasks}
    assert (retries["cut"], retries["plan"], retries["act"]) == (4, 4, 0)
    assert (retries["approve"], retries["second_approval"]) == (0, 0)  # a person is asked once, whatever is set
    assert (retries["alert"], retries["report"]) == (5, 1)


def test_the_pool_of_spark_is_that_of_the_task_or_of_the_environment_or_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pool_of(**settings: Any) -> str:
        return str(of_task(reconcile_dags(CONTRACTS, **settings), "reconcile_billing_payments", "reconcile").pool)

    assert (pool_of(), pool_of(pool="all")) == ("default_pool", "all")
    monkeypatch.setenv("TALLYSTICK_SPARK_POOL", "spark")
    assert pool_of(pool="all") == "spark"
    assert pool_of(pool="all", task_args={"reconcile": {"pool": "mine"}}) == "mine"


def test_a_team_has_ids_a_store_and_a_spark_of_its_own() -> None:
    dags = reconcile_dags(CONTRACTS, dag_id_prefix="pay.", store_conn_id="pay_store", spark_conn_id="pay_spark")
    assert sorted(dags) == [f"pay.{dag_id}" for dag_id in ALL]
    for dag in dags.values():
        assert {task.store_conn_id for task in dag.tasks} == {"pay_store"}
    assert dags["pay.reconcile_billing_payouts"].deadline[0].callback.kwargs["store_conn_id"] == "pay_store"
    reconcile = of_task(dags, "pay.reconcile_billing_payouts", "reconcile")
    assert (reconcile.spark_conn_id, reconcile._conn_id) == ("pay_spark", "pay_spark")
    offer = of_task(dags, "pay.reconcile_billing_payouts", "offer_compensation")
    assert offer.trigger_dag_id == "pay.compensate_billing_payouts"


def test_one_contract_may_have_settings_of_its_own() -> None:
    dags = reconcile_dags(CONTRACTS, pool="all", per_contract={"billing_payouts": {"pool": "own", "queue": "q"}})
    cuts = [of_task(dags, f"reconcile_billing_{name}", "cut") for name in ("payments", "payouts")]
    assert [(cut.pool, cut.queue) for cut in cuts] == [("all", "default"), ("own", "q")]


def test_settings_of_a_contract_that_there_is_not_are_refused_unless_it_may_be_a_refused_one(folder: Path) -> None:
    contracts = folder / "their_contracts"
    with pytest.raises(SettingRefused, match="there is no contract 'billing_refunds'"):
        reconcile_dags(contracts, per_contract={"billing_refunds": {"pool": "own"}})
    refuse_one(contracts)
    assert sorted(reconcile_dags(contracts, per_contract={"billing_refunds": {"pool": "own"}}, show_refused=False)) == (
        ALL
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task_args": {"reconcil": {}}}, "there is no task 'reconcil'; expected one of"),
        ({"task_args": {"judge": {"trigger_rule": "all_failed"}}}, "judge: trigger_rule is Tallystick's own"),
        ({"task_args": {"cut": {"contract_file": "x"}}}, "cut: contract_file is Tallystick's own"),
        ({"default_args": {"store_conn_id": "x"}}, "expected it as the setting store_conn_id"),
        ({"default_args": {"cut_n": "7"}}, "default_args: cut_n is Tallystick's own; expected none of it"),
        ({"dag_id_prefix": "team a/"}, "dag_id_prefix: got 'team a/'"),
        ({"dag_id_prefix": "a_reconcile_"}, "and neither reconcile_ nor compensate_"),
    ],
)
def test_a_setting_that_would_change_what_is_proven_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingRefused) as refusal:
        reconcile_dags(CONTRACTS, **settings)
    assert message in str(refusal.value)


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="'pol'"):
        reconcile_dags(CONTRACTS, pol="kafka")
    with pytest.raises(TypeError, match="'pol'"):
        reconcile_dags(CONTRACTS, per_contract={"billing_payouts": {"pol": "kafka"}})


def test_the_tasks_that_settings_may_name_are_those_that_there_are() -> None:
    tasks = {task.task_id for dag in reconcile_dags(CONTRACTS).values() for task in dag.tasks}
    assert tasks | {"offered"} == RECONCILE_TASKS | COMPENSATE_TASKS


def test_a_wait_without_the_triggerer_is_a_setting() -> None:
    for deferrable in (True, False):
        settle = of_task(reconcile_dags(CONTRACTS, deferrable=deferrable), "reconcile_billing_payouts", "settle")
        assert settle.deferrable is deferrable


def own_dag(made: Callable[[], Any], **arguments: Any) -> DAG:
    """A DAG of an adopter: fetch, the group, publish."""
    schedule = CronDataIntervalTimetable("0 * * * *", timezone="UTC")
    with DAG("nightly", schedule=schedule, start_date=datetime(2026, 1, 1, tzinfo=UTC), **arguments) as dag:
        EmptyOperator(task_id="fetch") >> made() >> EmptyOperator(task_id="publish")
    return dag


def test_a_group_stands_between_tasks_of_ones_own() -> None:
    dag = own_dag(lambda: reconcile_task_group(PAYOUTS, group_id="books"))
    edges = {task.task_id: {one.removeprefix("books.") for one in task.downstream_task_ids} for task in dag.tasks}
    assert edges == {
        "fetch": {"finish"},
        "books.finish": {"settle"},
        "books.settle": {"cut"},
        "books.cut": {"reconcile"},
        "books.reconcile": {"report", "alert", "offer_compensation"},
        "books.report": {"judge"},
        "books.offer_compensation": {"offered"},
        "books.judge": {"publish"},
        "books.alert": {"publish"},
        "books.offered": {"publish"},  # a skipped offer would skip what follows
        "publish": set(),
    }
    rules = {task.task_id.removeprefix("books."): task.trigger_rule.value for task in dag.tasks}
    assert (rules["judge"], rules["alert"], rules["offered"]) == ("all_done", "all_done", "none_failed")
    again = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    assert set(again.task_dict) == set(dag.task_dict)


def test_a_group_reads_the_cut_of_its_own(folder: Path) -> None:
    def both() -> Any:
        return [
            reconcile_task_group(CONTRACTS / f"billing_{name}.yaml", group_id=name) for name in ("payments", "payouts")
        ]

    dag = own_dag(both)
    for name in ("payments", "payouts"):
        for task_id in ("reconcile", "report", "alert", "judge"):
            task: Any = dag.get_task(f"{name}.{task_id}")
            assert task.cut_n == f"{{{{ ti.xcom_pull(task_ids='{name}.cut') }}}}"
        assert name in dag.get_task(f"{name}.cut").contract_file


def test_the_dags_own_defaults_go_before_ours_and_the_settings_before_those() -> None:
    dag = own_dag(
        lambda: reconcile_task_group(PAYOUTS, pool="kafka", task_args={"cut": {"retries": 9}}),
        default_args={"owner": "team-a", "retries": 7, "pool": "all"},
    )
    cut, settle = dag.get_task("reconcile.cut"), dag.get_task("reconcile.settle")
    assert (cut.owner, cut.retries, cut.pool) == ("team-a", 9, "kafka")
    assert (settle.retries, settle.execution_timeout is not None) == (7, True)
    assert (dag.get_task("fetch").pool, dag.get_task("reconcile.alert").retries) == ("all", 5)


def test_a_groups_contract_that_is_refused_is_an_import_error_of_its_dag(folder: Path) -> None:
    refuse_one(folder / "their_contracts")
    (folder / "ours_dag.py").write_text(
        "from airflow.sdk import DAG\nfrom tallystick_airflow import reconcile_task_group\n"
        'with DAG("own"):\n    reconcile_task_group("their_contracts/billing_NAME.yaml")\n'
    )
    own = folder / "ours_dag.py"
    text = own.read_text()
    own.write_text(text.replace("NAME", "payouts"))
    assert parse(folder).dag_ids == ["own"]
    own.write_text(text.replace("NAME", "refunds"))
    assert "direction" in parse(folder).import_errors["ours_dag.py"]


@pytest.mark.parametrize("name", ["tags", "access_control", "on_failure_callback", "on_success_callback"])
def test_a_group_has_no_settings_of_a_dag(name: str) -> None:
    with pytest.raises(SettingRefused, match=f"{name}: a group has none"):
        own_dag(lambda: reconcile_task_group(PAYOUTS, **{name: None}))


def test_the_repairs_of_a_group_are_dags_of_their_own() -> None:
    assert sorted(compensation_dags(CONTRACTS, dag_id_prefix="t_")) == ["t_compensate_billing_payouts"]


def test_of_a_repair_that_cannot_be_built_nobody_says_that_its_contract_is_not_reconciled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(file: ContractFile, settings: DagSettings) -> Any:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(factory, "compensate_dag", fails)
    (red,) = compensation_dags(CONTRACTS).values()
    assert (red.dag_id, red.description) == ("refused_contracts", f"{SHOWN} 1")
    assert own_dag(lambda: reconcile_task_group(PAYOUTS)).task_ids


def test_a_repair_that_cannot_be_built_or_read_is_shown_and_takes_no_other_down(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contracts = folder / "their_contracts"
    repairs = (contracts / "billing_payouts.yaml").read_text().replace("contract: billing_payouts", "contract: NAME")
    for name in ("billing_advances", "billing_zakat"):
        (contracts / f"{name}.yaml").write_text(repairs.replace("NAME", name))
    (folder / "ours_dag.py").write_text(TWO_LINES.replace("reconcile_dags", "compensation_dags"))
    theirs = [f"compensate_billing_{name}" for name in ("advances", "payouts", "zakat")]
    bag = parse(folder)
    assert (bag.import_errors, sorted(bag.dag_ids)) == ({}, theirs)
    refuse_one(contracts)
    make = factory.compensate_dag

    def fails_for_payouts(file: ContractFile, settings: DagSettings) -> Any:
        dag = make(file, settings)
        if file.contract.name == "billing_payouts":
            raise OverflowError("date value out of range")
        return dag

    monkeypatch.setattr(factory, "compensate_dag", fails_for_payouts)
    bag = parse(folder)
    others = [dag_id for dag_id in theirs if dag_id != "compensate_billing_payouts"]
    assert (bag.import_errors, sorted(bag.dag_ids)) == ({}, [*others, "refused_contracts"])
    shown = str(bag.dags["refused_contracts"].doc_md)
    assert "compensate_billing_payouts could not be built: OverflowError: date value out of range" in shown
    assert "billing_refunds.yaml: direction" in shown


def test_a_dag_of_ones_own_may_have_our_deadline() -> None:
    (payouts,) = (
        file.contract for file in read_contract_files(CONTRACTS).accepted if file.contract.name == "billing_payouts"
    )
    dag = own_dag(lambda: reconcile_task_group(PAYOUTS), deadline=verdict_deadline(payouts))
    assert dag.deadline == reconcile_dags(CONTRACTS)["reconcile_billing_payouts"].deadline


def test_a_refused_contract_is_refused_by_its_error() -> None:
    with pytest.raises(ContractRefused):
        reconcile_task_group("no_such.yaml")


def test_the_page_has_each_setting() -> None:
    page = (CONTRACTS.parents[1] / "docs" / "airflow.md").read_text()
    table = page.split("### Settings of a DAG file")[1].split("###")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {one.name for one in fields(DagSettings)} | {"per_contract"}
