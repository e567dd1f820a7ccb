"""A cursor that no longer moves while something waits, and who holds it."""

from dataclasses import replace

from tallystick.anomalies.notices.cursor_stopped import cursor_stopped
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.cursor_progress import LOOK_BACK_CUTS
from tallystick.kafka_cluster.state import ClusterState
from tallystick.ledger.protocol import HorizonHolder
from tallystick.model.finding_names import Doubt, Notice
from tests.unit.anomalies.builders import held_at, trailing
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import (
    HOUR,
    NOON,
    PART,
    contract_of,
    cut_of,
    evidence_of,
    ledger_slice_of,
    positions_of,
    slice_of,
)
from tests.unit.cursor_trails import held_trail, progress_notices, the_notice


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.CURSOR_STOPPED,
            fires=trailing((20, 20), (20, 25), (20, 25)),
            about=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
            twin=trailing((19, 20), (20, 25), (20, 25)),  # it moved, by one
            twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
        ),
    )


def test_a_cursor_that_replicas_hold_is_no_transactions_fault() -> None:
    before = ClusterState(cursor_positions=positions_of((20, 20), (20, 23), (20, 23)))
    (found,) = findings_of(cursor_stopped, evidence_of(cut=cut_of(held_at()), cluster=before))
    assert found.sentence.endswith("a log that too few replicas have holds it.")


def test_a_cursor_that_a_transaction_holds_beside_replicas_is_said_to_be_the_transactions() -> None:
    before = ClusterState(cursor_positions=positions_of((20, 20), (20, 23), (20, 23)))
    both = evidence_of(cut=cut_of(held_at(high_watermark=22)), cluster=before)
    (found,) = findings_of(cursor_stopped, both)
    assert found.sentence.endswith("a producer transaction that has ended meanwhile holds it.")


WHO = "the open transaction of payout-relay-3 (producer 4001, since 2026-03-01 08:00:00 UTC, time-out 60 s)"


def test_a_stopped_cursor_says_since_when_how_much_waits_and_who_holds_it() -> None:
    notice = the_notice(held_trail(20, 1_023, (19, 19), (20, 21), (20, 22), (20, 24)))
    assert notice.sentence == (
        "billing.payouts[0]: the cursor has stood at 20 for 3 windows, since 2026-03-01 09:00:00 UTC. 1,003 offsets "
        f"wait behind it: {WHO} holds it."
    )
    assert notice.details == {
        "topic": "billing.payouts",
        "partition": 0,
        "cursor": 20,
        "mark": 1_023,
        "behind": [1, 2, 4, 1_003],
        "windows": 3,
        "since_utc": "2026-03-01 09:00:00 UTC",
        "since_cut": 28,
        "holder": WHO,
    }


def test_the_ledger_has_a_cursor_too() -> None:
    ledger = ledger_slice_of(200, 300, mark=310)
    evidence = evidence_of(
        cut=cut_of(ledger_slice=ledger),
        cluster=ClusterState(cursor_positions=positions_of((300, 300), (300, 304), (300, 307), side=None)),
        horizon_holder=HorizonHolder(position=300, holder="psql of reports, pid 77", since=NOON - 4 * HOUR),
    )
    notice = the_notice(evidence)
    assert notice.sentence == (
        "ledger: the cursor has stood at 300 for 3 windows, since 2026-03-01 09:00:00 UTC. 10 transaction ids wait "
        "behind it: psql of reports, pid 77, open since 2026-03-01 08:00:00 UTC holds it."
    )
    assert (notice.details["topic"], notice.details["partition"]) == (None, None)
    topics_only = replace(evidence.cluster, cursor_positions=positions_of((300, 300), (300, 304), (300, 307)))
    assert progress_notices(replace(evidence, cluster=topics_only)) == []  # another side's trail


def test_a_hold_that_is_older_than_what_is_looked_at_says_so() -> None:
    notice = the_notice(held_trail(20, 23, *[(20, 22)] * LOOK_BACK_CUTS))
    began = NOON - LOOK_BACK_CUTS * HOUR
    assert f"for {LOOK_BACK_CUTS} windows, since {began:%Y-%m-%d %H:%M:%S} UTC or earlier." in notice.sentence


ENDS = {PART: 20, None: 300}
"""By side; None is the ledger."""


def test_a_ledger_that_waits_by_its_contracts_rule_has_not_stopped_and_a_topic_beside_it_has() -> None:
    overlaps = {"kind": "jdbc", "connection": "l", "table": "main.posting", "order_by": "entry_id", "overlap": 10}
    sides = {side: positions_of((end, end), (end, end + 4), (end, end + 7), side=side) for side, end in ENDS.items()}
    both = evidence_of(
        cut=cut_of(slice_of(10, 20, mark=30), ledger_slice=ledger_slice_of(200, 300, mark=310)),
        cluster=ClusterState(cursor_positions=tuple(one for trail in sides.values() for one in trail)),
    )
    assert [one.sentence.split(":")[0] for one in findings_of(cursor_stopped, both)] == ["billing.payouts[0]", "ledger"]
    by_rule = replace(both, contract=contract_of(ledger=overlaps))
    assert [one.sentence.split(":")[0] for one in findings_of(cursor_stopped, by_rule)] == ["billing.payouts[0]"]
