"""What waits behind a cursor that moves has grown in each of three windows."""

import pytest

from tallystick.anomalies.notices.backlog_grows import backlog_told_as_stopped
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_cluster.state import ClusterState
from tallystick.ledger.protocol import HorizonHolder
from tallystick.model.finding_names import Doubt, Notice
from tests.unit.anomalies.builders import trailing
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import NOON, PART, cut_of, evidence_of, ledger_slice_of, positions_of
from tests.unit.cursor_trails import held_trail, progress_notices, the_notice


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.BACKLOG_GROWS,
            fires=trailing((17, 17), (18, 20), (19, 23)),
            about=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
            twin=trailing((17, 18), (18, 19), (19, 23)),  # in one window it stayed
            twin_is=frozenset({Doubt.HELD_BY_OPEN_TRANSACTION}),
        ),
    )


def test_a_growing_backlog_says_since_when_and_how_much() -> None:
    notice = the_notice(held_trail(40, 50, (10, 14), (10, 10), (20, 22), (30, 35)))
    assert notice.sentence.startswith(
        "billing.payouts[0]: what waits behind the cursor has grown in each of 3 windows, since "
        "2026-03-01 09:00:00 UTC: from 0 to 10 offsets. "
    )
    assert notice.details["behind"] == [0, 2, 5, 10]


def test_the_ledgers_backlog_may_grow_too_and_its_holder_is_named() -> None:
    earlier = positions_of((270, 270), (280, 282), (290, 295), side=None)
    notice = the_notice(
        evidence_of(
            cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=310)),
            cluster=ClusterState(cursor_positions=earlier),
            horizon_holder=HorizonHolder(position=300, holder="psql of reports, pid 77", since=NOON),
        )
    )
    assert notice.sentence.startswith("ledger: what waits behind the cursor has grown in each of 3 windows")
    assert (notice.details["behind"], notice.details["holder"]) == (
        [0, 2, 5, 10],
        "psql of reports, pid 77, open since 2026-03-01 12:00:00 UTC",
    )


@pytest.mark.parametrize(
    ("mark", "earlier", "unseen"),
    [
        pytest.param(28, ((17, 17), (18, 20), (20, 24), (20, 25), (20, 27)), [str(PART)], id="it grows on"),
        pytest.param(27, ((17, 17), (18, 20), (20, 24), (20, 25), (20, 27)), [], id="nothing more is written"),
        pytest.param(28, ((18, 20), (20, 24), (20, 27)), [], id="the growing backlog is told itself"),
    ],
)
def test_a_backlog_that_grows_on_behind_a_cursor_that_has_stopped_is_not_over_and_not_told_twice(
    mark: int, earlier: tuple[tuple[int, int], ...], unseen: list[str]
) -> None:
    evidence = held_trail(20, mark, *earlier)
    assert list(findings_of(backlog_told_as_stopped, evidence)) == unseen
    assert len(progress_notices(evidence)) == 1
