"""What only a real Airflow shows: it runs on a scheduler, its triggerer and its REST interface, as people use it.

A run that hangs is paged at its deadline; its verdict starts the DAG that is scheduled on it, once; an approval counts
once, whatever is answered twice, cleared or run again; a contract of one's own runs with the terminal's connections,
and is held against suites of its own; tasks find imported what the scheduler imported before it forked them; the DAG
that a contract names is started once per break, with the plan as its conf; and a person in a browser goes from the
first look to the cleared break. Every picture lands in build/screens/.

One file, since an Airflow takes a minute of two cores to start, and these share one.
"""

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg
import pytest
import yaml
from confluent_kafka import Producer
from playwright.sync_api import Browser, expect

from lab.rounds.delivery_mode_round import prepare
from lab.rounds.own_contracts import copy_contracts
from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_client import AirflowSaidNo
from lab.servers.airflow_connections import read_connections
from lab.servers.airflow_environment import LAB_CONNECTIONS, SPARK_POOL, AirflowSettings
from lab.servers.alert_receiver import Pager, start_pager
from lab.servers.postgres import STORE_ROLE
from lab.servers.process import REPOSITORY, wait_until
from lab.servers.stack import LabAddresses, LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg, Payment
from lab.services.kafka_clients import new_producer
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.contract.contract import Contract
from tallystick.documents.plan import conf_of
from tallystick.documents.schema import PlanDocument
from tallystick.executor.draw_plan import draw_plan
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.airflow_api import AirflowRefused, open_airflow
from tallystick.executor.execute_plan import Execution
from tallystick.store.engine import connect_store, migrate, open_store
from tallystick.store.plans.plan_store import executed_actions
from tallystick.store.runs.run_store import list_runs
from tallystick_airflow.warm_imports import TASKS_NEED
from tests.browser.conftest import browser
from tests.browser.visiting import LogIn, inside, serious_faults, shot, visits

from .dag_trigger_world import DAG_ID, HAND_MADE, HandedOver, handed_over
from .payout_world import Books, once, world
from .repairs import action_states, effects, executed
from .repairs import trail as plan_trail

__all__ = ["browser", "handed_over", "world"]  # fixtures

pytestmark = pytest.mark.timeout(1800)

NAMESPACE = "deadline"
SHOP = REPOSITORY / "docs" / "examples" / "walk"
CONSUMER = "after_a_clean_window"
OVERDUE = "tallystick/deadline_payouts/verdict_overdue"
NAMES = Namespace("repaired")
REPAIRED = "repaired_payouts"
RECONCILE_REPAIRED, COMPENSATE_REPAIRED = f"reconcile_{REPAIRED}", f"compensate_{REPAIRED}"
PATIENCE_SECONDS = 300
"""For each step; a machine under load takes minutes to start Airflow."""
SUITES = """
import great_expectations as gx
import great_expectations.expectations as gxe


def suites():
    two = gxe.ExpectColumnValuesToBeBetween(
        column="topic_rows", min_value=2, severity="warning", description="A window sells two orders."
    )
    return {"window": gx.ExpectationSuite(name="window", expectations=[two])}
"""
PROBE = """
import sys
from airflow.sdk import dag, task
from tallystick_airflow.warm_imports import TASKS_NEED

FOUND = [name for name in TASKS_NEED if name in sys.modules]


@dag(schedule=None)
def warm_probe():
    @task
    def imported():
        return FOUND

    imported()


warm_probe()
"""
"""Lists what stands imported when a task's process reads the file, before anything of the task does."""
NEVER = {"schedule": "0 0 29 2 *", "start_date": datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)}
"""Fired by nobody but the test."""


@pytest.fixture(scope="module")
def pager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pager]:
    with start_pager(tmp_path_factory.mktemp("pager") / "pages.jsonl") as pager:
        yield pager


@pytest.fixture(scope="module")
def store_dsn(stack: LabStack) -> str:
    """The store that Airflow knows."""
    migrate(connect_store(stack.store_owner_dsn), grant_to=STORE_ROLE)
    return stack.store_dsn


