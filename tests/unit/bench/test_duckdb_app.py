"""DuckDB joins the n-th copy with the n-th copy, and what it counts is what a join can know."""

import pyarrow as pa
import pytest

from bench.duckdb_app import join, parse

ONE = {"event_id": "a", "payment_id": "p", "leg": "payment", "amount_minor": 5, "currency": "EUR"}
OTHER = {**ONE, "event_id": "b"}


def table(*rows: dict[str, object]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in KINDS.items()})


KINDS = {
    "event_id": pa.string(),
    "payment_id": pa.string(),
    "leg": pa.string(),
    "amount_minor": pa.int64(),
    "currency": pa.string(),
}


def counted(missing_in_ledger: int = 0, missing_in_topic: int = 0, different: int = 0) -> dict[str, int]:
    return {"missing_in_ledger": missing_in_ledger, "missing_in_topic": missing_in_topic, "different": different}


@pytest.mark.parametrize(
    ("topic", "ledger", "answer"),
    [
        ([ONE, OTHER], [OTHER, ONE], counted()),
        ([ONE, ONE], [ONE, ONE], counted()),
        ([ONE, ONE], [ONE], counted(missing_in_ledger=1)),
        ([ONE], [ONE, ONE], counted(missing_in_topic=1)),
        ([ONE], [OTHER], counted(missing_in_ledger=1, missing_in_topic=1)),
        ([ONE], [{**ONE, "amount_minor": 6}], counted(different=1)),
        ([ONE], [{**ONE, "currency": "USD"}], counted(different=1)),
        ([ONE, {**ONE, "amount_minor": 6}], [{**ONE, "amount_minor": 6}, ONE], counted()),
        ([ONE], [], counted(missing_in_ledger=1)),
    ],
)
def test_what_lacks_a_partner_and_what_differs_is_counted(
    topic: list[dict[str, object]], ledger: list[dict[str, object]], answer: dict[str, int]
) -> None:
    assert join(table(*topic), table(*ledger)) == answer


def test_events_are_parsed_in_order_and_a_field_that_nobody_asks_for_is_passed_over() -> None:
    values = [b'{"note":"x","event_id":"a","payment_id":"p","leg":"payment","amount_minor":5,"currency":"EUR"}']
    assert parse(values).to_pylist() == [ONE]
