"""A real scheduler finds that a hanging run has stored no verdict by its deadline, and pages; the verdict ends that."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.airflow import AirflowStack, start_airflow
from lab.airflow_environment import SPARK_POOL, AirflowSettings
from lab.mode import DeliveryMode
from lab.pager import Pager, start_pager
from lab.process import REPOSITORY, wait_until
from lab.rounds import prepare
from lab.stack import LabStack
from tallystick.store.engine import connect_store, migrate

pytestmark = pytest.mark.stack

NAMESPACE = "deadline"
OVERDUE = "tallystick/deadline_payouts/verdict_overdue"


@pytest.fixture
def pager(lab_folder: Path) -> Iterator[Pager]:
    with start_pager(lab_folder / "pages.jsonl") as pager:
        yield pager


@pytest.fixture
def airflow(lab_stack: LabStack, lab_folder: Path, pager: Pager) -> Iterator[AirflowStack]:
    """One contract whose runs hang: Spark's pool has no slot."""
    prepare(lab_stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=NAMESPACE)
    migrate(connect_store(lab_stack.store_dsn))
    home, contracts = lab_folder / "airflow", lab_folder / "contracts"
    for folder in (home, contracts):
        folder.mkdir()
    (contracts / "payouts.yaml").write_text(yaml.safe_dump(contract()))
    settings = AirflowSettings(
        home=home, contracts=contracts, artifacts=lab_folder / "artifacts", webhook=pager.address
    )
    with start_airflow(settings, lab_stack) as airflow:
        give_slots(airflow, 0)
        yield airflow


def contract() -> dict[str, Any]:
    """The example, in a namespace of its own, never fired by its schedule, with a verdict due at once."""
    document: dict[str, Any] = yaml.safe_load((REPOSITORY / "dags" / "contracts" / "billing_payouts.yaml").read_text())
    document.pop("compensation", None)
    return document | {
        "contract": "deadline_payouts",
        "schedule": "0 0 29 2 *",
        "start_date": datetime.now(UTC).replace(microsecond=0) - timedelta(days=1),
        "legs": {leg: topic.replace("billing.", f"{NAMESPACE}.") for leg, topic in document["legs"].items()},
        "ledger": document["ledger"] | {"table": document["ledger"]["table"].replace("billing.", f"{NAMESPACE}.")},
        "settle_timeout_seconds": 0,
        "verdict_within_seconds": 1,
    }


def give_slots(airflow: AirflowStack, slots: int) -> None:
    body = {"pool": SPARK_POOL, "slots": slots, "description": "", "include_deferred": False}
    airflow.call("PATCH", f"/api/v2/pools/{SPARK_POOL}", json=body)


def test_a_hanging_run_pages_at_its_deadline_and_its_verdict_resolves_that(airflow: AirflowStack, pager: Pager) -> None:
    dag_id = "reconcile_deadline_payouts"
    airflow.wait_dag(dag_id)
    now = datetime.now(UTC)
    run_id = airflow.trigger(dag_id, interval=(now - timedelta(minutes=1), now))

    def heard() -> list[tuple[str, str]]:
        return [(page["action"], page["dedup_key"]) for page in pager.pages()]

    wait_until(lambda: bool(heard()), what="the page of the missed deadline", deadline_seconds=90)
    assert airflow.run(dag_id, run_id)["state"] in ("queued", "running")
    assert heard() == [("trigger", OVERDUE)]
    assert pager.pages()[0]["details"]["scheduler_run_id"] == run_id

    give_slots(airflow, 1)
    assert airflow.wait_run(dag_id, run_id) == "success"
    assert heard() == [("trigger", OVERDUE), ("resolve", OVERDUE)]
