"""The plan of a round: the same for a seed, no payment hit twice, as many firings whatever the seed and the mode."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from lab.faults.round_plan import PAYMENTS_MIN, PAYOUTS_MIN, Plan, make_plan
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg, partition_of
from lab.services.namespace import INVOICE_PARTITIONS, PAYMENT_PARTITIONS, PAYOUT_PARTITIONS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SEEDS = range(1, 21)


def test_a_seed_decides_everything() -> None:
    assert _plan(seed=7) == _plan(seed=7)
    assert _plan(seed=7) != _plan(seed=8)


@pytest.mark.parametrize("mode", list(DeliveryMode))
def test_no_payment_is_hit_twice_in_the_smallest_round(mode: DeliveryMode) -> None:
    for seed in SEEDS:
        plan = _plan(seed=seed, mode=mode)
        hit = [str(fault.event.payment.payment_id) for fault in plan.faults]
        late = [str(payment.payment_id) for payment in plan.before.late_payouts]
        everything = Counter(hit + late + list(plan.aborted_first))
        assert max(everything.values()) == 1


def test_every_seed_and_mode_plans_as_many_firings() -> None:
    counts = {
        tuple(sorted(Counter(fault.fault for fault in _plan(seed=seed, mode=mode).faults).items()))
        for seed in SEEDS
        for mode in DeliveryMode
    }
    assert len(counts) == 1
    assert all(count >= 2 for _, count in counts.pop())


def test_every_partition_gets_an_abort() -> None:
    for seed in SEEDS:
        plan = _plan(seed=seed)
        requests = [p for p in plan.before.requests if str(p.payment_id) in plan.aborted_first]
        payouts = [p for p in plan.before.payouts if str(p.payment_id) in plan.aborted_first]
        keys = [p.event(Leg.PAYMENT).message_key for p in requests]
        assert {partition_of(key, PAYMENT_PARTITIONS) for key in keys} == set(range(PAYMENT_PARTITIONS))
        assert {partition_of(key, INVOICE_PARTITIONS) for key in keys} == set(range(INVOICE_PARTITIONS))
        keys = [p.event(Leg.PAYOUT).message_key for p in payouts]
        assert {partition_of(key, PAYOUT_PARTITIONS) for key in keys} == set(range(PAYOUT_PARTITIONS))


def test_a_round_too_small_for_its_faults_is_refused() -> None:
    with pytest.raises(ValueError, match="at least"):
        _plan(seed=1, payments=PAYMENTS_MIN - 1)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_the_partitioner_is_javas(key: bytes, hashed: int) -> None:
    """Literals from Apache Kafka's own UtilsTest.testMurmur2."""
    count = 1 << 31  # keeps every bit the partitioner looks at
    assert partition_of(key, count) == hashed & 0x7FFFFFFF


def _plan(*, seed: int, mode: DeliveryMode = DeliveryMode.EXACTLY_ONCE, payments: int = PAYMENTS_MIN) -> Plan:
    return make_plan(mode=mode, seed=seed, namespace="ns", payments=payments, payouts=PAYOUTS_MIN, now_utc=NOON)
