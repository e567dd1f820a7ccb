"""Money at stake has no sign: what is missing of refunds makes nothing smaller that is missing of payments."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tallystick.alerting.policy import severity_of
from tallystick.contract.alerts import AlertRules, Severity
from tallystick.model.findings import Break, largest_first, money_at_stake, negative_at_stake
from tallystick.report.break_sample import choose_breaks, stakes
from tallystick.text.verdict_sentence import sums_of
from tests.unit.alerting.test_alert import MISSING, a_break, alerts

PAID, REFUNDED = a_break("paid", amount_minor=5_000_000), a_break("refunded", amount_minor=-5_000_000)
CRITICAL = AlertRules(critical_at_minor={"EUR": 5_000_000})


def test_a_refund_and_a_payment_that_are_both_missing_do_not_add_up_to_nothing() -> None:
    (alert,) = alerts(PAID, REFUNDED)
    assert alert.severity is Severity.CRITICAL
    assert alert.summary.endswith("100,000.00 EUR at stake, of it 50,000.00 EUR in negative amounts")
    assert alert.details["new_money_minor"] == {"EUR": 10_000_000}
    assert alert.details["outstanding_negative_minor"] == {"EUR": 5_000_000}
    assert sums_of([PAID, REFUNDED]).money == {"EUR": 10_000_000}
    assert [stake.amount_minor for stake in stakes([PAID, REFUNDED])] == [10_000_000]


def test_a_missing_refund_is_as_critical_as_a_missing_payment_of_that_size() -> None:
    for found in (PAID, REFUNDED):
        assert severity_of(CRITICAL, MISSING, money_at_stake([found])) is Severity.CRITICAL
        (alert,) = alerts(found, rules={"critical_at_minor": {"EUR": 5_000_000}})
        assert alert.severity is Severity.CRITICAL
        (alert,) = alerts(found, rules={"critical_at_minor": {"EUR": 5_000_001}})
        assert alert.severity is Severity.ERROR


def test_without_negative_amounts_none_are_told() -> None:
    (alert,) = alerts(PAID)
    assert "negative" not in alert.summary
    assert "outstanding_negative_minor" not in alert.details


def test_the_largest_are_shown_first_whatever_their_sign() -> None:
    small = [a_break(f"{n}", amount_minor=n) for n in range(1, 10)]
    (alert,) = alerts(*small, REFUNDED)
    assert alert.details["samples"][0] == {"break_id": str(REFUNDED.break_id)}
    assert REFUNDED in choose_breaks([*small, REFUNDED], shown_max=1)
    assert sorted([*small, REFUNDED], key=largest_first)[0] is REFUNDED


AMOUNTS = st.lists(st.tuples(st.sampled_from(["EUR", "JPY", ""]), st.integers(-(10**12), 10**12)), max_size=20)


@given(amounts=AMOUNTS)
def test_more_breaks_never_mean_less_money_at_stake(amounts: list[tuple[str, int]]) -> None:
    breaks = [_of(n, currency, amount) for n, (currency, amount) in enumerate(amounts)]
    for n in range(len(breaks)):
        before, after = money_at_stake(breaks[:n]), money_at_stake(breaks[: n + 1])
        assert all(after[currency] >= money for currency, money in before.items())
    negative, total = negative_at_stake(amounts), money_at_stake(breaks)
    positive = negative_at_stake((currency, -amount) for currency, amount in amounts)
    assert total == {name: negative.get(name, 0) + positive.get(name, 0) for name in total}


def _of(n: int, currency: str, amount_minor: int) -> Break:
    return replace(a_break(str(n), amount_minor=amount_minor), currency=currency)
