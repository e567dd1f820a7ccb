"""Settling waits in the triggerer, not before, and never fails a run because a side is held."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.triggers.base import TriggerEvent

from tallystick.contract.contract import load_contract
from tallystick.pipeline import sources
from tallystick.pipeline.readiness import Readiness
from tallystick.store import clock
from tallystick_airflow.run_window import WindowMissing
from tallystick_airflow.sensors import settle_sensor, settle_trigger
from tallystick_airflow.sensors.settle_sensor import SettleSensor
from tallystick_airflow.sensors.settle_trigger import SettleTrigger, pause_seconds

CONTRACT_FILE = Path(__file__).parents[2] / "dags" / "contracts" / "billing_payouts.yaml"
ELEVEN = datetime(2026, 3, 1, 11, tzinfo=UTC)
NINE_YEARS_ON = datetime(2035, 3, 1, 11, tzinfo=UTC)
"""What the verdict store's clock says: nobody here goes by the host's."""
SETTLED = Readiness(settled=True, waits_for=())
HELD = Readiness(settled=False, waits_for=("ledger: the horizon stands at 5, the mark is 9",))
WINDOW: Any = {"run_id": "r", "data_interval_start": ELEVEN - timedelta(hours=1), "data_interval_end": ELEVEN}


class Engine:
    """A verdict store that nobody asks."""

    def dispose(self) -> None:
        """Close nothing."""


@contextmanager
def no_store(_: str) -> Iterator[Engine]:
    yield Engine()


def looks(*readiness: Readiness) -> Callable[..., Readiness]:
    """Answer one look after the other; the last answer stays."""
    answers = list(readiness)
    return lambda *_, **__: answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def sensor(monkeypatch: pytest.MonkeyPatch) -> SettleSensor:
    monkeypatch.setattr(settle_sensor, "open_verdict_store", no_store)
    monkeypatch.setattr(clock, "store_now", lambda _: NINE_YEARS_ON)
    return SettleSensor(task_id="settle", contract_file=str(CONTRACT_FILE))


def trigger(monkeypatch: pytest.MonkeyPatch, *readiness: Readiness, give_up_utc: datetime) -> SettleTrigger:
    monkeypatch.setattr(settle_trigger, "observe", looks(*readiness))
    monkeypatch.setattr(settle_trigger, "open_store", lambda _: Engine())
    times = (NINE_YEARS_ON + number * timedelta(seconds=1) for number in count())
    monkeypatch.setattr(settle_trigger, "store_now", lambda _: next(times))
    return SettleTrigger(
        contract_json=load_contract(CONTRACT_FILE).model_dump_json(),
        window_end_utc=ELEVEN.isoformat(),
        give_up_utc=give_up_utc.isoformat(),
        poll_seconds=0.01,
    )


def events(waiting: SettleTrigger) -> list[TriggerEvent]:
    async def collect() -> list[TriggerEvent]:
        return [event async for event in waiting.run()]

    return asyncio.run(collect())


def test_a_settled_window_does_not_defer(sensor: SettleSensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "observe", looks(SETTLED))
    assert sensor.execute(WINDOW) == {"settled": True, "waits_for": []}


def test_a_held_window_is_handed_to_the_triggerer(sensor: SettleSensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "observe", looks(HELD))
    with pytest.raises(TaskDeferred) as deferral:
        sensor.execute(WINDOW)
    path, arguments = deferral.value.trigger.serialize()
    assert (path, deferral.value.method_name) == ("tallystick_airflow.sensors.settle_trigger.SettleTrigger", "resume")
    assert not [secret for secret in ("broker-secret", "led/ger", "store-secret") if secret in str(arguments)]
    assert arguments["poll_seconds"] == settle_sensor.POLL_SECONDS
    # Long past, so the wait is counted from the first look: a late run waits as long as any other.
    assert datetime.fromisoformat(arguments["give_up_utc"]) - NINE_YEARS_ON == timedelta(seconds=600)


def test_a_run_that_could_not_settle_goes_on_and_says_for_what_it_waited(sensor: SettleSensor) -> None:
    event = {"settled": False, "waits_for": list(HELD.waits_for)}
    assert sensor.resume(WINDOW, event) == event


@pytest.mark.parametrize(
    "interval",
    [
        {},  # triggered without a logical date
        {"data_interval_start": ELEVEN, "data_interval_end": ELEVEN},  # what a bare cron string would give
    ],
)
def test_a_run_without_a_window_is_refused(sensor: SettleSensor, interval: dict[str, datetime]) -> None:
    with pytest.raises(WindowMissing, match="expected start < end"):
        sensor.execute({"run_id": "r", **interval})


def test_the_trigger_waits_until_both_sides_have_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = trigger(monkeypatch, HELD, HELD, SETTLED, give_up_utc=NINE_YEARS_ON + timedelta(hours=1))
    assert [event.payload for event in events(waiting)] == [{"settled": True, "waits_for": []}]


def test_the_trigger_gives_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = trigger(monkeypatch, HELD, give_up_utc=NINE_YEARS_ON + timedelta(seconds=3))
    assert [event.payload for event in events(waiting)] == [{"settled": False, "waits_for": list(HELD.waits_for)}]


def test_the_trigger_is_the_same_after_serialization(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = trigger(monkeypatch, SETTLED, give_up_utc=ELEVEN)
    path, arguments = waiting.serialize()
    assert path == f"{SettleTrigger.__module__}.{SettleTrigger.__qualname__}"
    assert SettleTrigger(**arguments).serialize() == (path, arguments)


@pytest.mark.parametrize(("looks", "seconds"), [(1, 1.0), (10, 1.0), (11, 5.0), (500, 5.0)])
def test_the_trigger_looks_every_second_for_ten_seconds_and_then_every_five(looks: int, seconds: float) -> None:
    assert pause_seconds(looks, settle_sensor.POLL_SECONDS) == seconds


@pytest.fixture
def here(sensor: SettleSensor, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A sensor that keeps its slot; the seconds that it has slept, which the store's clock has seen too."""
    slept: list[float] = []
    sensor.deferrable = False
    monkeypatch.setattr(settle_sensor.time, "sleep", slept.append)
    monkeypatch.setattr(clock, "store_now", lambda _: NINE_YEARS_ON + timedelta(seconds=sum(slept)))
    return slept


def test_a_held_window_is_waited_for_in_the_workers_slot_where_that_is_asked(
    sensor: SettleSensor, here: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "observe", looks(HELD, HELD, SETTLED))
    assert sensor.execute(WINDOW) == {"settled": True, "waits_for": []}
    assert here == [1.0, 1.0]


def test_a_wait_in_the_slot_ends_with_the_contracts_time(
    sensor: SettleSensor, here: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "observe", looks(HELD))
    assert sensor.execute(WINDOW) == {"settled": False, "waits_for": list(HELD.waits_for)}
    assert (sum(here), here[-1]) == (600, 5.0)
