"""What `make up` schedules: the two contracts, with short windows, and nothing to catch up but a baseline each."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from croniter import croniter

from lab import up
from tallystick.contract import Contract, load_contracts

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
