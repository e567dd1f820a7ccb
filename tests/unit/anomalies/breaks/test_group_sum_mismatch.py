"""X1, many to one: one break for a group, with what is missing or too much."""

from collections.abc import Sequence

import pytest

from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tests.unit.anomalies.planted import Pair, PlantedCases, found_breaks
from tests.unit.builders import L2T, T2L, contract_of, event, evidence_of, item_of, row


def grouped(*copies: Entry, many: str = "events") -> Evidence:
    direction = T2L if many == "events" else L2T
    return evidence_of(*copies, direction=direction, contract=contract_of(direction, match={"many_to_one": many}))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.GROUP_SUM_MISMATCH,
            fires=grouped(event(11, amount_minor=600), event(12, amount_minor=399), row(1)),
            twin=grouped(event(11, amount_minor=600), event(12, amount_minor=400), row(1)),
        ),
    )


@pytest.mark.parametrize(
    ("copies", "many", "at_stake", "tells"),
    [
        pytest.param(
            (event(11, amount_minor=600), row(1)),
            "events",
            400,
            "ledger:1 says 1000 EUR, and its 1 part is 600 together: 400 missing (minor units).",
            id="a part is missing",
        ),
        pytest.param(
            (event(11), row(1, amount_minor=600), row(2, amount_minor=600)),
            "rows",
            200,
            "topic:billing.payouts:0:11 says 1000 EUR, and its 2 parts are 1200 together: 200 too much (minor units).",
            id="a part too much",
        ),
        pytest.param(
            (event(11, amount_minor=600), event(12, amount_minor=400, currency="USD"), row(1)),
            "events",
            1_000,
            "ledger:1 says 1000 EUR, and its 2 parts are not all of that currency: there is no sum.",
            id="another currency",
        ),
        pytest.param(
            (event(11), row(1, amount_minor=0, currency=""), row(2)),
            "rows",
            1_000,
            "topic:billing.payouts:0:11 says 1000 EUR, and its 2 parts are not all of that currency: there is no sum.",
            id="a part without an amount",
        ),
        pytest.param(
            (event(11, amount_minor=2**63 - 1), event(12, amount_minor=2**63 - 1), row(1, amount_minor=-5)),
            "events",
            2**63 - 1,
            "ledger:1 says -5 EUR, and its 2 parts are 18446744073709551614 together: 18446744073709551619 missing "
            "(minor units).",
            id="more than a bigint holds",
        ),
        pytest.param(
            (event(11, amount_minor=-600), row(1, amount_minor=-1000)),
            "events",
            400,
            "ledger:1 says -1000 EUR, and its 1 part is -600 together: 400 missing (minor units).",
            id="a refund is missing",
        ),
        pytest.param(
            (event(11, amount_minor=-600), event(12, amount_minor=-600), row(1, amount_minor=-1000)),
            "events",
            200,
            "ledger:1 says -1000 EUR, and its 2 parts are -1200 together: 200 too much (minor units).",
            id="a refund too much",
        ),
        pytest.param(
            (event(11, amount_minor=-600), row(1, amount_minor=0)),
            "events",
            600,
            "ledger:1 says 0 EUR, and its 1 part is -600 together: 600 missing (minor units).",
            id="less than nothing",
        ),
        pytest.param(
            (event(11, amount_minor=600), row(1, amount_minor=0)),
            "events",
            600,
            "ledger:1 says 0 EUR, and its 1 part is 600 together: 600 too much (minor units).",
            id="more than nothing",
        ),
        pytest.param(
            (event(11, amount_minor=600), event(12, amount_minor=400), row(1, amount_minor=0, currency="")),
            "events",
            1_000,
            "ledger:1 says no whole amount of a currency, and its 2 parts are 1000 EUR together (minor units).",
            id="a whole without an amount",
        ),
        pytest.param(
            (event(11, amount_minor=-600), row(1, amount_minor=0, currency="")),
            "events",
            -600,
            "ledger:1 says no whole amount of a currency, and its 1 part is -600 EUR together (minor units).",
            id="a whole without an amount, of a refund",
        ),
        pytest.param(
            (
                event(11, amount_minor=600),
                event(12, amount_minor=400, currency="AUD"),
                row(1, amount_minor=0, currency=""),
            ),
            "events",
            600,
            "ledger:1 says no whole amount of a currency, and its 2 parts are of 2 currencies: there is no sum.",
            id="a whole without an amount, of parts in two currencies",
        ),
        pytest.param(
            (event(11, amount_minor=2**63 - 1), event(12, amount_minor=2**63 - 1), row(1, amount_minor=0, currency="")),
            "events",
            2**63 - 1,
            "ledger:1 says no whole amount of a currency, and its 2 parts are 18446744073709551614 EUR together "
            "(minor units).",
            id="a whole without an amount, of parts beyond a bigint",
        ),
        pytest.param(
            (event(11, amount_minor=-(2**63)), event(12, amount_minor=-(2**63)), row(1, amount_minor=0, currency="")),
            "events",
            -(2**63),
            "ledger:1 says no whole amount of a currency, and its 2 parts are -18446744073709551616 EUR together "
            "(minor units).",
            id="a whole without an amount, of refunds beyond a bigint",
        ),
    ],
)
def test_the_break_says_what_is_wrong_with_the_sum(
    copies: Sequence[Entry], many: str, at_stake: int, tells: str
) -> None:
    (found,) = found_breaks(grouped(*copies, many=many))
    assert (found.break_class, found.amount_minor, found.currency) == (BreakClass.GROUP_SUM_MISMATCH, at_stake, "EUR")
    assert found.story == tells


@pytest.mark.parametrize(("currency", "at_stake"), [("KWD", 5_000_000), ("EUR", 4_999_000)])
def test_money_at_stake_is_in_the_currency_of_the_whole_where_a_part_came_late(currency: str, at_stake: int) -> None:
    whole, part = row(1, amount_minor=5_000_000), event(11, amount_minor=600)
    late = event(12, amount_minor=400, currency=currency)
    judged = tuple(item_of(one, ItemState.BROKEN, reason="group_sum_mismatch") for one in (whole, part))
    contract = contract_of(T2L, match={"many_to_one": "events"})
    (found,) = found_breaks(evidence_of(late, direction=T2L, contract=contract, carried=judged))
    assert (found.evidence["at"], found.amount_minor, found.currency) == (late.item_id, at_stake, "EUR")


def test_a_large_group_is_told_by_its_first_parts() -> None:
    parts = [event(offset, amount_minor=1) for offset in range(11, 61)]
    (found,) = found_breaks(grouped(*parts, row(1)))
    assert (len(found.evidence["parts"]), found.evidence["parts_count"]) == (20, 50)
    assert (found.evidence["sum_minor"], found.evidence["missing_minor"]) == (50, 950)
