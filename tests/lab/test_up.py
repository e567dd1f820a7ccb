"""What `make up` schedules: all contracts, the lab's two with short windows, and nothing to catch up but baselines."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from croniter import croniter

from lab.demo import up
from lab.rounds.own_contracts import OwnContracts, copy_contracts
from lab.servers.airflow import AirflowStack
from lab.servers.airflow_environment import build_environment
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabAddresses
from tallystick.contract.contract import Contract, load_contracts

SHOP = REPOSITORY / "docs" / "examples" / "walk" / "shop_orders.yaml"

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DSN = "postgresql://somebody:s3cret@127.0.0.1:1/books"
ADDRESSES = LabAddresses(
    folder="",
    bootstrap_servers="lab:9092",
    proxied_bootstrap_servers="",
    ledger_owner_dsn=DSN,
    ledger_reader_dsn=DSN,
    ledger_admin_dsn=DSN,
    store_dsn=DSN,
    store_owner_dsn=DSN,
    airflow_dsn=DSN,
    proxy_control_port=1,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(up, "FOLDER", tmp_path)
    return tmp_path


def windows_due(contract: Contract, *, now_utc: datetime) -> int:
    """Count the windows between two ticks of the schedule, from the start date on, that have ended."""
    ticks = croniter(contract.schedule, contract.start_date - timedelta(seconds=1))
    ended = -1
    while ticks.get_next(datetime) <= now_utc:
        ended += 1
    return ended


@pytest.mark.parametrize("seconds", [0, 1, 59, 60, 61, 119, 120])
def test_one_window_of_each_contract_is_due(folder: Path, seconds: int) -> None:
    now_utc = NOON + timedelta(seconds=seconds)
    contracts = load_contracts(up._write_contracts(now_utc=now_utc))
    assert [windows_due(contract, now_utc=now_utc) for contract in contracts] == [1, 1]


def test_each_contract_keeps_all_but_its_schedule(folder: Path) -> None:
    contracts = load_contracts(up._write_contracts(now_utc=NOON))
    originals = load_contracts(up.REPOSITORY / "dags" / "contracts")
    changed = {"schedule", "start_date", "settle_timeout_seconds"}
    assert [each.model_dump(exclude=changed) for each in contracts] == [
        each.model_dump(exclude=changed) for each in originals
    ]


def beside_the_labs(tmp_path: Path, **files: str) -> Path:
    """A folder with the lab's two contracts, and files of these names."""
    source = tmp_path / "source"
    source.mkdir()
    for path in (REPOSITORY / "dags" / "contracts").glob("*.yaml"):
        (source / path.name).write_text(path.read_text())
    for name, text in files.items():
        (source / f"{name}.yaml").write_text(text)
    return source


def bring(tmp_path: Path, now_utc: datetime, **files: str) -> OwnContracts:
    """Copy what is not the lab's to `target`."""
    target = tmp_path / "target"
    target.mkdir()
    return copy_contracts(beside_the_labs(tmp_path, **files), target, without=up._SCHEDULES, now_utc=now_utc)


@pytest.mark.parametrize("minutes", [1, 30, 59])
def test_a_contract_of_ones_own_is_scheduled_too_and_has_one_window_to_catch_up(tmp_path: Path, minutes: int) -> None:
    now_utc = datetime(2026, 3, 1, 12, minutes, tzinfo=UTC)
    brought = bring(tmp_path, now_utc, mine=SHOP.read_text())
    (contract,) = load_contracts(tmp_path / "target")
    assert ([one["contract"] for one in brought.contracts], brought.faults) == (["shop_orders"], ())
    assert windows_due(contract, now_utc=now_utc) == 1
    (original,) = load_contracts(SHOP.parent)
    assert contract.model_dump(exclude={"start_date"}) == original.model_dump(exclude={"start_date"})


def test_a_start_that_is_still_to_come_is_kept(tmp_path: Path) -> None:
    text = SHOP.read_text().replace("2026-01-01T00:00:00Z", "2026-05-01T00:00:00Z")
    bring(tmp_path, NOON, mine=text)
    (contract,) = load_contracts(tmp_path / "target")
    assert contract.start_date == datetime(2026, 5, 1, tzinfo=UTC)


def test_a_contract_that_is_refused_is_told_and_shown_by_airflow_as_it_stands(tmp_path: Path) -> None:
    text = SHOP.read_text().replace("version: 1", "version: 0")
    brought = bring(tmp_path, NOON, mine=text, another=SHOP.read_text())
    assert [one["contract"] for one in brought.contracts] == ["shop_orders"]
    (fault,) = brought.faults
    assert fault.endswith("mine.yaml: version: got 0; expected 1 or more")
    assert (tmp_path / "target" / "mine.yaml").read_text() == text


def test_what_was_brought_reaches_airflow_and_what_is_missing_the_person(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = SHOP.read_text().replace("version: 1", "version: 0")
    monkeypatch.setattr(up, "CONTRACTS", beside_the_labs(folder, mine=SHOP.read_text(), broken=broken))
    monkeypatch.setattr(up, "SESSION_FILE", folder / "session.json")
    monkeypatch.setenv("TALLYSTICK_CONN_SHOP_KAFKA", '{"bootstrap.servers": "shop:9092"}')
    monkeypatch.delenv("TALLYSTICK_CONN_SHOP_LEDGER", raising=False)
    brought = up._bring(now_utc=NOON)
    settings = up._settings(brought, webhook="http://127.0.0.1:9")
    assert sorted(path.name for path in settings.contracts.iterdir()) == [
        "billing_payments.yaml", "billing_payouts.yaml", "broken.yaml", "mine.yaml"
    ]  # fmt: skip
    environment = build_environment(settings, ADDRESSES)
    assert json.loads(environment["AIRFLOW_CONN_SHOP_KAFKA"]) == {
        "conn_type": "kafka", "extra": {"bootstrap.servers": "shop:9092"}
    }  # fmt: skip
    assert "lab:9092" in environment["AIRFLOW_CONN_KAFKA_BILLING"]

    airflow = AirflowStack(base_url="http://airflow", passwords={}, settings=settings, environment=environment)
    up._write_session(airflow, brought, pages=folder / "pages.jsonl")
    told = up._describe(up._wait_for_session(None))
    assert "billing_payments, billing_payouts, shop_orders" in told
    refused = [line.removeprefix("Refused      ") for line in told.splitlines() if line.startswith("Refused")]
    assert refused[0].endswith("broken.yaml: version: got 0; expected 1 or more")
    assert refused[1:] == [
        "shop_orders, shop_ledger: expected the environment variable TALLYSTICK_CONN_SHOP_LEDGER "
        "or AIRFLOW_CONN_SHOP_LEDGER"
    ]
