"""A break's id, and money at stake, which has no sign: what is missing of refunds makes nothing smaller."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, break_id, largest_first, money_at_stake, negative_at_stake, total_money
from tallystick.report.break_sample import choose_breaks
from tests.unit.alerting.refunds import REFUNDED
from tests.unit.alerting.run_alerts import a_break, alerts
from tests.unit.builders import cut_of, evidence_of, row
from tests.unit.judging.results import judged


def test_the_largest_are_shown_first_whatever_their_sign() -> None:
    small = [a_break(f"{n}", amount_minor=n) for n in range(1, 10)]
    (alert,) = alerts(*small, REFUNDED)
    assert alert.details["samples"][0] == {"break_id": str(REFUNDED.break_id)}
    assert REFUNDED in choose_breaks([*small, REFUNDED], shown_max=1)
    assert sorted([*small, REFUNDED], key=largest_first)[0] is REFUNDED


AMOUNTS = st.lists(st.tuples(st.sampled_from(["EUR", "JPY", ""]), st.integers(-(10**12), 10**12)), max_size=20)


@given(amounts=AMOUNTS)
def test_more_breaks_never_mean_less_money_at_stake(amounts: list[tuple[str, int]]) -> None:
    breaks = [break_of(n, currency, amount) for n, (currency, amount) in enumerate(amounts)]
    for n in range(len(breaks)):
        before, after = money_at_stake(breaks[:n]), money_at_stake(breaks[: n + 1])
        assert all(after[currency] >= money for currency, money in before.items())
    negative, total = negative_at_stake(amounts), money_at_stake(breaks)
    positive = negative_at_stake((currency, -amount) for currency, amount in amounts)
    assert total == {name: negative.get(name, 0) + positive.get(name, 0) for name in total}


def break_of(n: int, currency: str, amount_minor: int) -> Break:
    return replace(a_break(str(n), amount_minor=amount_minor), currency=currency)


def test_a_breaks_id_is_the_same_in_every_run_that_finds_it() -> None:
    first, second = (judged(evidence_of(row(1), cut=cut_of(n=n))).breaks[0] for n in (2, 9))
    assert first.break_id == second.break_id
    assert first.break_id == break_id(
        contract="billing_payouts", break_class=first.break_class, match_key="ev-1", position="ledger:1"
    )


def test_money_at_stake_is_summed_per_currency_and_unknown_currencies_are_left_out() -> None:
    breaks = judged(evidence_of(row(1, "a", 5, "JPY"), row(2, "b", 7), row(3, "c", 9, ""))).breaks
    assert money_at_stake(breaks) == {"EUR": 7, "JPY": 5}
    assert total_money([]) == {}


def test_no_key_and_no_row_id_makes_one_break_of_two() -> None:
    """Whatever separates the parts of an id may stand in a key, and in a row id."""
    ids = {
        break_id(contract="books", break_class=BreakClass.PHANTOM_IN_LEDGER, match_key=key, position=position)
        for key, position in (("k", "ledger:9\x1fledger:1"), ("k\x1fledger:9", "ledger:1"), ("k", "ledger:1"))
    }
    assert len(ids) == 3
