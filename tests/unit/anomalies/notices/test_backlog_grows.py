"""What waits behind a cursor that moves has grown in each of three windows."""

from tallystick.model.finding_names import Doubt, Notice
from tests.unit.anomalies.builders import trailing
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.cursor_trails import held_trail, the_notice


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