@pytest.fixture(scope="module")
def airflow(
    airflow_stack: LabAddresses, store_dsn: str, pager: Pager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AirflowStack]:
    """One for all tests here, with the example of a DAG that is scheduled on verdicts; it has no contracts at first."""
    folder = tmp_path_factory.mktemp("airflow")
    home, contracts, dags = folder / "home", folder / "contracts", folder / "dags"
    shutil.copytree(REPOSITORY / "dags", dags)
    example = (REPOSITORY / "docs" / "examples" / f"{CONSUMER}_dag.py").read_text()
    (dags / f"{CONSUMER}_dag.py").write_text(example.replace("billing_payouts/matched", "deadline_payouts/verdict"))
    (dags / "shop_suites.py").write_text(SUITES)
    (dags / "warm_probe.py").write_text(PROBE)
    (dags / "by_hand.py").write_text(HAND_MADE)
    for made in (home, contracts):
        made.mkdir()
    shops = [yaml.safe_load((SHOP / "shop_orders.yaml").read_text())]
    own = read_connections(shops, shop_environment(airflow_stack), without=LAB_CONNECTIONS)
    settings = AirflowSettings(
        home=home,
        contracts=contracts,
        dags=dags,
        artifacts=folder / "artifacts",
        webhook=pager.address,
        connections=own.given,
        warm_spark=True,
    )
    with start_airflow(settings, airflow_stack, deadline_seconds=PATIENCE_SECONDS) as airflow:
        yield airflow


@pytest.fixture
def log_in(browser: Browser, airflow: AirflowStack) -> Iterator[LogIn]:
    with visits(browser, airflow) as log_in:
        yield log_in


def shop_environment(addresses: LabAddresses) -> dict[str, str]:
    """What docs/walk.md has people export: for the shop, and for Tallystick."""
    return {
        "SHOP_BROKER": addresses.bootstrap_servers,
        "SHOP_DATABASE": addresses.ledger_owner_dsn,
        "TALLYSTICK_CONN_SHOP_KAFKA": json.dumps({"bootstrap.servers": addresses.bootstrap_servers}),
        "TALLYSTICK_CONN_SHOP_LEDGER": addresses.ledger_reader_dsn,
    }


@pytest.fixture
def new_contract(new_contract: Callable[..., Contract]) -> Callable[..., Contract]:
    return partial(new_contract, **NEVER)


def publish(airflow: AirflowStack, document: dict[str, Any]) -> None:
    """Give Airflow a contract; its DAGs appear a while later."""
    (airflow.settings.contracts / f"{document['contract']}.yaml").write_text(yaml.safe_dump(document))
    have_contracts_read(airflow)


def have_contracts_read(airflow: AirflowStack) -> None:
    """A DAG file that is newer than what Airflow has read of it does not wait for its next turn."""
    (airflow.settings.dags / "reconcile_dag.py").touch()


def give_slots(airflow: AirflowStack, slots: int) -> None:
    body = {"pool": SPARK_POOL, "slots": slots, "description": "", "include_deferred": False}
    airflow.call("PATCH", f"/api/v2/pools/{SPARK_POOL}", json=body)


def payouts_contract() -> dict[str, Any]:
    """The example, in a namespace of its own, with a verdict due at once."""
    document: dict[str, Any] = yaml.safe_load((REPOSITORY / "dags" / "contracts" / "billing_payouts.yaml").read_text())
    document.pop("compensation", None)
    return document | {
        "contract": "deadline_payouts",
        **NEVER,
        "legs": {leg: topic.replace("billing.", f"{NAMESPACE}.") for leg, topic in document["legs"].items()},
        "ledger": document["ledger"] | {"table": document["ledger"]["table"].replace("billing.", f"{NAMESPACE}.")},
        "settle_timeout_seconds": 0,
        "verdict_within_seconds": 1,
    }


