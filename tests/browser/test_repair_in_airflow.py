"""From the first look to the cleared break, as an operator: real books, a real scheduler, Airflow's own approval.

A relay aborts the transaction of one payout. Who is on call finds it, asks for a plan; another person agrees; the next
window reads the event that was published for it.
"""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg
import pytest
import yaml
from playwright.sync_api import Browser, expect

from lab.rounds.delivery_mode_round import prepare
from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.postgres import STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack, start_stack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg, Payment
from lab.services.kafka_clients import new_producer
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace
from tallystick.store.engine import connect_store, migrate

from .visiting import LogIn, inside, serious_faults, shot, visits

pytestmark = pytest.mark.timeout(1800)

NAMES = Namespace("repaired")
CONTRACT = "repaired_payouts"
RECONCILE, COMPENSATE = f"reconcile_{CONTRACT}", f"compensate_{CONTRACT}"
PATIENCE_SECONDS = 300
"""For each step; a machine under load takes minutes to start Airflow."""


@pytest.fixture(scope="module")
def stack(build_folder: Path) -> Iterator[LabStack]:
    with start_stack(build_folder / "stack") as stack:
        migrate(connect_store(stack.store_owner_dsn), grant_to=STORE_ROLE)
        prepare(stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=NAMES.name)
        yield stack


@pytest.fixture(scope="module")
def working_airflow(stack: LabStack, build_folder: Path) -> Iterator[AirflowStack]:
    """With its scheduler and triggerer, and one contract that allows repairs."""
    folder = build_folder / "working-airflow"
    home, contracts = folder / "home", folder / "contracts"
    for made in (home, contracts):
        made.mkdir(parents=True)
    (contracts / f"{CONTRACT}.yaml").write_text(yaml.safe_dump(contract()))
    settings = AirflowSettings(home=home, contracts=contracts, artifacts=folder / "artifacts")
    with start_airflow(settings, stack, deadline_seconds=PATIENCE_SECONDS) as airflow:
        yield airflow


@pytest.fixture
def log_in(browser: Browser, working_airflow: AirflowStack) -> Iterator[LogIn]:
    with visits(browser, working_airflow) as log_in:
        yield log_in


def contract() -> dict[str, Any]:
    """The example, in a namespace of its own; its windows are asked for by the test alone."""
    document: dict[str, Any] = yaml.safe_load((REPOSITORY / "dags" / "contracts" / "billing_payouts.yaml").read_text())
    return document | {
        "contract": CONTRACT,
        "schedule": "0 0 29 2 *",
        "start_date": datetime.now(UTC).replace(microsecond=0) - timedelta(days=1),
        "legs": {"payout": NAMES.topic(Leg.PAYOUT)},
        "ledger": document["ledger"] | {"table": f"{NAMES.schema}.payout"},
        "alert": {"sinks": [{"kind": "file", "path": f"alerts/{CONTRACT}.jsonl"}]},
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
    run_id = airflow.trigger(RECONCILE, interval=(now - timedelta(minutes=1), now))
    return airflow.wait_run(RECONCILE, run_id, deadline_seconds=PATIENCE_SECONDS)


def test_an_operator_finds_a_break_has_it_repaired_and_sees_it_cleared(
    stack: LabStack, working_airflow: AirflowStack, log_in: LogIn
) -> None:
    airflow = working_airflow
    for dag_id in (RECONCILE, COMPENSATE):
        airflow.wait_dag(dag_id, deadline_seconds=PATIENCE_SECONDS)
    assert reconcile(airflow) == "success"  # the baseline
    pay(stack, 4_200)
    pay(stack, 125_000, abort=True)
    assert reconcile(airflow) == "failed"  # the run of a broken window is red
    airflow.wait_parked(COMPENSATE, "cut_1", deadline_seconds=PATIENCE_SECONDS)  # which it offered by itself

    # On call: overview, contract, run, break.
    operator = log_in("operator")
    operator.goto(f"{airflow.base_url}/plugin/tallystick")
    frame = inside(operator)
    expect(frame.get_by_text("1 broken item in 1 contract of 1")).to_be_visible()
    frame.get_by_role("link", name=CONTRACT).click()
    frame.get_by_role("link", name="cut 1").click()
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
        COMPENSATE,
        lambda run: run["triggering_user_name"] == "operator",
        what="the operator's run",
        deadline_seconds=PATIENCE_SECONDS,
    )
    airflow.wait_parked(COMPENSATE, asked["dag_run_id"], deadline_seconds=PATIENCE_SECONDS)
    operator.goto(f"{airflow.base_url}/tallystick/contract/{CONTRACT}")
    expect(operator.locator("#plans").get_by_text("waits for an approval")).to_be_visible()
    assert serious_faults(operator) == []
    shot(operator, "repair-2-contract")

    # Another person follows the plan to Airflow's own page, and agrees there.
    approver = log_in("approver")
    approver.goto(f"{airflow.base_url}/dags/{RECONCILE}")
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
    assert airflow.wait_run(COMPENSATE, asked["dag_run_id"], deadline_seconds=PATIENCE_SECONDS) == "success"

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
