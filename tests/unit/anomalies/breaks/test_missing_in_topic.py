"""M1, M2: never produced, or aborted only, and what else a row without an event may be."""

import pytest

from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass, Doubt
from tests.unit.anomalies.planted import Name, Pair, PlantedCases, found_in
from tests.unit.builders import IN_TOPIC, MINUTE, NOON, deadlines_of, event, evidence_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,
            fires=evidence_of(row(1)),
            twin=evidence_of(
                row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]
            ),  # committed above the cut, or open
        ),
        Pair(
            name=BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY,
            fires=evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]),
            twin=evidence_of(
                row(1), event(13), lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]
            ),  # written again
        ),
    )


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)), set(), id="within its grace"
        ),
        pytest.param(
            evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 3)]),
            set(),
            id="before the baseline",
        ),
        pytest.param(
            evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]),
            {BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY},
            id="aborted",
        ),
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=None)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="the topic never settled",
        ),
        pytest.param(
            evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.SLICE, 14)]),
            {Doubt.PARTNER_NOT_SETTLED},
            id="its event is there, unreadable",
        ),
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(topic_lost_offsets=True)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="its event may have expired unread",
        ),
        pytest.param(evidence_of(row(1), event(11)), set(), id="its event is there"),
        pytest.param(evidence_of(row(1, key="ev-2"), event(11, key="ev-2")), set(), id="another key"),
    ],
)
def test_a_row_is_not_called_never_produced_when(evidence: Evidence, instead: set[Name]) -> None:
    assert found_in(evidence) == instead


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(
                row(1),
                lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)],
                deadlines=deadlines_of(now_utc=NOON + MINUTE / 2),
            ),
            set(),
            id="its producer may still try again",
        ),
        pytest.param(
            evidence_of(
                row(1),
                lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 12), seen(IN_TOPIC, RecordLocation.PENDING, 25)],
            ),
            set(),
            id="it was tried again beyond the cut",
        ),
    ],
)
def test_a_row_is_not_called_aborted_only_when(evidence: Evidence, instead: set[Name]) -> None:
    assert found_in(evidence) == instead