def test_a_hanging_run_pages_at_its_deadline_and_its_verdict_resolves_that_and_starts_what_waits_for_it_once(
    stack: LabStack, airflow: AirflowStack, pager: Pager
) -> None:
    """It hangs because Spark's pool has no slot."""
    prepare(stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=NAMESPACE)
    give_slots(airflow, 0)
    publish(airflow, payouts_contract())
    dag_id = "reconcile_deadline_payouts"
    for known in (dag_id, CONSUMER):
        airflow.wait_dag(known, deadline_seconds=PATIENCE_SECONDS)
    now = datetime.now(UTC)
    run_id = airflow.trigger(dag_id, interval=(now - timedelta(minutes=1), now))

    def heard() -> list[tuple[str, str]]:
        return [(page["action"], page["dedup_key"]) for page in pager.pages()]

    wait_until(lambda: bool(heard()), what="the page of the missed deadline", deadline_seconds=PATIENCE_SECONDS)
    assert airflow.run(dag_id, run_id)["state"] in ("queued", "running")
    assert heard() == [("trigger", OVERDUE)]
    assert pager.pages()[0]["details"]["scheduler_run_id"] == run_id

    give_slots(airflow, 1)
    assert airflow.wait_run(dag_id, run_id, deadline_seconds=PATIENCE_SECONDS) == "success"
    assert heard() == [("trigger", OVERDUE), ("resolve", OVERDUE)]

    started = airflow.wait_run_where(
        CONSUMER, lambda run: run["state"] == "success", what="the run that waited", deadline_seconds=PATIENCE_SECONDS
    )
    assert airflow.xcom(CONSUMER, started["dag_run_id"], "send_statements") == ["deadline_payouts/0"]
    airflow.clear_run(dag_id, run_id)
    assert airflow.wait_run(dag_id, run_id, deadline_seconds=PATIENCE_SECONDS) == "success"
    events = airflow.call("GET", "/api/v2/assets/events?source_dag_id=" + dag_id)["asset_events"]
    assert [(event["uri"], event["extra"]["verdict"]) for event in events] == [
        ("tallystick://deadline_payouts/verdict", "INCONCLUSIVE")
    ]
    assert len(airflow.runs(CONSUMER)) == 1


def trail(world: Books, *events: str) -> dict[str, int]:
    """How often each of these stands in the contract's audit trail."""
    stand = Counter(world.events())
    return {event: stand[event] for event in events}


def test_an_approval_has_one_effect_whatever_is_answered_twice_cleared_or_run_again(
    airflow: AirflowStack, world: Books
) -> None:
    rows = world.pay(3)
    world.find_missing(rows)
    document = json.loads(world.contract.model_dump_json(exclude_defaults=True))
    document["compensation"].pop("four_eyes_above_minor")  # so that every plan needs two people
    publish(airflow, document)
    dag_id = f"compensate_{world.contract.name}"
    airflow.wait_dag(dag_id, deadline_seconds=PATIENCE_SECONDS)
    ends = partial(airflow.wait_run, dag_id, deadline_seconds=PATIENCE_SECONDS)

    # Two runs show the same plan, and a person says yes to each; to the first one whoever started it, so that another
    # one is asked too, and says it twice.
    both = [airflow.trigger(dag_id, conf={"cut_n": 1}) for _ in range(2)]
    for run_id in both:
        airflow.wait_task(dag_id, run_id, "approve", "awaiting_input", deadline_seconds=PATIENCE_SECONDS)
    airflow.approve(dag_id, both[0], user="admin", deadline_seconds=PATIENCE_SECONDS)
    airflow.approve(dag_id, both[1], deadline_seconds=PATIENCE_SECONDS)
    airflow.approve(dag_id, both[0], "second_approval", deadline_seconds=PATIENCE_SECONDS)
    with pytest.raises(AirflowSaidNo) as twice:
        airflow.answer(dag_id, both[0], "second_approval", chosen="Approve")
    assert twice.value.status == 409
    assert [ends(run_id) for run_id in both] == ["success", "success"]
    assert world.copies() == once(rows)
    assert trail(world, "planned", "agreed", "approved", "publishing", "already_published", "finished") == {
        "planned": 2, "agreed": 3, "approved": 2, "publishing": 1, "already_published": 3, "finished": 2
    }  # fmt: skip

    # The task that acts is cleared.
    airflow.clear_tasks(dag_id, both[0], "act")
    assert ends(both[0]) == "success"
    assert trail(world, "approved", "publishing", "already_published", "finished") == {
        "approved": 3, "publishing": 1, "already_published": 6, "finished": 3
    }  # fmt: skip

    # Whoever may edit XComs writes another name into the answer, and clears the task that acts.
    entry = f"/api/v2/dags/{dag_id}/dagRuns/{both[0]}/taskInstances/approve/xcomEntries/return_value"
    forged = {"chosen_options": ["Approve"], "params_input": {}, "responded_by_user": {"id": "1", "name": "Grace"}}
    airflow.call("PATCH", entry, json={"value": forged, "map_index": -1}, user="operator")
    airflow.clear_tasks(dag_id, both[0], "act")
    assert ends(both[0]) == "failed"
    assert "somebody has rewritten the answer" in airflow.task_log(dag_id, both[0], "act", try_number=3)
    assert trail(world, "approval_rewritten", "approved") == {"approval_rewritten": 1, "approved": 3}

    # The approval is cleared: nobody is asked again, and nothing is done.
    airflow.clear_tasks(dag_id, both[1], "approve")
    assert ends(both[1]) == "failed"
    assert airflow.task_states(dag_id, both[1])["act"] == "upstream_failed"
    assert trail(world, "not_asked_again", "agreed", "approved") == {"not_asked_again": 1, "agreed": 3, "approved": 3}

    # The whole run is run again, and a new one beside it: there is nothing left to plan.
    airflow.clear_run(dag_id, both[0])
    again = [both[0], airflow.trigger(dag_id, conf={"cut_n": 1})]
    for run_id in again:
        assert ends(run_id) == "success"
        assert set(airflow.task_states(dag_id, run_id).values()) == {"skipped"}
    assert world.copies() == once(rows)
    assert trail(world, "planned", "agreed", "approved", "publishing") == {
        "planned": 2, "agreed": 3, "approved": 3, "publishing": 1
    }  # fmt: skip


