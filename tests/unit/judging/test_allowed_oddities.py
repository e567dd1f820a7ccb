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
