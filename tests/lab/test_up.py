"""What `make up` schedules: all contracts, the lab's two with short windows, and nothing to catch up but baselines."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from croniter import croniter

from lab import up
from lab.own_contracts import OwnContracts, copy_contracts
from lab.process import REPOSITORY
from tallystick.contract import Contract, load_contracts

SHOP = REPOSITORY / "docs" / "examples" / "walk" / "shop_orders.yaml"

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


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


def bring(tmp_path: Path, now_utc: datetime, **files: str) -> OwnContracts:
    """Copy files of these names, beside the lab's two contracts, to `target`."""
    source, target = tmp_path / "source", tmp_path / "target"
    for folder in (source, target):
        folder.mkdir()
    for path in (REPOSITORY / "dags" / "contracts").glob("*.yaml"):
        (source / path.name).write_text(path.read_text())
    for name, text in files.items():
        (source / f"{name}.yaml").write_text(text)
    return copy_contracts(source, target, without=up._SCHEDULES, now_utc=now_utc)


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