def test_the_walks_contract_begins_its_books_at_once_and_is_reconciled_with_the_connections_of_its_terminal(
    airflow: AirflowStack, airflow_stack: LabAddresses, store_dsn: str
) -> None:
    def shop(*arguments: str) -> None:
        environment = os.environ | shop_environment(airflow_stack)
        subprocess.run([sys.executable, SHOP / "shop.py", *arguments], env=environment, check=True, timeout=60)

    def verdicts() -> list[tuple[int, str]]:
        return [(run.cut_n, str(run.verdict)) for run in list_runs(open_store(store_dsn), "shop_orders", limit=9)]

    shop("open")
    now = datetime.now(UTC)
    (contract,) = copy_contracts(SHOP, airflow.settings.contracts, without=(), now_utc=now).contracts
    have_contracts_read(airflow)
    dag_id = f"reconcile_{contract['contract']}"
    airflow.wait_dag(dag_id, deadline_seconds=PATIENCE_SECONDS)
    begun = airflow.wait_run_where(
        dag_id, lambda run: run["state"] == "success", what="the baseline", deadline_seconds=PATIENCE_SECONDS
    )
    assert begun["run_type"] == "scheduled"
    assert verdicts() == [(0, "INCONCLUSIVE")]

    shop("sell", "3")
    run_id = airflow.trigger(dag_id, interval=(now - timedelta(seconds=1), datetime.now(UTC)))
    assert airflow.wait_run(dag_id, run_id, deadline_seconds=PATIENCE_SECONDS) == "success"
    assert verdicts() == [(1, "MATCHED"), (0, "INCONCLUSIVE")]


def test_suites_of_ones_own_page_for_a_window_that_stays_matched_and_resolve_with_the_next_that_meets_them(
    airflow: AirflowStack, airflow_stack: LabAddresses, store_dsn: str, pager: Pager
) -> None:
    def shop(*arguments: str) -> None:
        environment = os.environ | shop_environment(airflow_stack)
        subprocess.run([sys.executable, SHOP / "shop.py", *arguments], env=environment, check=True, timeout=60)

    def told() -> list[tuple[str, str, str]]:
        mine = [page for page in pager.pages() if page["dedup_key"].startswith(f"tallystick/{name}/expectation")]
        return [(page["action"], page["dedup_key"].rsplit("/", 1)[1], page["severity"]) for page in mine]

    def reconciled(n: int) -> str:
        """The verdict of the next window."""
        nonlocal since
        run_id = airflow.trigger(dag_id, interval=(since, since := datetime.now(UTC)))
        assert airflow.wait_run(dag_id, run_id, deadline_seconds=PATIENCE_SECONDS) == "success"
        (run,) = [run for run in list_runs(open_store(store_dsn), name, limit=9) if run.cut_n == n]
        return str(run.verdict)

    name, since = "shop_expected", datetime.now(UTC)
    dag_id = f"reconcile_{name}"
    shop("open")
    document = yaml.safe_load((SHOP / "shop_orders.yaml").read_text())
    sinks = [{"kind": "webhook", "connection": "alert_webhook"}]
    publish(airflow, document | NEVER | {"contract": name, "expectations": "shop_suites", "alert": {"sinks": sinks}})
    airflow.wait_dag(dag_id, deadline_seconds=PATIENCE_SECONDS)
    assert reconciled(0) == "INCONCLUSIVE"
    assert told() == []

    shop("sell", "1")
    assert reconciled(1) == "MATCHED"
    assert told() == [("trigger", "expectation_not_met", "warning")]
    page = (airflow.settings.artifacts / "reports" / name / "1.html").read_text()
    assert "A window sells two orders." in page
    assert "<h1>MATCHED</h1>" in page

    shop("sell", "2")
    assert reconciled(2) == "MATCHED"
    assert told()[1:] == [("resolve", "expectation_not_met", "info")]
    assert "All of them were met." in (airflow.settings.artifacts / "reports" / name / "2.html").read_text()


