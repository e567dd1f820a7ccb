"""Rows where no cut reads them and rows that went are counted and placed, with what to do."""

from tallystick.anomalies.doubts.ledger_changed import ledger_rewritten
from tallystick.anomalies.registry import findings_of
from tallystick.ledger.earlier_rows import WITHOUT_ID, Place
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
    assert doubt.details["places"][0]["row_ids"] == ["11", "12"]
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
