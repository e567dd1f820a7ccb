"""Q1: an empty side proves nothing, unless the contract allows it and a census was taken."""

from dataclasses import replace

import pytest

from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import Doubt, Notice
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases, found_in
from tests.unit.builders import LEDGER, contract_of, event, evidence_of, item_of, row, seen, with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.VACUOUS_RUN,
            fires=with_facts(CLEAN, ledger_rows=0),
            twin=with_facts(CLEAN, ledger_rows=1),
        ),
    )


@pytest.mark.parametrize(("topic_rows", "ledger_rows"), [(0, 0), (0, 1), (1, 0)])
def test_an_empty_side_proves_nothing(topic_rows: int, ledger_rows: int) -> None:
    evidence = with_facts(CLEAN, topic_rows=topic_rows, ledger_rows=ledger_rows)
    assert found_in(evidence) == {Doubt.VACUOUS_RUN}


def test_two_empty_sides_pass_only_where_the_contract_allows_it_and_a_census_was_taken() -> None:
    silent = with_facts(CLEAN, topic_rows=0, ledger_rows=0, contract=contract_of(empty="allowed"))
    assert found_in(silent) == set()
    assert Doubt.VACUOUS_RUN in found_in(replace(silent, census=()))
    assert found_in(with_facts(silent, topic_rows=1)) == {Doubt.VACUOUS_RUN}


def test_a_window_whose_only_rows_clear_open_items_is_not_empty() -> None:
    clears = evidence_of(event(11), carried=[item_of(row(1))], topic_rows=1, ledger_rows=0)
    assert found_in(clears) == {Notice.PAIRED_ACROSS_WINDOWS}
    waits = evidence_of(event(11), lookup_hits=[seen(LEDGER, RecordLocation.PENDING, 1)], topic_rows=1, ledger_rows=0)
    assert found_in(waits) == {Doubt.VACUOUS_RUN}
