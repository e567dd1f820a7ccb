"""The config check of real topics on a real broker, as the command line asks for it."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from lab.servers.stack import LabStack
from tallystick.cli.app import app
from tallystick.contract.contract import Contract


@pytest.fixture
def topic(stack: LabStack) -> str:
    """A topic of one replica that compacts, with one plain record."""
    name = f"posture-{uuid4().hex[:10]}"
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1, config={"cleanup.policy": "compact,delete"})])[name].result(30)
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers, "enable.metrics.push": False})
    producer.produce(name, value=b"{}", key=b"k", partition=0)
    assert producer.flush(30) == 0
    return name


@pytest.fixture
def posture(
    stack: LabStack, new_contract: Callable[..., Contract], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """`tallystick check-config` of a contract over this topic."""

    def run(topic: str) -> Result:
        contract = new_contract(
            legs={"payout": topic}, kafka={"connection": "posture_kafka", "producers": "transactional"}
        )
        path = tmp_path / "posture.yaml"
        path.write_text(yaml.safe_dump(contract.model_dump(mode="json")))
        settings = json.dumps({"bootstrap.servers": stack.bootstrap_servers})
        monkeypatch.setenv("TALLYSTICK_CONN_POSTURE_KAFKA", settings)
        monkeypatch.setenv("TALLYSTICK_CONN_LEDGER_BILLING", stack.ledger_reader_dsn)
        return CliRunner().invoke(app, ["check-config", str(path), "--json"])

    return run


def test_a_single_broker_is_at_risk_by_name_and_nothing_is_unknown(posture: Callable[..., Result], topic: str) -> None:
    result = posture(topic)
    assert result.exit_code == 1, result.output
    standings = {line["setting"]: line["standing"] for line in json.loads(result.stdout)}
    assert "unknown" not in standings.values()
    at_risk = {setting for setting, standing in standings.items() if standing == "at risk"}
    assert at_risk >= {
        "replication factor",
        "min.insync.replicas",
        "cleanup.policy",
        "records without a producer id",
        "records outside a transaction",
    }
    assert standings["unclean.leader.election.enable"] == "ok"
    assert (standings["security.protocol"], standings["sslmode"]) == ("ok", "ok")  # in clear text, on this machine


def test_a_topic_that_is_not_there_is_refused_by_name(posture: Callable[..., Result]) -> None:
    result = posture("posture-nowhere")
    assert result.exit_code == 2
    assert "posture-nowhere" in result.stderr
