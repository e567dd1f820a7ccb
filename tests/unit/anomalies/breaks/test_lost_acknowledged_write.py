"""M7: acknowledged, and gone; not what retention took, was aborted or came again."""

import pytest

from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState
from tests.unit.anomalies.findings import ABORTED, BEYOND, STILL_OPEN, STRAYS, classes, items_of, the_break
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import IN_TOPIC, LEDGER, MINUTE, NOON, deadlines_of, event, evidence_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.LOST_ACKNOWLEDGED_WRITE,
            fires=evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.LOST, 12, stands_there="no record")]),
            twin=evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.EXPIRED, 3)]),  # below the log start
            twin_is=frozenset({Doubt.PARTNER_NOT_SETTLED}),
        ),
    )


LOST = seen(IN_TOPIC, RecordLocation.LOST, 12, stands_there="another event (committed)", leader_epoch=5)
EXPIRED = seen(IN_TOPIC, RecordLocation.EXPIRED, 3, stands_there="retention has taken that offset")


def test_a_lost_write_says_what_was_acknowledged_and_what_stands_there_now() -> None:
    found = the_break(evidence_of(row(1), lookup_hits=[LOST]))
    assert found.break_class is BreakClass.LOST_ACKNOWLEDGED_WRITE
    assert found.evidence["receipt"] == {
        "at": "topic:billing.payouts:0:12",
        "place": "lost",
        "stands_there": "another event (committed)",
        "leader_epoch": 5,
    }


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(evidence_of(row(1)), {BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}, id="it has no receipt"),
        pytest.param(
            evidence_of(row(1), lookup_hits=[EXPIRED]), {Doubt.PARTNER_NOT_SETTLED}, id="nobody can say what was there"
        ),
        pytest.param(evidence_of(row(1), event(14), lookup_hits=[LOST]), set(), id="it was sent again"),
        pytest.param(evidence_of(row(1), lookup_hits=[LOST, BEYOND]), set(), id="it was, beyond the cut"),
        pytest.param(evidence_of(row(1), lookup_hits=[LOST, STILL_OPEN]), set(), id="it was, and is open"),
        pytest.param(
            evidence_of(row(1), lookup_hits=[LOST, STRAYS]),
            {BreakClass.MISROUTED_IN_TOPIC},
            id="it was acknowledged on another topic",
        ),
        pytest.param(
            evidence_of(row(1), lookup_hits=[EXPIRED, STRAYS]),
            {BreakClass.MISROUTED_IN_TOPIC},
            id="it was acknowledged at an old offset of another topic",
        ),
        pytest.param(
            evidence_of(row(1), lookup_hits=[LOST], deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)),
            set(),
            id="it may be sent again within its grace",
        ),
        pytest.param(
            evidence_of(row(1), lookup_hits=[LOST], deadlines=deadlines_of(topic_settled_until_utc=NOON)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="the topic is held",
        ),
    ],
)
def test_a_row_is_not_called_a_lost_write_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def test_that_other_offsets_are_gone_too_does_not_hide_what_a_receipt_proves() -> None:
    evidence = evidence_of(row(1), lookup_hits=[LOST], deadlines=deadlines_of(topic_lost_offsets=True))
    assert classes(evidence) == {BreakClass.LOST_ACKNOWLEDGED_WRITE}


def test_an_aborted_attempt_elsewhere_does_not_excuse_the_lost_one() -> None:
    assert classes(evidence_of(row(1), lookup_hits=[LOST, ABORTED])) == {BreakClass.LOST_ACKNOWLEDGED_WRITE}


def test_a_row_whose_receipt_proves_nothing_still_pairs_with_an_event_that_comes() -> None:
    item = items_of(evidence_of(row(1), lookup_hits=[EXPIRED]))["ledger:1"]
    assert (item.state, item.pairable) == (ItemState.UNDECIDABLE, True)


def test_the_ledgers_own_hit_of_the_row_disturbs_none_of_them() -> None:
    own = seen(LEDGER, RecordLocation.SLICE, 1)
    for there in (STRAYS, LOST, ABORTED):
        assert classes(evidence_of(row(1), lookup_hits=[own, there])) == classes(
            evidence_of(row(1), lookup_hits=[there])
        )
