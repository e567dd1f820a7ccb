"""Brokers are killed and leaders move under exactly-once traffic, and the books agree to the last event."""

from collections import Counter
from random import Random

import pytest

from lab.faults.broker_restarts import bounced
from lab.rounds.delivery_mode_round import prepare, run_traffic
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.truth.independent_reader import find_breaks, read_books

pytestmark = [pytest.mark.stack, pytest.mark.lab]


def test_nothing_is_lost_or_doubled_while_brokers_die_and_leaders_move(lab_cluster: LabStack) -> None:
    round_ = prepare(lab_cluster, DeliveryMode.EXACTLY_ONCE, seed=1, namespace="bounced")
    with (
        bounced(lab_cluster.cluster, round_.names.places, Random(1), times=2) as bounces,
        run_traffic(round_, payments=40, payouts=20, holds=False, faults=False) as running,
    ):
        truth = running.release()
    assert (len(bounces.killed), bounces.moved) == (2, 2)
    assert (truth.anomalies, truth.totals.requests_sent) == ((), 40)
    assert _found(lab_cluster) == Counter()


def _found(stack: LabStack) -> Counter[tuple[str, str]]:
    return find_breaks(read_books(stack.bootstrap_servers, stack.ledger_reader_dsn, "bounced"))
