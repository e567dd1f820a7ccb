"""T6: a record that a later transaction's marker committed is that and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.matching.evidence import BLED_RECORDS
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.builders import SLICE, bled
from tests.unit.anomalies.copies import item_at
from tests.unit.anomalies.planted import Pair, PlantedCases, found_breaks
from tests.unit.builders import HOUR, NOON, census_of, event, row


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.BLED_INTO_TRANSACTION,
            fires=bled(event(11), row(1)),
            twin=replace(bled(event(11), row(1)), census=(replace(census_of(SLICE), bled_batches=0, bled=()),)),
        ),
    )


def test_a_record_that_bled_is_that_and_nothing_else() -> None:
    for evidence in (
        bled(event(11)),
        bled(event(11), event(9), row(1)),
        bled(event(11), row(1)),
    ):
        assert [str(one.break_class) for one in found_breaks(evidence) if one.evidence["at"] == item_at(11)] == [
            "bled_into_transaction"
        ]
    unequal = bled(event(11), row(1, amount_minor=2))
    assert {str(one.break_class) for one in found_breaks(unequal)} == {"bled_into_transaction", "amount_mismatch"}


def test_a_bleed_names_the_marker_the_epochs_and_the_money() -> None:
    (found,) = found_breaks(bled(event(11), row(1)))
    assert "under epoch 0" in found.story and "the COMMIT at 19" in found.story and "under epoch 1" in found.story
    assert (found.match_key, found.evidence["bled_batches"], found.evidence["marker_offset"]) == ("ev-1", 1, 19)
    assert (found.transaction_key, found.leg) == ("pay-of-ev-1", "")
    assert (found.amount_minor, found.currency) == (0, "")  # the literal record has no readable money


@pytest.mark.parametrize(
    ("money", "at_stake"),
    [
        pytest.param({"amount_minor": 1_000, "currency": "EUR"}, (1_000, "EUR"), id="readable"),
        pytest.param({"amount_minor": 0, "currency": "EUR"}, (0, "EUR"), id="of nothing"),
        pytest.param({"amount_minor": None, "currency": "EUR"}, (0, ""), id="an amount that nobody can read"),
    ],
)
def test_a_bleed_is_about_the_money_of_its_record_as_far_as_it_can_be_read(
    money: dict[str, Any], at_stake: tuple[int, str]
) -> None:
    evidence = bled(event(11), row(1))
    record = replace(evidence.record_origins[item_at(11)], **money)
    (found,) = found_breaks(replace(evidence, record_origins={item_at(11): record}))
    assert (found.amount_minor, found.currency) == at_stake


def test_where_the_marker_was_not_found_no_place_is_named() -> None:
    evidence = bled(event(11), row(1))
    (part,) = evidence.census
    (batch,) = part.bled
    unfound = replace(part, bled=(replace(batch, marker_offset=None),))
    (found,) = found_breaks(replace(evidence, census=(unfound,)))
    assert "; a COMMIT of its next one" in found.story and found.evidence["marker_offset"] is None


def test_where_not_all_that_bled_is_named_each_break_says_so() -> None:
    evidence = bled(event(11), row(1))
    (part,) = evidence.census
    (whole,) = found_breaks(evidence)
    assert "Not all" not in whole.story
    (batch,) = part.bled
    long_one = replace(batch, kafka_offset_start=11, kafka_offset_end=11 + BLED_RECORDS + 1)
    for more in (replace(part, bled_batches=25), replace(part, bled=(long_one,))):
        (found,) = found_breaks(replace(evidence, census=(more,)))
        assert f"{more.bled_batches} batches did; named are the first 1, with their first 100 offsets" in found.story


def test_a_batch_of_just_as_many_records_as_are_named_is_named_whole() -> None:
    evidence = bled(event(500), row(1))
    (part,) = evidence.census
    whole = replace(part.bled[0], kafka_offset_end=500 + BLED_RECORDS)
    (found,) = found_breaks(replace(evidence, census=(replace(part, bled=(whole,)),)))
    assert "Not all" not in found.story


def test_the_grace_of_a_bled_record_changes_nothing() -> None:
    evidence = bled(event(11))
    assert evidence.deadlines.now_utc == NOON + HOUR
    assert found_breaks(evidence)
