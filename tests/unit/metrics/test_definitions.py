"""What the metrics say of literal books; and that no text of an event becomes a label."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tallystick.metrics.definitions import METRICS, metric_values
from tallystick.model.metric_figures import ContractFigures
from tallystick.model.open_item import BUCKETS, ItemState
from tallystick.model.verdict import Verdict
from tests.unit.metrics.figures import BOOKS, HOUR, JUDGED, NOON, standing


def said(*books: ContractFigures) -> dict[str, list[tuple[dict[str, str], Any]]]:
    """Metric to its series, without the contract's label."""
    found = metric_values(books, now_utc=NOON)
    return {
        one.metric.name.removeprefix("tallystick."): [
            ({label: text for label, text in labels.items() if label != "contract"}, value)
            for labels, value in one.values
        ]
        for one in found
    }


def of(**changes: Any) -> dict[str, list[tuple[dict[str, str], Any]]]:
    return said(replace(BOOKS, **changes))


def test_each_figure_of_the_books_is_said_with_its_unit() -> None:
    assert said(BOOKS) == {
        "contracts": [({}, 1)],
        "verdict": [({"verdict": "MATCHED"}, 0), ({"verdict": "INCONCLUSIVE"}, 0), ({"verdict": "BROKEN"}, 1)],
        "verdict.overdue": [({}, 0)],
        "cursor.lag": [({}, 3_600)],
        "lso.age": [({}, 3 * 3_600)],
        "horizon.age": [({}, 3_600)],
        "retention.headroom": [({}, 5 * 3_600)],
        "run.duration": [({}, 42.5)],
        "money_at_risk.minor_units": [({"currency": "EUR"}, 1_250)],
        "money_waiting.minor_units": [({"currency": "JPY"}, 99)],
        "open_items": [
            ({"class": "missing_in_ledger", "age": "under_1h"}, 1),
            ({"class": "waiting", "age": "under_1h"}, 1),
        ],
        "alerts.owed": [({"sink": "file:a"}, 2)],
        "alert.delivery.failures": [({"sink": "file:a"}, 3)],
    }


def test_a_store_without_books_says_that_it_has_none() -> None:
    assert {name: found for name, found in said().items() if found} == {"contracts": [({}, 0)]}


def test_books_without_a_verdict_are_overdue_and_show_none() -> None:
    found = of(judged=None, due_utc=NOON - HOUR, standing=(), sinks=())
    assert {name: series for name, series in found.items() if series} == {
        "contracts": [({}, 1)],
        "verdict": [({"verdict": str(verdict)}, 0) for verdict in Verdict],
        "verdict.overdue": [({}, 3_600)],
    }


def test_a_verdict_is_overdue_from_the_moment_on_that_it_is_due() -> None:
    for late, seconds in ((-HOUR, 0), (timedelta(), 0), (timedelta(seconds=1), 1)):
        assert of(due_utc=NOON - late)["verdict.overdue"] == [({}, seconds)]


def test_retention_that_has_passed_is_below_zero_and_none_is_no_series() -> None:
    assert of(judged=replace(JUDGED, expires_utc=NOON - HOUR))["retention.headroom"] == [({}, -3_600)]
    assert of(judged=replace(JUDGED, expires_utc=None))["retention.headroom"] == []


def test_money_is_summed_per_currency_and_never_across() -> None:
    found = of(standing=tuple(standing(ItemState.BROKEN, *one) for one in ((1, "JPY"), (2, "EUR"), (3, "JPY"))))
    assert found["money_at_risk.minor_units"] == [({"currency": "EUR"}, 2), ({"currency": "JPY"}, 4)]


def test_money_is_that_of_each_copy_and_of_each_contract_as_its_text_says() -> None:
    mismatch = replace(BOOKS, standing=(standing(ItemState.BROKEN, 90),))  # of an event of 100: at stake are 10
    twin = replace(mismatch, contract=f"{mismatch.contract}_too")
    assert said(mismatch, twin)["money_at_risk.minor_units"] == [({"currency": "EUR"}, 90)] * 2
    texts = [metric.says for metric in METRICS if "money" in metric.name]
    assert [text.startswith("Amounts of the copies") for text in texts] == [True, True]


def test_a_currency_that_is_none_is_no_label() -> None:
    """A topic's text must not make a series."""
    odd = ("", "eur", "X" * 500, "pay-4711")
    found = of(standing=tuple(standing(ItemState.BROKEN, 5, currency) for currency in odd))
    assert found["money_at_risk.minor_units"] == [({"currency": "other"}, 15)]
    assert found["open_items"] == [({"class": "missing_in_ledger", "age": "under_1h"}, 4)]


def test_an_item_is_in_the_bucket_of_its_age_half_open_as_in_the_report() -> None:
    labels = ["under_1h", "1h_to_1d", "1d_to_7d", "over_7d"]
    for label, following, (_, end) in zip(labels, labels[1:], BUCKETS, strict=False):
        for age, expected in ((end - timedelta(seconds=1), label), (end, following)):
            found = of(standing=(standing(ItemState.OPEN, 1, age=age, count=7),))["open_items"]
            assert found == [({"class": "waiting", "age": expected}, 7)]


def test_what_is_over_is_neither_open_nor_at_risk() -> None:
    over = (ItemState.CLEARED, ItemState.WRITTEN_OFF, ItemState.UNDECIDABLE)
    found = of(standing=tuple(standing(state, 100) for state in over))
    assert [found[name] for name in ("open_items", "money_at_risk.minor_units", "money_waiting.minor_units")] == [
        []
    ] * 3


def test_every_series_names_its_contract_and_contracts_do_not_meet() -> None:
    found = metric_values((BOOKS, replace(BOOKS, contract="fees")), now_utc=NOON)
    for one in found[1:]:
        assert {labels["contract"] for labels, _ in one.values} == {"payouts", "fees"}
        assert len({tuple(sorted(labels.items())) for labels, _ in one.values}) == len(one.values)


def test_names_units_and_help_keep_the_conventions() -> None:
    for metric in METRICS:
        assert metric.name.startswith("tallystick.")
        assert metric.unit in ("s", "")
        assert metric.says and not metric.says.endswith(".")
