"""`tallystick alert test`: a marked page to each sink, and what came back."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.contract.contract import Contract
from tests.alert_receiver import Receiver


def send(folder: Path, contract: Contract, sinks: list[dict[str, str]], *options: str) -> Result:
    path = folder / "billing.yaml"
    document: dict[str, Any] = contract.model_dump(mode="json") | {"alert": {"sinks": sinks}}
    path.write_text(yaml.safe_dump(document))
    return CliRunner().invoke(app, ["alert", "test", str(path), *options])


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch, receiver: Receiver, tmp_path: Path) -> None:
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", str(tmp_path))
    monkeypatch.setenv("TALLYSTICK_CONN_PAGER", json.dumps({"address": receiver.base, "secret": "r0uting-s3cret"}))
    monkeypatch.setenv("TALLYSTICK_CONN_NOWHERE", "no-address-at-all-s3cret")
    monkeypatch.delenv("TALLYSTICK_STORE_DSN", raising=False)


PAGER = {"kind": "pagerduty", "connection": "pager"}


def test_each_sink_gets_a_marked_page_and_says_what_came_back(
    tmp_path: Path, contract: Contract, receiver: Receiver
) -> None:
    done = send(tmp_path, contract, [PAGER, {"kind": "file", "path": "pages.jsonl"}])
    assert done.exit_code == 0, done.output
    (event,) = receiver.taken
    assert event["dedup_key"] == "tallystick/billing_payouts/test"
    assert event["payload"]["summary"].startswith("TEST of billing_payouts at ")
    assert json.loads((tmp_path / "pages.jsonl").read_text())["details"]["test"] is True
    assert "pagerduty:pager: taken: 200" in done.output
    assert "s3cret" not in done.output


def test_a_sink_that_does_not_take_it_ends_with_2_and_the_others_are_told(
    tmp_path: Path, contract: Contract, receiver: Receiver
) -> None:
    done = send(tmp_path, contract, [{"kind": "webhook", "connection": "nowhere"}, PAGER], "--json")
    assert done.exit_code == 2
    nowhere, pager = json.loads(done.stdout)
    assert (nowhere["sink"], nowhere["delivered"]) == ("webhook:nowhere", False)
    assert (pager["delivered"], len(receiver.taken)) == (True, 1)
    assert "s3cret" not in done.output


def test_a_sink_that_refuses_is_said_to_have_not_taken_it(
    tmp_path: Path, contract: Contract, receiver: Receiver
) -> None:
    receiver.answer = 401
    done = send(tmp_path, contract, [PAGER])
    assert (done.exit_code, "pagerduty:pager: NOT taken: the receiver answered 401" in done.output) == (2, True)


def test_a_contract_that_tells_nobody_is_refused(tmp_path: Path, contract: Contract) -> None:
    done = send(tmp_path, contract, [])
    assert done.exit_code == 2
    assert "expected a sink under alert.sinks" in done.stderr


def test_two_tests_are_two_messages_of_one_incident(tmp_path: Path, contract: Contract, receiver: Receiver) -> None:
    from datetime import UTC, datetime

    from tallystick.alerting.sample_alert import page_of_test

    with_sink = contract.model_validate(contract.model_dump(mode="json") | {"alert": {"sinks": [PAGER]}})
    first, second = (page_of_test(with_sink, now_utc=datetime(2026, 3, day, tzinfo=UTC)) for day in (1, 2))
    assert first.dedup_key == second.dedup_key
    assert first.delivery_key != second.delivery_key
