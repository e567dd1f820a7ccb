"""Each planted break is really there, alone, and traffic that runs later neither heals nor doubles it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from lab.faults.single_breaks import PLANTS
from lab.rounds.delivery_mode_round import Round, prepare, run_traffic
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.truth.independent_reader import find_breaks, read_books
from lab.truth.truth import Anomaly

pytestmark = [pytest.mark.stack, pytest.mark.lab]

Plant = Callable[..., tuple[Anomaly, ...]]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_plant_alone_is_the_only_disagreement(lab_stack: LabStack, plant: Plant) -> None:
    round_ = prepare(lab_stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace=plant.__name__)
    truth = plant(lab_stack, round_.namespace)
    assert _found(lab_stack, round_) == _expected(truth)


@pytest.mark.parametrize("mode", list(DeliveryMode))
def test_later_traffic_neither_heals_nor_doubles_what_was_planted(lab_stack: LabStack, mode: DeliveryMode) -> None:
    round_ = prepare(lab_stack, mode, seed=1, namespace=f"planted_{mode}")
    _run_clean(round_)
    truth = tuple(item for plant in PLANTS for item in plant(lab_stack, round_.namespace))
    _run_clean(replace(round_, seed=2))
    assert len(truth) == len(PLANTS)
    assert _found(lab_stack, round_) == _expected(truth)


def _run_clean(round_: Round) -> None:
    with run_traffic(round_, payments=6, payouts=4, holds=False, faults=False) as running:
        assert running.held == ()
        assert running.release().anomalies == ()


def _found(stack: LabStack, round_: Round) -> Counter[tuple[str, str]]:
    return find_breaks(read_books(stack.bootstrap_servers, stack.ledger_reader_dsn, round_.namespace))


def _expected(truth: tuple[Anomaly, ...]) -> Counter[tuple[str, str]]:
    return Counter({(item.break_class, item.event_id): item.copies for item in truth})
