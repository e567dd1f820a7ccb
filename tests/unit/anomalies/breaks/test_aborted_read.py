"""A1, A2: a row that nobody who keeps to the LSO can have posted, and what it must be told apart from."""

import pytest

from tallystick.anomalies.registry import RULES
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemState
from tests.unit.anomalies.findings import ABORTED, BEYOND, STILL_OPEN, STRAYS, classes, items_of, the_break
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import IN_TOPIC, L2T, LEDGER, MINUTE, NOON, T2L, deadlines_of, event, evidence_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.ABORTED_READ_IN_LEDGER,
            fires=evidence_of(row(1), direction=T2L, lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]),
            twin=evidence_of(row(1), direction=T2L),  # no record at all
            twin_is=frozenset({BreakClass.PHANTOM_IN_LEDGER}),
        ),
        Pair(
            name=BreakClass.OPEN_READ_IN_LEDGER,
            fires=evidence_of(row(1), direction=T2L, lookup_hits=[seen(IN_TOPIC, RecordLocation.OPEN, 25)]),
            twin=evidence_of(
                row(1), direction=T2L, lookup_hits=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]
            ),  # beyond the cut
        ),
    )


def test_a_row_posted_for_an_aborted_event_names_the_abort() -> None:
    lookup_hits = [seen(LEDGER, RecordLocation.SLICE, 1), seen(IN_TOPIC, RecordLocation.ABORTED, 12)]
    evidence = evidence_of(row(1), direction=T2L, lookup_hits=lookup_hits)
    (found,) = [one for rule in RULES for one in rule.judge(evidence)]
    assert isinstance(found, Break)
    assert "topic:billing.payouts:0:12, in a producer transaction that was aborted" in found.story


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(row(1), event(13), direction=T2L, lookup_hits=[ABORTED]), set(), id="it was written again"
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, lookup_hits=[ABORTED, BEYOND]), set(), id="it was, beyond the cut"
        ),
        pytest.param(
            evidence_of(
                row(1), direction=T2L, lookup_hits=[ABORTED], deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)
            ),
            set(),
            id="its producer may still try again",
        ),
        pytest.param(
            evidence_of(row(1), direction=L2T, lookup_hits=[ABORTED]),
            {BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY},
            id="the ledger is written first",
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, lookup_hits=[ABORTED, STRAYS]),
            {BreakClass.MISROUTED_IN_TOPIC},
            id="it was committed on another topic",
        ),
        pytest.param(
            evidence_of(
                row(1), direction=T2L, lookup_hits=[ABORTED], deadlines=deadlines_of(topic_settled_until_utc=NOON)
            ),
            {Doubt.PARTNER_NOT_SETTLED},
            id="the topic is held",
        ),
    ],
)
def test_a_row_is_not_called_an_aborted_read_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(row(1), direction=T2L, lookup_hits=[STILL_OPEN, BEYOND]),
            set(),
            id="a committed one lies beyond",
        ),
        pytest.param(
            evidence_of(row(1), direction=L2T, lookup_hits=[STILL_OPEN]), set(), id="the ledger is written first"
        ),
        pytest.param(
            evidence_of(row(1), event(11), direction=T2L, lookup_hits=[STILL_OPEN]),
            set(),
            id="it has an event of its own",
        ),
        pytest.param(
            evidence_of(event(11), row(1), row(2), direction=T2L, lookup_hits=[STILL_OPEN]),
            set(),
            id="it is the second row",
        ),
        pytest.param(
            evidence_of(
                row(1), direction=T2L, lookup_hits=[STILL_OPEN, seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 3)]
            ),
            set(),
            id="its event may lie before the baseline",
        ),
        pytest.param(
            evidence_of(row(2), direction=T2L, lookup_hits=[STILL_OPEN, seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)]),
            set(),
            id="an earlier row had the first event",
        ),
        pytest.param(
            evidence_of(row(1), direction=T2L, lookup_hits=[ABORTED]),
            {BreakClass.ABORTED_READ_IN_LEDGER},
            id="the transaction was aborted",
        ),
    ],
)
def test_a_row_is_not_called_an_open_read_when(evidence: Evidence, instead: set[object]) -> None:
    assert classes(evidence) == instead


def test_an_open_read_needs_neither_deadline_nor_settled_topics() -> None:
    early = deadlines_of(now_utc=NOON + MINUTE / 2, topic_settled_until_utc=None)
    evidence = evidence_of(row(1), direction=T2L, lookup_hits=[STILL_OPEN, ABORTED], deadlines=early)
    assert classes(evidence) == {BreakClass.OPEN_READ_IN_LEDGER}
    assert items_of(evidence)["ledger:1"].pairable


def test_of_two_rows_for_one_open_event_the_first_is_the_open_read() -> None:
    evidence = evidence_of(row(1), row(2), direction=T2L, lookup_hits=[STILL_OPEN])
    assert the_break(evidence).evidence["at"] == "ledger:1"
    assert items_of(evidence)["ledger:2"].state is ItemState.OPEN
