"""P1: the follower has what the origin never had; which side follows is the contract's direction."""

import pytest

from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.planted import Pair, PlantedCases, found_breaks, found_in
from tests.unit.builders import IN_TOPIC, L2T, LEDGER, T2L, T2T, event, evidence_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.PHANTOM_IN_TOPIC,
            fires=evidence_of(event(11)),
            twin=evidence_of(
                event(11), lookup_hits=[seen(LEDGER, RecordLocation.PENDING, 1)]
            ),  # its row is behind the horizon
        ),
        Pair(
            name=BreakClass.PHANTOM_IN_LEDGER,
            fires=evidence_of(row(1), direction=T2L),
            twin=evidence_of(row(1), direction=T2L, lookup_hits=[seen(IN_TOPIC, RecordLocation.PENDING, 25)]),
        ),
    )


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_direction_knows_only_its_own_kind_of_missing(direction: object) -> None:
    """The same lone row is missing in the topic when the ledger is written first, and a phantom when it follows."""
    expected = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED if direction is L2T else BreakClass.PHANTOM_IN_LEDGER
    assert found_in(evidence_of(row(1), direction=direction)) == {expected}
    assert found_in(evidence_of(event(11), direction=direction)) == {
        BreakClass.PHANTOM_IN_TOPIC if direction is L2T else BreakClass.MISSING_IN_LEDGER
    }


def test_equal_totals_and_counts_of_different_keys_are_a_missing_and_a_phantom() -> None:
    assert [found.break_class for found in found_breaks(evidence_of(event(11, "ev-1"), row(1, "ev-2")))] == [
        BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,
        BreakClass.PHANTOM_IN_TOPIC,
    ]


def test_an_output_of_an_aborted_input_says_what_its_service_read_and_an_aborted_copy_of_its_own_is_not_that() -> None:
    (told,) = found_breaks(evidence_of(event(11), direction=T2T, lookup_hits=[seen(LEDGER, RecordLocation.ABORTED, 4)]))
    assert told.story.startswith("The event at topic:billing.payouts:0:11 is committed, and ")
    assert "What stands there, ledger:4, is in a producer transaction that was aborted" in told.story
    (other,) = found_breaks(
        evidence_of(event(11), direction=T2T, lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 4)])
    )
    assert other.break_class is BreakClass.PHANTOM_IN_TOPIC
    assert "aborted" not in other.story
