"""A contract whose missing events are handed to a DAG of somebody's own, in a real Airflow."""

import uuid
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic
from sqlalchemy import Engine

from lab.servers.airflow import AirflowStack
from lab.servers.stack import LabStack
from lab.services.kafka_clients import new_admin
from tallystick.compensation.plan import Plan
from tallystick.connections.connections import Connections, HttpAccount, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.verdict import Verdict

from .repairs import planned

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
"""Repairs what it is given, but for 13 minor units."""


@dataclass(frozen=True)
class HandedOver:
    """A contract whose missing events are handed to that DAG, and a store whose last run found some."""

    airflow: AirflowStack
    store: Engine
    contract: Contract
    runs: Any
    bootstrap_servers: str

    @property
    def connections(self) -> Connections:
        return self.connections_of("approver")

    def connections_of(self, user: str) -> Connections:
        account = HttpAccount(address=self.airflow.base_url, login=user, secret=self.airflow.passwords[user])
        return Connections(KafkaSettings({"bootstrap.servers": self.bootstrap_servers}), ledger_dsn="", airflow=account)

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
def handed_over(airflow: AirflowStack, stack: LabStack, store: Engine, books: Any) -> HandedOver:
    name = f"handed_over_{uuid.uuid4().hex[:8]}"
    admin = new_admin(stack.bootstrap_servers)
    admin.create_topics([NewTopic(name, num_partitions=1)])[name].result(30)
    missing = "missing_in_topic_never_produced"
    rules = {
        "trigger": {"connection": "airflow", "dags": {missing: DAG_ID}},
        "max_amount_minor": {"EUR": 100_000},
        "four_eyes_above_minor": {"EUR": 100_000},
    }
    document = books.contract.model_dump(mode="json", exclude_defaults=True) | {
        "contract": name,
        "legs": {"payout": name},
        "compensation": rules,
    }
    document["ledger"]["where"] = "leg LIKE 'p%'"
    contract = Contract.model_validate(document)
    with open_admin(KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})) as reader:
        (topic_id,) = {part.topic_id for part in read_topic_snapshot(reader, [name])}
    runs = replace(books, contract=contract, topic_id=topic_id)
    return HandedOver(airflow, store, contract, runs, stack.bootstrap_servers)
