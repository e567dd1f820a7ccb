"""D7: our row and the consumer's own; without our action it is a plain duplicate."""

from dataclasses import replace

import pytest

from tallystick.matching.match_case import LookupHit, RecordLocation
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.planted import Pair, PlantedCases, found_breaks, found_in
from tests.unit.builders import LEDGER, T2L, event, evidence_of, row, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED,
            fires=evidence_of(event(11), row(1), replace(row(2), action_id="a-1"), direction=T2L),
            twin=evidence_of(event(11), row(1), row(2), direction=T2L),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_LEDGER}),
        ),
    )


def posted_before(row_id: int, *, amount_minor: int = 1_000, **detail: str) -> LookupHit:
    """A row of an earlier cut."""
    money = {"amount_minor": amount_minor, "currency": "EUR"}
    return seen(LEDGER, RecordLocation.EARLIER_SLICE, row_id, **money, **detail)


OURS = posted_before(1, action_id="a-1")


def test_a_row_that_comes_windows_after_ours_doubles_it_and_names_the_action() -> None:
    (found,) = found_breaks(evidence_of(row(2), direction=T2L, lookup_hits=[OURS]))
    assert found.break_class is BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED
    assert (found.evidence["ours"], found.evidence["action_id"]) == ("ledger:1", "a-1")
    assert "ledger:2 is one row too many: compensation a-1 posted ledger:1" in found.story


@pytest.mark.parametrize(("plain", "repaired"), [("ev-1", "ev-2"), ("ev-2", "ev-1")])
def test_rows_behind_ours_and_plain_duplicates_are_told_apart_whichever_comes_first(plain: str, repaired: str) -> None:
    copies = (
        *(event(11, plain), row(1, plain), row(2, plain)),
        *(event(12, repaired), replace(row(3, repaired), action_id="a-1"), row(4, repaired)),
    )
    found = found_breaks(evidence_of(*sorted(copies, key=lambda copy: copy.match_key), direction=T2L))
    assert [(one.break_class, one.evidence["at"], one.evidence.get("ours")) for one in found] == [
        (BreakClass.DUPLICATE_IN_LEDGER, "ledger:2", None),
        (BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED, "ledger:4", "ledger:3"),
    ]


def test_a_row_of_another_amount_behind_ours_says_something_else_and_is_a_plain_duplicate() -> None:
    rows = (replace(row(1), action_id="a-1"), row(2, amount_minor=999))
    assert found_in(evidence_of(event(11), *rows, direction=T2L)) == {BreakClass.DUPLICATE_IN_LEDGER}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([posted_before(1)], id="no compensation posted it"),
        pytest.param([posted_before(1, action_id="a-1", amount_minor=999)], id="it says another amount"),
        pytest.param([OURS, posted_before(3, amount_minor=-1_000, reverses="ledger:1")], id="it was taken back"),
    ],
)
def test_a_row_of_an_earlier_window_is_none_of_ours_when(before: list[LookupHit]) -> None:
    assert found_in(evidence_of(row(2), direction=T2L, lookup_hits=before)) == {BreakClass.DUPLICATE_IN_LEDGER}
