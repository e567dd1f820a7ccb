"""Legal oddities are counted under the version of their list."""

from tallystick.contract.contract import Contract
from tallystick.judging.allowed_oddities import LEGAL_ODDITIES_VERSION
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.stored_run import StoredRun
from tallystick.report.page import report_page
from tallystick.report.write_report import render_report
from tests.unit.report.parsed_page import Page, with_notices


def test_legal_oddities_are_counted_under_their_lists_version(matched_run: StoredRun, contract: Contract) -> None:
    late = NoticeFound(notice=Notice.LATE_PARTNER, sentence="Late.", count=3)
    counts = {oddity.name: oddity.count for oddity in report_page(with_notices(matched_run, late), contract).oddities}
    assert counts["aborted records"] == 2
    assert counts["transaction markers"] == 3
    assert counts["late partners"] == 3
    assert f"list {LEGAL_ODDITIES_VERSION}" in Page(render_report(matched_run, contract)).text


def test_the_list_is_of_version_1_while_it_has_these_lines(matched_run: StoredRun, contract: Contract) -> None:
    """Whoever changes a line raises the version: a stored document says which list it was counted by."""
    oddities = report_page(matched_run, contract).oddities
    assert (LEGAL_ODDITIES_VERSION, [oddity.name for oddity in oddities]) == (
        1,
        [
            "aborted records",
            "transaction markers",
            "empty transactions",
            "records outside a transaction",
            "fenced transactions",
            "compacted offsets",
            "pairs across windows",
            "late partners",
            "values written differently",
        ],
    )
