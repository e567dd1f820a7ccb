"""The edge to OpenTelemetry and Prometheus: nothing is lost on the way, and what failed looks like no answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.exc import OperationalError

from tallystick.connections.connections import ConnectionNotGiven
from tallystick.metrics import export
from tallystick.metrics.definitions import metric_values
from tallystick.metrics.export import MetricsEmpty, exposition, metrics_app, push
from tallystick.model.open_item import ItemState
from tests.unit.metrics.figures import BOOKS, NOON, standing

NO_ENGINE: Any = None
"""Where what is read is given."""


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give the books that are read, or what reading them raises."""

    def give(*found: Any) -> None:
        def read(_: Any) -> Any:
            if found and isinstance(found[0], Exception):
                raise found[0]
            return found

        monkeypatch.setattr(export, "read_figures", read)

    return give


def get(path: str = "/metrics", **headers: str) -> tuple[str, dict[str, str], str]:
    """What a scraper is answered."""
    answer: list[Any] = []
    environ = {"PATH_INFO": path, "REQUEST_METHOD": "GET", "QUERY_STRING": "", **headers}
    body = b"".join(metrics_app(NO_ENGINE, lambda: NOON)(environ, lambda *told: answer.extend(told)))
    return answer[0], dict(answer[1]), body.decode()


def test_every_series_arrives_with_its_value_whole(books: Any) -> None:
    many = [replace(BOOKS, contract=f"contract_{n}") for n in range(2_500)]
    books(*many)
    text = exposition(NO_ENGINE, now_utc=NOON)
    found = {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }
    expected = metric_values(many, now_utc=NOON)
    assert len(found) == sum(len(one.values) for one in expected)
    assert sorted(found.values()) == sorted(value for one in expected for _, value in one.values)


def test_money_is_exact_up_to_what_prometheus_can_hold(books: Any) -> None:
    largest = 2**53 - 1
    books(replace(BOOKS, standing=(standing(ItemState.BROKEN, largest),)))
    samples = [
        one.value
        for family in text_string_to_metric_families(exposition(NO_ENGINE, now_utc=NOON))
        for one in family.samples
        if one.name == "tallystick_money_at_risk_minor_units"
    ]
    assert [int(value) for value in samples] == [largest]


def test_a_series_that_is_over_is_gone_from_the_next_answer(books: Any) -> None:
    books(BOOKS)
    assert 'currency="EUR"' in get()[2]
    books(replace(BOOKS, standing=()))
    assert 'currency="EUR"' not in get()[2]


def test_a_store_that_does_not_answer_fails_the_scrape_and_says_no_address(books: Any) -> None:
    books(OperationalError("select", {}, Exception("postgresql://tally:hunter2@db/tally is gone")))
    status, _, body = get()
    assert (status, body) == ("503 Service Unavailable", "the verdict store does not answer\n")


def test_only_metrics_are_served(books: Any) -> None:
    books(BOOKS)
    assert get("/")[0] == "404 Not Found"
    assert get()[0] == "200 OK"


def test_openmetrics_is_spoken_to_who_asks_for_it(books: Any) -> None:
    books(BOOKS)
    plain, newer = get(), get(HTTP_ACCEPT="application/openmetrics-text; version=1.0.0")
    assert plain[1]["Content-Type"].startswith("text/plain")
    assert newer[1]["Content-Type"].startswith("application/openmetrics-text")
    assert newer[2].endswith("# EOF\n")


def test_a_sdk_that_is_switched_off_is_no_empty_answer(books: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    books(BOOKS)
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(MetricsEmpty, match="OTEL_SDK_DISABLED"):
        exposition(NO_ENGINE, now_utc=NOON)
    assert get()[0] == "503 Service Unavailable"
    with pytest.raises(MetricsEmpty):
        push(NO_ENGINE, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, now_utc=NOON)


def test_a_receiver_that_nobody_named_is_asked_for() -> None:
    with pytest.raises(ConnectionNotGiven, match=r"expected OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:4318"):
        push(NO_ENGINE, {}, now_utc=datetime.now(UTC))
