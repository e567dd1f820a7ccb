"""What a row of the report says of strangers' text, of an amount that nobody knows and of a notice."""

import re
from dataclasses import replace

from tallystick.contract.contract import Contract
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.stored_run import StoredRun
from tallystick.report.page import report_page
from tallystick.report.write_report import render_report
from tests.unit.report.parsed_page import Page, with_breaks, with_notices


def test_a_direction_mark_in_a_match_key_is_written_out(broken_run: StoredRun, contract: Contract) -> None:
    run = with_breaks(broken_run, replace(broken_run.result.breaks[0], match_key="ev-1\u202e2\x00\x1b[31m"))
    html = render_report(run, contract)
    assert "ev-1\\u202e2\\u0000\\u001b[31m" in html
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", html)


def test_a_right_to_left_name_itself_is_left_alone(broken_run: StoredRun, contract: Contract) -> None:
    run = with_breaks(broken_run, replace(broken_run.result.breaks[0], match_key="\u05ea\u05e9\u05dc\u05d5\u05dd"))
    assert "\u05ea\u05e9\u05dc\u05d5\u05dd" in render_report(run, contract)


def test_an_endless_key_is_cut_and_says_so(broken_run: StoredRun, contract: Contract) -> None:
    run = with_breaks(broken_run, replace(broken_run.result.breaks[0], match_key="k" * 1_000_000))
    html = render_report(run, contract)
    assert len(html) < 100_000
    assert "(1,000,000 characters)" in html


def test_an_amount_that_nobody_knows_is_not_zero(broken_run: StoredRun, contract: Contract) -> None:
    unknown = replace(broken_run.result.breaks[0], currency="", amount_minor=0, break_class=BreakClass.PHANTOM_IN_TOPIC)
    text = Page(render_report(with_breaks(broken_run, unknown), contract)).text
    assert "Amount not known" in text
    assert "0.00" not in text.split("Money at stake")[-1].split("Doubts")[0]


def test_a_notice_stands_beside_the_verdict_the_ones_that_page_first(
    matched_run: StoredRun, contract: Contract
) -> None:
    quiet = NoticeFound(notice=Notice.UNFILTERED_READER, sentence="The consumer reads uncommitted.")
    loud = NoticeFound(
        notice=Notice.RETENTION_OVERTAKES, sentence="3 offsets expire.", pages=True, details={"offset": 17}
    )
    page = report_page(with_notices(matched_run, quiet, loud), contract)
    assert [row.notice for row in page.notices] == ["retention_overtakes", "unfiltered_reader"]
    text = Page(render_report(with_notices(matched_run, quiet, loud), contract)).text
    assert text.index("on-call was alerted") < text.index("3 offsets expire.") < text.index(quiet.sentence)
    assert "No notices." in Page(render_report(matched_run, contract)).text
