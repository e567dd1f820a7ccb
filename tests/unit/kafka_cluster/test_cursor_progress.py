"""A cursor that no longer moves, and a backlog that grows: both over windows, and only while something waits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.anomalies.notices.backlog_grows import backlog_grows
from tallystick.anomalies.notices.cursor_stopped import cursor_stopped
from tallystick.kafka_cluster.cursor_progress import LOOK_BACK_CUTS, WINDOWS_MIN
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import ClusterState
from tallystick.ledger.protocol import HorizonHolder
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tests.unit.builders import (
    HOUR,
    LAW,
    NOON,
    PART,
    contract_of,
    cut_of,
    evidence_of,
    ledger_slice_of,
    positions_of,
    slice_of,
)

HOLDER = OpenTransaction(
    topic_partition=PART,
    producer_id=4001,
    producer_epoch=3,
    kafka_offset_start=20,
    transactional_id="payout-relay-3",
    started_ms=int((NOON - 4 * HOUR).timestamp() * 1000),
    timeout_ms=60_000,
    coordinator_state="Ongoing",
    lists_partition=True,
    confirmed=True,
)

WHO = "the open transaction of payout-relay-3 (producer 4001, since 2026-03-01 08:00:00 UTC, time-out 60 s)"


def held(cursor: int, mark: int, *earlier: tuple[int, int], **around: object) -> Evidence:
    """One partition's trail: this cut, then those before it, oldest first, each as (cursor, mark)."""
    surroundings = ClusterState(cursor_positions=positions_of(*earlier), open_transactions=(HOLDER,))
    return evidence_of(
        cut=cut_of(slice_of(min(10, cursor), cursor, mark=mark), n=30), surroundings=surroundings, **around
    )


def found(evidence: Evidence) -> list[Notice]:
    return [one.notice for rule in (cursor_stopped, backlog_grows) for one in rule(evidence)]


STOPPED, GROWS = [Notice.CURSOR_STOPPED], [Notice.BACKLOG_GROWS]


@pytest.mark.parametrize(
    ("evidence", "notices"),
    [
        (held(20, 23, (20, 20), (20, 21), (20, 22)), STOPPED),
        (held(20, 30, (20, 30), (20, 30), (20, 30)), STOPPED),  # nobody writes any more, and yet it waits
        (held(20, 23, (20, 21), (20, 22)), []),  # two windows, though it began before the books
        (held(20, 23, (19, 19), (20, 21), (20, 22)), GROWS),  # it moved three windows ago
        (held(20, 23, (20, 20), (20, 20), (20, 20)), []),  # idle for long, held for one window
        (held(20, 23, (20, 20), (20, 20), (20, 22)), []),  # for two
        (held(20, 20, (20, 20), (20, 20), (20, 20)), []),  # idle
        (held(20, 20, (20, 24), (20, 24), (20, 24)), []),  # what held it has let go
        (held(40, 50, (10, 10), (20, 22), (30, 35)), GROWS),
        (held(40, 45, (10, 10), (20, 22), (30, 35)), []),  # it stays as it was
        (held(40, 44, (10, 18), (20, 27), (30, 35)), []),  # it shrinks
        (held(40, 50, (20, 22), (30, 35)), []),  # two windows
        (held(40, 41, (10, 10), (20, 20), (30, 30)), []),  # one held window
        (held(900, 900, (10, 10), (50, 50), (300, 300)), []),  # ever busier, and read whole
    ],
    ids=range(14),
)
def test_three_windows_in_a_row_and_nothing_less(evidence: Evidence, notices: list[Notice]) -> None:
    assert found(evidence) == notices


def the_notice(evidence: Evidence) -> NoticeFound:
    (notice,) = (one for rule in (cursor_stopped, backlog_grows) for one in rule(evidence))
    assert notice.pages
    return notice


def test_a_stopped_cursor_says_since_when_how_much_waits_and_who_holds_it() -> None:
    notice = the_notice(held(20, 1_023, (19, 19), (20, 21), (20, 22), (20, 24)))
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


def test_a_growing_backlog_says_since_when_and_how_much() -> None:
    notice = the_notice(held(40, 50, (10, 14), (10, 10), (20, 22), (30, 35)))
    assert notice.sentence.startswith(
        "billing.payouts[0]: what waits behind the cursor has grown in each of 3 windows, since "
        "2026-03-01 09:00:00 UTC: from 0 to 10 offsets. "
    )
    assert notice.details["behind"] == [0, 2, 5, 10]


def test_the_ledger_has_a_cursor_too() -> None:
    ledger = ledger_slice_of(200, 300, mark=310)
    evidence = evidence_of(
        cut=cut_of(ledger_slice=ledger),
        surroundings=ClusterState(cursor_positions=positions_of((300, 300), (300, 304), (300, 307), side=None)),
        horizon_holder=HorizonHolder(xid=300, holder="psql of reports, pid 77", since=NOON - 4 * HOUR),
    )
    notice = the_notice(evidence)
    assert notice.sentence == (
        "ledger: the cursor has stood at 300 for 3 windows, since 2026-03-01 09:00:00 UTC. 10 transaction ids wait "
        "behind it: psql of reports, pid 77, open since 2026-03-01 08:00:00 UTC holds it."
    )
    assert (notice.details["topic"], notice.details["partition"]) == (None, None)
    topics_only = replace(evidence.surroundings, cursor_positions=positions_of((300, 300), (300, 304), (300, 307)))
    assert found(replace(evidence, surroundings=topics_only)) == []  # another side's trail


@pytest.mark.parametrize("earlier", [((300, 310),) * 3, ((297, 297), (298, 300), (299, 303))])
def test_the_newest_rows_of_an_idle_or_young_ledger_that_wait_by_the_contracts_overlap_page_nobody(
    earlier: tuple[tuple[int, int], ...],
) -> None:
    plain = evidence_of(
        cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=310)),
        surroundings=ClusterState(cursor_positions=positions_of(*earlier, side=None)),
    )
    grows = {"kind": "jdbc", "connection": "l", "table": "main.posting", "order_by": "entry_id", "overlap": 10}
    assert len(found(plain)) == 1
    assert found(replace(plain, contract=contract_of(ledger=grows))) == []


def test_a_hold_that_is_older_than_what_is_looked_at_says_so() -> None:
    notice = the_notice(held(20, 23, *[(20, 22)] * LOOK_BACK_CUTS))
    began = NOON - LOOK_BACK_CUTS * HOUR
    assert f"for {LOOK_BACK_CUTS} windows, since {began:%Y-%m-%d %H:%M:%S} UTC or earlier." in notice.sentence


@LAW
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_nothing_is_told_of_a_side_that_is_read_whole_nor_before_three_windows(moves: list[tuple[int, int]]) -> None:
    """moves: by how much cursor and mark go on from cut to cut."""
    cursor = mark = 10
    trail = []
    for by, more in moves:
        mark += more
        cursor = min(mark, cursor + by)
        trail.append((cursor, mark))
    notices = found(held(*trail[-1], *trail[:-1]))
    waits = [behind[1] - behind[0] for behind in trail]
    if len(trail) <= WINDOWS_MIN or 0 in waits[-WINDOWS_MIN:]:
        assert notices == []
    assert len(notices) <= 1
