"""A real Airflow starts the DAG that a contract names, once per break, with the plan as its conf."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import Engine

from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.stack import LabAddresses
from tallystick.compensation.plan import Plan
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.connections.connections import Connections, HttpAccount, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.documents.plan import conf_of
from tallystick.documents.schema import PlanDocument
from tallystick.executor.draw_plan import draw_plan
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.airflow_api import AirflowRefused, open_airflow
from tallystick.executor.execute_plan import Execution
from tallystick.model.verdict import Verdict
from tallystick.store.plans.plan_store import executed_actions

from .repairs import action_states, effects, executed, planned, trail

DAG_ID = "repair_by_hand"
HAND_MADE = f'''
from airflow.sdk import DAG, task

with DAG("{DAG_ID}", schedule=None):
    @task
    def repair(params):
        assert [one["kind"] for one in params["items"]] == ["trigger"]
        assert params["items"][0]["amount_minor"] != 13, "the DAG cannot repair this one"
    repair()
'''


@pytest.fixture(scope="module")
def airflow(airflow_stack: LabAddresses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowStack]:
    """One whose only DAG is somebody's own."""
    folder = tmp_path_factory.mktemp("airflow")
    home, contracts, dags = (folder / name for name in ("home", "contracts", "dags"))
    for one in (home, contracts, dags):
        one.mkdir()
    (dags / "by_hand.py").write_text(HAND_MADE)
    settings = AirflowSettings(home=home, contracts=contracts, artifacts=folder / "artifacts", dags=dags)
    with start_airflow(settings, airflow_stack, deadline_seconds=300) as started:
        started.wait_dag(DAG_ID, deadline_seconds=180)
        yield started


@dataclass(frozen=True)
class World:
    """A contract whose missing events are handed to that DAG, and a store whose last run found some."""

    airflow: AirflowStack
    store: Engine
    contract: Contract
    runs: Any

    @property
    def connections(self) -> Connections:
        return self.connections_of("approver")

    def connections_of(self, user: str) -> Connections:
        account = HttpAccount(address=self.airflow.base_url, login=user, secret=self.airflow.passwords[user])
        return Connections(KafkaSettings({"bootstrap.servers": "nobody:9092"}), ledger_dsn="", airflow=account)

    def plan(self, *amounts: int) -> Plan:
        """What a run that found so many events missing leads to."""
        self.runs.commit(self.store, self.runs.result(0))
        found = tuple(self.runs.missing(f"event-{amount}", amount_minor=amount) for amount in amounts)
        items = tuple(self.runs.item(one, n=1) for one in found)
        self.runs.commit(self.store, self.runs.result(1, verdict=Verdict.BROKEN, breaks=found, items=items))
        plan = planned(self, 1)
        assert len(plan.items) == len(amounts)
        return plan

    def confs(self) -> dict[str, Any]:
        return {run["dag_run_id"]: run["conf"] for run in self.airflow.runs(DAG_ID)}


@pytest.fixture
def world(airflow: AirflowStack, store: Engine, books: Any) -> World:
    missing = "missing_in_topic_never_produced"
    rules = {
        "trigger": {"connection": "airflow", "dags": {missing: DAG_ID}},
        "max_amount_minor": {"EUR": 100_000},
        "four_eyes_above_minor": {"EUR": 100_000},
    }
    document = books.contract.model_dump(mode="json", exclude_defaults=True) | {"compensation": rules}
    document["ledger"]["where"] = "leg LIKE 'p%'"
    contract = Contract.model_validate(document)
    return World(airflow, store, contract, replace(books, contract=contract))


def fates(execution: Execution) -> list[ActionResult]:
    return [outcome.fate for outcome in execution.outcomes]


def test_each_break_gets_one_run_with_the_plan_as_conf_whatever_outcome_was_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.confs()
    plan = world.plan(700, 13)
    assert effects(world, plan) == [RepairEffect.NOT_CLEARED] * 2
    lost = iter([True])

    def dies_once(*arguments: Any, **named: Any) -> None:
        if next(lost, False):
            raise RuntimeError("killed here")
        record_done(*arguments, **named)

    record_done = action_log.record_done
    monkeypatch.setattr(action_log, "record_done", dies_once)
    with pytest.raises(RuntimeError, match="killed here"):
        executed(world, plan)
    assert fates(executed(world, plan)) == [ActionResult.ALREADY_DONE, ActionResult.DONE]
    assert fates(executed(world, plan)) == [ActionResult.ALREADY_DONE] * 2
    started = {run_id: conf for run_id, conf in world.confs().items() if run_id not in before}
    assert started == {str(item.action_id): conf_of(plan, item) for item in plan.items}
    for conf in started.values():
        PlanDocument.model_validate_json(PlanDocument.model_validate(conf).model_dump_json())

    (fine, failing) = sorted(plan.items, key=lambda item: item.amount_minor, reverse=True)
    ended = {item.action_id: world.airflow.wait_run(DAG_ID, str(item.action_id)) for item in (fine, failing)}
    assert list(ended.values()) == ["success", "failed"]
    found = dict(zip((item.action_id for item in plan.items), effects(world, plan), strict=True))
    assert found == {fine.action_id: RepairEffect.HANDED_OVER, failing.action_id: RepairEffect.NOT_CLEARED}
    assert executed_actions(world.store, world.contract.name) == {}
    again = draw_plan(world.store, world.contract, world.connections, cut_n=1)
    assert [one.reason for one in again.left_out] == ["another plan has it"] * 2


def test_a_run_of_that_id_with_another_conf_a_pause_and_a_lesser_account_are_refused(world: World) -> None:
    plan = world.plan(800, 900)
    theirs, ours = plan.items
    world.airflow.trigger(DAG_ID, run_id=str(theirs.action_id), conf={"items": "theirs"})
    with pytest.raises(AirflowRefused, match="answered 403"):
        executed(world, plan, connections=world.connections_of("viewer"))
    other_conf, not_allowed = action_states(world, plan)
    assert (other_conf[0], not_allowed[0]) == ("refused", "refused")
    assert "answered 403" in not_allowed[1]
    assert trail(world, plan)[-3:] == ["refused", "refused", "stopped"]
    world.airflow.call("PATCH", f"/api/v2/dags/{DAG_ID}", json={"is_paused": True})
    try:
        outcomes = executed(world, plan).outcomes
    finally:
        world.airflow.call("PATCH", f"/api/v2/dags/{DAG_ID}", json={"is_paused": False})
    assert [outcome.fate for outcome in outcomes] == [ActionResult.REFUSED] * 2
    assert "with another conf" in outcomes[0].reason
    assert "is paused" in outcomes[1].reason
    assert str(ours.action_id) not in world.confs()
    with open_airflow(world.connections.airflow) as api:  # type: ignore[arg-type]
        assert api.start_once("nobodys", "run", {}).refused.startswith("Airflow has no DAG nobodys")