def maps_of(airflow: AirflowStack, component: str) -> str:
    """The libraries that a component's own process has loaded."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if f"AIRFLOW_HOME={airflow.settings.home}".encode() in environment and component.encode() in command:
                return (folder / "maps").read_text()
        except OSError:
            continue  # it ended meanwhile
    raise AssertionError(f"no process of {component}")


def test_a_scheduler_has_imported_what_its_tasks_need_before_it_forks_them(airflow: AirflowStack) -> None:
    dag_id = "warm_probe"
    airflow.wait_dag(dag_id, deadline_seconds=PATIENCE_SECONDS)
    run_id = airflow.trigger(dag_id)
    assert airflow.wait_run(dag_id, run_id, deadline_seconds=PATIENCE_SECONDS) == "success"
    assert airflow.xcom(dag_id, run_id, "imported") == list(TASKS_NEED)
    of_spark_connect = "/grpc/_cython/cygrpc"
    assert of_spark_connect in maps_of(airflow, "scheduler")
    assert of_spark_connect not in maps_of(airflow, "triggerer"), "which forks no task"


def fates(execution: Execution) -> list[ActionResult]:
    return [outcome.fate for outcome in execution.outcomes]


def test_each_break_gets_one_run_with_the_plan_as_conf_whatever_outcome_was_lost(
    handed_over: HandedOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over.airflow.wait_dag(DAG_ID, deadline_seconds=PATIENCE_SECONDS)
    before = handed_over.confs()
    plan = handed_over.plan(700, 13)
    assert effects(handed_over, plan) == [RepairEffect.NOT_CLEARED] * 2
    lost = iter([True])

    def dies_once(*arguments: Any, **named: Any) -> None:
        if next(lost, False):
            raise RuntimeError("killed here")
        record_done(*arguments, **named)

    record_done = action_log.record_done
    monkeypatch.setattr(action_log, "record_done", dies_once)
    with pytest.raises(RuntimeError, match="killed here"):
        executed(handed_over, plan)
    assert fates(executed(handed_over, plan)) == [ActionResult.ALREADY_DONE, ActionResult.DONE]
    assert fates(executed(handed_over, plan)) == [ActionResult.ALREADY_DONE] * 2
    started = {run_id: conf for run_id, conf in handed_over.confs().items() if run_id not in before}
    assert started == {str(item.action_id): conf_of(plan, item) for item in plan.items}
    for conf in started.values():
        PlanDocument.model_validate_json(PlanDocument.model_validate(conf).model_dump_json())

    (fine, failing) = sorted(plan.items, key=lambda item: item.amount_minor, reverse=True)
    ended = {item.action_id: handed_over.airflow.wait_run(DAG_ID, str(item.action_id)) for item in (fine, failing)}
    assert list(ended.values()) == ["success", "failed"]
    found = dict(zip((item.action_id for item in plan.items), effects(handed_over, plan), strict=True))
    assert found == {fine.action_id: RepairEffect.HANDED_OVER, failing.action_id: RepairEffect.NOT_CLEARED}
    assert executed_actions(handed_over.store, handed_over.contract.name) == {}
    again = draw_plan(handed_over.store, handed_over.contract, handed_over.connections, cut_n=1)
    assert [one.reason for one in again.left_out] == ["another plan has it"] * 2


def test_a_run_of_that_id_with_another_conf_a_pause_and_a_lesser_account_are_refused(handed_over: HandedOver) -> None:
    handed_over.airflow.wait_dag(DAG_ID, deadline_seconds=PATIENCE_SECONDS)
    plan = handed_over.plan(800, 900)
    theirs, ours = plan.items
    handed_over.airflow.trigger(DAG_ID, run_id=str(theirs.action_id), conf={"items": "theirs"})
    with pytest.raises(AirflowRefused, match="answered 403"):
        executed(handed_over, plan, connections=handed_over.connections_of("viewer"))
    other_conf, not_allowed = action_states(handed_over, plan)
    assert (other_conf[0], not_allowed[0]) == ("waiting", "refused")
    assert "answered 403" in not_allowed[1]
    assert plan_trail(handed_over, plan)[-3:] == ["refused", "refused", "stopped"]
    handed_over.airflow.call("PATCH", f"/api/v2/dags/{DAG_ID}", json={"is_paused": True})
    try:
        outcomes = executed(handed_over, plan).outcomes
    finally:
        handed_over.airflow.call("PATCH", f"/api/v2/dags/{DAG_ID}", json={"is_paused": False})
    assert [outcome.fate for outcome in outcomes] == [ActionResult.REFUSED] * 2
    assert "with another conf" in outcomes[0].reason
    assert "is paused" in outcomes[1].reason
    assert str(ours.action_id) not in handed_over.confs()
    with open_airflow(handed_over.connections.airflow) as api:  # type: ignore[arg-type]
        assert api.start_once("nobodys", "run", {}).refused.startswith("Airflow has no DAG nobodys")


def test_no_run_is_asked_for_while_a_record_that_nobody_can_read_may_be_the_event(handed_over: HandedOver) -> None:
    handed_over.airflow.wait_dag(DAG_ID, deadline_seconds=PATIENCE_SECONDS)
    plan = handed_over.plan(500, 600)
    hidden, shown = plan.items
    producer = Producer({"bootstrap.servers": handed_over.bootstrap_servers})
    readable = {"event_id": "another", "payment_id": "pay-9", "leg": "payout", "amount_minor": 1, "currency": "EUR"}
    producer.produce(handed_over.contract.legs["payout"], key="another", value=json.dumps(readable))
    producer.produce(handed_over.contract.legs["payout"], key=hidden.match_key, value="{")
    assert producer.flush(PATIENCE_SECONDS) == 0
    refused, started = executed(handed_over, plan).outcomes
    assert [refused.fate, started.fate] == [ActionResult.REFUSED, ActionResult.DONE]
    assert refused.reason.startswith("not provable: a record of its message key in ")
    confs = handed_over.confs()
    assert (str(hidden.action_id) in confs, str(shown.action_id) in confs) == (False, True)


def repaired_contract() -> dict[str, Any]:
    """The example, in a namespace of its own; its windows are asked for by the test alone."""
    document: dict[str, Any] = yaml.safe_load((REPOSITORY / "dags" / "contracts" / "billing_payouts.yaml").read_text())
    return document | {
        "contract": REPAIRED,
        **NEVER,
        "legs": {"payout": NAMES.topic(Leg.PAYOUT)},
        "ledger": document["ledger"] | {"table": f"{NAMES.schema}.payout"},
        "alert": {"sinks": [{"kind": "file", "path": f"alerts/{REPAIRED}.jsonl"}]},
        "partner_grace_seconds": 0,
        "partner_grace_cap_seconds": 0,
    }


def pay(stack: LabStack, amount_minor: int, *, abort: bool = False) -> None:
    """Write an outbox row, and what the relay makes of it: an event, or an aborted one that it takes for sent."""
    payment = Payment(payment_id=uuid.uuid4(), amount_minor=amount_minor, currency="EUR", occurred_at=datetime.now(UTC))
    with psycopg.connect(stack.ledger_owner_dsn) as connection:
        event = Ledger(NAMES).add_payout(connection, payment).event
    relay = new_producer(
        stack.bootstrap_servers, DeliveryMode.EXACTLY_ONCE, client_id="relay", transactional_id=f"{NAMES.name}.relay"
    )
    relay.init_transactions()
    relay.begin_transaction()
    relay.produce(NAMES.topic(Leg.PAYOUT), key=event.message_key, value=event.to_value())
    relay.flush()
    if abort:
        relay.abort_transaction()
    else:
        relay.commit_transaction()


def reconcile(airflow: AirflowStack) -> str:
    """Have the next window judged; returns how the run ended."""
    now = datetime.now(UTC)
    run_id = airflow.trigger(RECONCILE_REPAIRED, interval=(now - timedelta(minutes=1), now))
    return airflow.wait_run(RECONCILE_REPAIRED, run_id, deadline_seconds=PATIENCE_SECONDS)


def test_an_operator_finds_a_break_has_it_repaired_and_sees_it_cleared(
    stack: LabStack, airflow: AirflowStack, log_in: LogIn
) -> None:
    prepare(stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=NAMES.name)
    publish(airflow, repaired_contract())
    for dag_id in (RECONCILE_REPAIRED, COMPENSATE_REPAIRED):
        airflow.wait_dag(dag_id, deadline_seconds=PATIENCE_SECONDS)
    assert reconcile(airflow) == "success"  # the baseline
    pay(stack, 4_200)
    pay(stack, 125_000, abort=True)
    assert reconcile(airflow) == "failed"  # the run of a broken window is red
    airflow.wait_parked(COMPENSATE_REPAIRED, "cut_1", deadline_seconds=PATIENCE_SECONDS)  # which it offered by itself

    # On call: overview, contract, run, break.
    operator = log_in("operator")
    operator.goto(f"{airflow.base_url}/plugin/tallystick")
    frame = inside(operator)
    expect(frame.get_by_role("article", name=REPAIRED).get_by_role("img", name="1 broken")).to_be_visible()
    frame.get_by_role("link", name=REPAIRED).click()
    expect(frame.get_by_role("heading", name="Open items")).to_be_visible()
    frame.get_by_role("link", name="cut 1", exact=True).click()
    frame.locator("#breaks").get_by_role("link", name="Missing in topic: aborted only").first.click()
    expect(frame.get_by_text("outstanding")).to_be_visible()
    strip = frame.get_by_role("region", name="The log around the break").get_by_role("img")
    expect(strip).to_be_visible()
    expect(strip.get_by_text("aborted")).to_be_visible()
    break_address = frame.locator("#evidence dd", has_text="/tallystick/break/").inner_text()
    shot(operator, "repair-1-break")

    # The plan is asked for by the page's own form.
    frame.get_by_role("button", name="Ask for a plan").click()
    expect(frame.get_by_role("status")).to_contain_text("A plan was asked for")
    asked = airflow.wait_run_where(
        COMPENSATE_REPAIRED,
        lambda run: run["triggering_user_name"] == "operator",
        what="the operator's run",
        deadline_seconds=PATIENCE_SECONDS,
    )
    airflow.wait_parked(COMPENSATE_REPAIRED, asked["dag_run_id"], deadline_seconds=PATIENCE_SECONDS)
    operator.goto(f"{airflow.base_url}/tallystick/contract/{REPAIRED}")
    expect(operator.locator("#plans").get_by_text("waits for an approval")).to_be_visible()
    assert serious_faults(operator) == []
    shot(operator, "repair-2-contract")

    # Another person follows the plan to Airflow's own page, and agrees there.
    approver = log_in("approver")
    approver.goto(f"{airflow.base_url}/dags/{RECONCILE_REPAIRED}")
    approver.get_by_role("link", name="Tallystick", exact=True).click()
    plans = inside(approver).locator("#plans")
    expect(plans.get_by_text("waits for an approval")).to_be_visible()
    plans.get_by_role("link", name="up to cut 1").click()
    shown = inside(approver)
    expect(shown.get_by_role("heading", name="Plan of 1,250.00 EUR")).to_be_visible()
    shot(approver, "repair-3-plan")
    shown.get_by_role("link", name="Approve or reject it in Airflow").click()
    approver.wait_for_url(lambda url: asked["dag_run_id"] in unquote(url))
    approve = approver.get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_visible()
    shot(approver, "repair-4-approve")
    approve.click()
    assert airflow.wait_run(COMPENSATE_REPAIRED, asked["dag_run_id"], deadline_seconds=PATIENCE_SECONDS) == "success"

    # The next window reads what was published, and the break's page tells its life.
    assert reconcile(airflow) == "success"
    operator.goto(break_address)
    expect(operator.locator(".verdict").get_by_text("cleared")).to_be_visible()
    life = operator.locator("#life li .kind").all_inner_texts()
    assert list(dict.fromkeys(life)) == ["seen", "proven", "sent", "planned", "acted", "cleared"]
    expect(operator.get_by_role("button", name="Ask for a plan")).to_have_count(0)
    assert serious_faults(operator) == []
    shot(operator, "repair-5-cleared")
    operator.locator("#life").get_by_role("link", name="The plan").first.click()
    expect(operator.locator(".verdict").get_by_text("carried out")).to_be_visible()
    expect(operator.locator("#intent tbody")).to_contain_text(f"of {NAMES.topic(Leg.PAYOUT)}[")
    shot(operator, "repair-6-plan-done")
