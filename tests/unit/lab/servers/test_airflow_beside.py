"""Airflow starts in a thread of its own, and stops with the block that asked for it, whatever became of its start."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from lab.servers import airflow
from lab.servers.airflow import AirflowDidNotStart, start_airflow_beside

NOTHING: Any = None
PATIENCE_SECONDS = 30


def test_the_block_runs_while_airflow_starts_and_airflow_stops_when_the_block_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_start, seen = threading.Event(), []

    @contextmanager
    def slow(*_: object) -> Iterator[str]:
        assert may_start.wait(PATIENCE_SECONDS)
        yield "Airflow"
        seen.append("stopped")

    monkeypatch.setattr(airflow, "start_airflow", slow)
    with start_airflow_beside(NOTHING, NOTHING) as starting:
        assert not starting.done()
        may_start.set()
        assert cast(object, starting.result(PATIENCE_SECONDS)) == "Airflow"
        assert seen == []
    assert seen == ["stopped"]


def test_a_start_that_fails_is_raised_where_airflow_is_needed_and_the_block_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def failing(*_: object) -> Iterator[str]:
        raise AirflowDidNotStart("the scheduler ended with 1")
        yield

    monkeypatch.setattr(airflow, "start_airflow", failing)
    with start_airflow_beside(NOTHING, NOTHING) as starting, pytest.raises(AirflowDidNotStart, match="ended with 1"):
        starting.result(PATIENCE_SECONDS)
