"""Rows where no cut reads them and rows that went are counted and placed, with what to do."""

from typing import Any

import pytest

from tallystick.anomalies.doubts.ledger_changed import ledger_rewritten
from tallystick.anomalies.registry import findings_of
from tallystick.ledger.earlier_rows import AHEAD, BEFORE, WITHOUT_ID, Place
from tallystick.model.finding_names import Doubt
from tests.unit.builders import contract_of, evidence_of, with_facts

UNREAD = Place(name=WITHOUT_ID, expected=0, now=7, row_ids=("11", "12"))
GONE = Place(name="[100, 200)", expected=7, now=4)


def test_rows_that_no_cut_reads_are_a_doubt_that_names_them() -> None:
    (doubt,) = findings_of(ledger_rewritten, evidence_of(rows_out_of_place=(UNREAD,)))
    assert doubt.doubt is Doubt.LEDGER_REWRITTEN
    assert (
        "7 rows came where no cut reads them: 7 without a written_xid (newest row ids there: 11, 12, ...)"
        in doubt.sentence
    )
    assert doubt.details == {"places": [{"name": WITHOUT_ID, "expected": 0, "now": 7, "row_ids": ["11", "12"]}]}
    assert list(findings_of(ledger_rewritten, evidence_of())) == []


def test_rows_that_went_are_a_doubt_unless_their_owner_archives_them() -> None:
    (doubt,) = findings_of(ledger_rewritten, evidence_of(rows_out_of_place=(GONE,)))
    assert "3 rows went that earlier cuts had read: 3 of 7 with one in [100, 200), which was read" in doubt.sentence
    ledger = {"connection": "l", "table": "a.b", "slice_by": "written_xid", "earlier_rows": "archived"}
    archived = evidence_of(rows_out_of_place=(GONE,), contract=contract_of(ledger=ledger))
    assert list(findings_of(ledger_rewritten, archived)) == []
    (doubt,) = findings_of(ledger_rewritten, with_facts(archived, rows_out_of_place=(GONE, UNREAD)))
    assert "went" not in doubt.sentence


def test_rows_that_say_other_things_are_a_doubt_also_where_old_ones_are_archived() -> None:
    changed = Place(name="[100, 200)", expected=0, now=0, row_ids=("11",))
    ledger = {"connection": "l", "table": "a.b", "slice_by": "written_xid", "earlier_rows": "archived"}
    for contract in (contract_of(), contract_of(ledger=ledger)):
        (doubt,) = findings_of(ledger_rewritten, evidence_of(rows_out_of_place=(changed,), contract=contract))
        assert "rows of 1 slice that earlier cuts have read say other things now: [100, 200)" in doubt.sentence


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (BEFORE, "1 with one from before the first slice (newest row ids there: 11)."),
        (AHEAD, "1 with one that the server has not given out (newest row ids there: 11)."),
        ("[100, 200)", "1 with one in [100, 200), which was read (newest row ids there: 11)."),
        ("[100, 200), closed unread", "1 with one in [100, 200), closed unread (newest row ids there: 11)."),
    ],
)
def test_rows_with_the_id_of_no_transaction_that_a_cut_reads_are_said_to_have_it(place: str, says: str) -> None:
    (doubt,) = findings_of(
        ledger_rewritten, evidence_of(rows_out_of_place=(Place(name=place, expected=0, now=1, row_ids=("11",)),))
    )
    assert says in doubt.sentence


@pytest.mark.parametrize(("slices", "told", "more"), [(5, 5, False), (6, 5, True)])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"expected": 0, "now": 1, "row_ids": ("11",)}, id="rows that no cut reads"),
        pytest.param({"expected": 1, "now": 0}, id="rows that went"),
        pytest.param({"expected": 1, "now": 1, "row_ids": ("11",)}, id="rows that say other things"),
    ],
)
def test_of_many_slices_whose_rows_changed_five_are_told(
    change: dict[str, Any], slices: int, told: int, more: bool
) -> None:
    places = tuple(Place(name=f"[{n}00, {n + 1}00)", **change) for n in range(slices))
    (doubt,) = findings_of(ledger_rewritten, evidence_of(rows_out_of_place=places))
    assert (doubt.sentence.count("00)"), "; and more." in doubt.sentence) == (told, more)
