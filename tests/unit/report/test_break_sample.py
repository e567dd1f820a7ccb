"""Which breaks are shown when there are too many: every class and currency by its largest; counts stay whole."""

from dataclasses import replace
from uuid import UUID

from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.report.break_sample import choose_breaks, group_breaks, stakes
from tests.unit.builders import L2T

MISSING, TORN = BreakClass.MISSING_IN_LEDGER, BreakClass.TORN_TRANSACTION


def item_break(n: int, *, break_class: BreakClass = MISSING, amount_minor: int = 0, currency: str = "EUR") -> Break:
    return Break(
        break_id=UUID(int=n),
        break_class=break_class,
        match_key=f"ev-{n}",
        transaction_key="",
        leg="payment",
        amount_minor=amount_minor,
        currency=currency,
        copies=1,
        story="",
        evidence={},
    )


def test_all_breaks_are_shown_while_they_are_few() -> None:
    breaks = [item_break(n) for n in range(5)]
    assert choose_breaks(breaks, shown_max=5) == tuple(breaks)


def test_the_largest_are_shown_when_they_are_many() -> None:
    breaks = [item_break(n, amount_minor=n) for n in range(10)]
    assert [one.amount_minor for one in choose_breaks(breaks, shown_max=3)] == [9, 8, 7]


def test_a_small_class_and_a_weak_currency_are_not_crowded_out() -> None:
    breaks = [item_break(n, amount_minor=1_000 + n) for n in range(10)]
    breaks += [item_break(20, break_class=TORN), item_break(21, amount_minor=1, currency="JPY")]
    chosen = choose_breaks(breaks, shown_max=4)
    assert {one.break_id for one in chosen} == {UUID(int=n) for n in (9, 8, 20, 21)}


def test_the_order_the_breaks_come_in_does_not_choose() -> None:
    breaks = [item_break(n, amount_minor=n % 3) for n in range(20)]
    assert choose_breaks(breaks, shown_max=7) == choose_breaks(breaks[::-1], shown_max=7)


def test_a_group_counts_all_its_breaks_and_sums_all_its_money() -> None:
    (group,) = group_breaks([item_break(n, amount_minor=10) for n in range(10)], L2T, shown_max=3)
    assert (group.count, group.money, len(group.shown), group.not_shown) == (10, {"EUR": 100}, 3, 7)


def test_money_is_never_added_over_currencies() -> None:
    breaks = [
        item_break(1, amount_minor=5),
        item_break(2, amount_minor=7, currency="JPY"),
        item_break(3, amount_minor=9, break_class=TORN),
        item_break(4, currency=""),
    ]
    assert [(one.currency, one.break_class, one.amount_minor) for one in stakes(breaks)] == [
        ("EUR", TORN, 9),
        ("EUR", MISSING, 5),
        ("JPY", MISSING, 7),
        ("", MISSING, 0),
    ]


def test_a_currency_sums_its_own() -> None:
    (one,) = stakes([item_break(1, amount_minor=5), replace(item_break(2, amount_minor=6))])
    assert (one.amount_minor, one.count) == (11, 2)
