"""A cursor that no longer moves, and a backlog that grows: both over windows, and only while something waits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.kafka_cluster.cursor_progress import WINDOWS_MIN
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Notice
from tests.unit.builders import LAW, contract_of, cut_of, evidence_of, ledger_slice_of, positions_of
from tests.unit.cursor_trails import held_trail, progress_notices

STOPPED, GROWS = [Notice.CURSOR_STOPPED], [Notice.BACKLOG_GROWS]


@pytest.mark.parametrize(
    ("evidence", "notices"),
    [
        (held_trail(20, 23, (20, 20), (20, 21), (20, 22)), STOPPED),
        (held_trail(20, 30, (20, 30), (20, 30), (20, 30)), STOPPED),  # nobody writes any more, and yet it waits
        (held_trail(20, 23, (20, 21), (20, 22)), []),  # two windows, though it began before the books
        (held_trail(20, 23, (19, 19), (20, 21), (20, 22)), GROWS),  # it moved three windows ago
        (held_trail(20, 23, (20, 20), (20, 20), (20, 20)), []),  # idle for long, held for one window
        (held_trail(20, 23, (20, 20), (20, 20), (20, 22)), []),  # for two
        (held_trail(20, 20, (20, 20), (20, 20), (20, 20)), []),  # idle
        (held_trail(20, 20, (20, 24), (20, 24), (20, 24)), []),  # what held it has let go
        (held_trail(40, 50, (10, 10), (20, 22), (30, 35)), GROWS),
        (held_trail(40, 45, (10, 10), (20, 22), (30, 35)), []),  # it stays as it was
        (held_trail(40, 44, (10, 18), (20, 27), (30, 35)), []),  # it shrinks
        (held_trail(40, 50, (20, 22), (30, 35)), []),  # two windows
        (held_trail(40, 41, (10, 10), (20, 20), (30, 30)), []),  # one held window
        (held_trail(900, 900, (10, 10), (50, 50), (300, 300)), []),  # ever busier, and read whole
    ],
    ids=range(14),
)
def test_three_windows_in_a_row_and_nothing_less(evidence: Evidence, notices: list[Notice]) -> None:
    assert progress_notices(evidence) == notices


@pytest.mark.parametrize("earlier", [((300, 310),) * 3, ((297, 297), (298, 300), (299, 303))])
def test_the_newest_rows_of_an_idle_or_young_ledger_that_wait_by_the_contracts_overlap_page_nobody(
    earlier: tuple[tuple[int, int], ...],
) -> None:
    plain = evidence_of(
        cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=310)),
        cluster=ClusterState(cursor_positions=positions_of(*earlier, side=None)),
    )
    grows = {"kind": "jdbc", "connection": "l", "table": "main.posting", "order_by": "entry_id", "overlap": 10}
    assert len(progress_notices(plain)) == 1
    assert progress_notices(replace(plain, contract=contract_of(ledger=grows))) == []


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
    notices = progress_notices(held_trail(*trail[-1], *trail[:-1]))
    waits = [behind[1] - behind[0] for behind in trail]
    if len(trail) <= WINDOWS_MIN or 0 in waits[-WINDOWS_MIN:]:
        assert notices == []
    assert len(notices) <= 1
