"""The report: what stands on it, that its bytes do not change, and that a stranger's text stays text."""

import re
from dataclasses import replace

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.item_reason import ReasonCode, read_reason, reason_of
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.report.break_sample import stakes
from tallystick.report.break_story import explain, tell_breaks
from tallystick.report.page import page_of, report_page
from tallystick.report.write_report import render_report
from tests.stored_books import payouts
from tests.unit.report.parsed_page import Page, with_breaks


@pytest.mark.parametrize("name", ["matched_run", "broken_run", "inconclusive_run", "baseline_run"])
def test_each_verdict_stands_big_with_its_reason(name: str, contract: Contract, request: pytest.FixtureRequest) -> None:
    run: StoredRun = request.getfixturevalue(name)
    html = render_report(run, contract)
    assert f"<h1>{run.result.verdict}</h1>" in html
    assert report_page(run, contract).sentence in Page(html).text


def test_the_sections_come_in_the_order_of_a_night_on_call(broken_run: StoredRun, contract: Contract) -> None:
    sections = [
        attributes["id"] for tag, attributes in Page(render_report(broken_run, contract)).elements if tag == "section"
    ]
    assert sections == [
        "money",
        "doubts",
        "breaks",
        "notices",
        "census",
        "sides",
        "items",
        "cut",
        "guarantees",
        "identity",
    ]


def test_a_broken_run_shows_money_breaks_doubts_and_proof(broken_run: StoredRun, contract: Contract) -> None:
    text = Page(render_report(broken_run, contract)).text
    for expected in (
        "400.00 EUR",  # minor units by ISO 4217: two decimals
        "700 JPY",  # none
        "Missing in topic: never produced",
        "Check first:",
        "held by relay-1",
        "since 2026-03-01 11:40:00 UTC",
        "7 offsets = 2 committed + 0 plain + 2 aborted + 3 markers + 0 unexplained",
        "it adds up",
        "ledger:815",  # the item in flight
        "held, 7 offsets behind",
        "9J2xGk3yTf6Q1w",  # topic id
        "7301234567890123456",  # the ledger's system
        "[5,000, 5,200)",
        "isolation.level=read_committed",
        "By xmin",
        contract.fingerprint,
        broken_run.result.digest,
        broken_run.scheduler_run_id,
    ):
        assert expected in text
    for item_break in broken_run.result.breaks:
        assert item_break.match_key in text
        assert item_break.story in text
        assert str(item_break.break_id) in text


def test_the_age_of_all_that_stands_is_told_with_its_money(broken_run: StoredRun, contract: Contract) -> None:
    page = report_page(broken_run, contract)
    assert [(row.words, row.waiting, row.waiting_money, row.broken, row.broken_money) for row in page.ages] == [
        ("under 1 hour", 0, "", 4, "500.00 EUR, 700 JPY"),
        ("1 hour to 1 day", 1, "25.00 EUR", 0, ""),
        ("1 to 7 days", 0, "", 1, "1 not known"),
        ("7 days and over", 0, "", 2, "710.00 EUR"),
    ]
    assert (page.all_ages.waiting, page.all_ages.broken) == (1, 7)
    assert page.all_ages.broken_money == "1,210.00 EUR, 700 JPY and 1 not known"
    assert "Age of the items that wait or are broken after this run" in Page(render_report(broken_run, contract)).text


@pytest.mark.parametrize("code", [ReasonCode.OFFSETS_EXPIRED, ReasonCode.BEFORE_BASELINE, ReasonCode.BEYOND_EVERY_CUT])
def test_what_nobody_can_decide_is_told_for_each_of_its_reasons(
    broken_run: StoredRun, contract: Contract, code: ReasonCode
) -> None:
    undecidable = replace(broken_run.result.items[0], state=ItemState.UNDECIDABLE, reason=reason_of(code))
    run = replace(broken_run, result=replace(broken_run.result, items=(undecidable,)))
    assert report_page(run, contract).item_states == (("1", "undecidable: nobody can say whether it has its partner"),)


def test_a_run_that_read_nothing_claims_no_look_and_tells_what_waits_in_the_books(
    closed_run: StoredRun, matched_run: StoredRun, contract: Contract
) -> None:
    def figure(run: StoredRun, label: str) -> tuple[str, str]:
        return next((one.value, one.note) for one in report_page(run, contract).figures if one.label == label)

    assert figure(closed_run, "Open items") == ("1", "25.00 EUR, carried to the next run")
    assert figure(closed_run, "Breaks") == ("0", "nobody looked")
    assert figure(matched_run, "Breaks") == ("0", "none found")
    html, read = render_report(closed_run, contract), render_report(matched_run, contract)
    for claim in ("Settings as this run read them", "counted in this run's slices", "Records or rows in this slice"):
        assert (claim in html, claim in read) == (False, True)
    text = Page(html).text
    for said in (
        "This run read no settings.",
        "This run read nothing, so it looked for none.",
        "This run read nothing, so it looked for no break.",
        "This run read nothing, so it counted neither side",
        "No partition was counted: this run read nothing.",
        "This run read nothing and judged no item. Open after it, as before: 1, 25.00 EUR.",
    ):
        assert said in text
        assert said not in Page(read).text


def test_where_nothing_stands_no_ages_are_told(inconclusive_run: StoredRun, contract: Contract) -> None:
    assert "Age of the items" not in render_report(inconclusive_run, contract)


@pytest.mark.parametrize(
    ("ledger", "unit"),
    [
        ({}, "Ledger, in database transaction ids"),
        ({"kind": "jdbc", "order_by": "entry_no", "overlap": 0}, "Ledger, in values of entry_no; a timestamp as micro"),
        ({"kind": "parquet", "quiet_seconds": 60}, "Ledger, in milliseconds since 1970"),
        ({"kind": "iceberg"}, "Ledger, in sequence numbers of snapshots"),
    ],
)
def test_the_positions_of_a_ledger_have_the_unit_of_its_kind(
    matched_run: StoredRun, contract: Contract, ledger: dict[str, object], unit: str
) -> None:
    of_kind = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=ledger)})
    assert unit in Page(render_report(matched_run, of_kind)).text


def test_a_matched_run_claims_no_break_and_no_doubt(matched_run: StoredRun, contract: Contract) -> None:
    text = Page(render_report(matched_run, contract)).text
    assert "No break, so no money at stake." in text
    assert "None: the run read everything that was due on both sides." in text


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&--> {{ 7 * 7 }}"


def test_markup_in_a_strangers_text_stays_text(broken_run: StoredRun, contract: Contract) -> None:
    first = broken_run.result.breaks[0]
    hostile = replace(
        first,
        match_key=HOSTILE,
        transaction_key=HOSTILE,
        leg=HOSTILE,
        currency=HOSTILE[:20],
        story=HOSTILE,
        evidence={HOSTILE: HOSTILE, "nested": [{"session": HOSTILE}]},
    )
    doubt = replace(broken_run.result.doubts[0], sentence=HOSTILE, details={"holder": HOSTILE, "since_utc": HOSTILE})
    item = replace(
        broken_run.result.items[0], match_key=HOSTILE, leg=HOSTILE, reason=read_reason(HOSTILE), item_id=HOSTILE
    )
    run = replace(
        broken_run,
        scheduler_run_id=HOSTILE,
        result=replace(broken_run.result, breaks=(hostile,), doubts=(doubt,), items=(item,)),
    )
    hostile_contract = contract.model_copy(update={"description": HOSTILE, "owner": HOSTILE})
    page = Page(render_report(run, hostile_contract))
    harmless = Page(render_report(with_breaks(broken_run, first), contract))
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in harmless.elements}
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert HOSTILE in page.text
    assert "49" not in page.text.split("{{")[1][:10]


def test_the_page_asks_no_network_and_runs_no_script(many_breaks_run: StoredRun, contract: Contract) -> None:
    html = render_report(many_breaks_run, contract)
    page = Page(html)
    assert not {"script", "iframe", "img", "object", "form"} & {tag for tag, _ in page.elements}
    policy = [found["content"] for tag, found in page.elements if tag == "meta" and found.get("http-equiv")]
    assert policy[0] is not None
    assert policy[0].startswith("default-src 'none'")
    links = {value for _, found in page.elements for name in ("href", "src") if (value := found.get(name))}
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert "@import" not in html
    assert set(re.findall(r"url\(([^)]*)\)", html)) <= {"#plain", "#aborted", "#unexplained", "#compacted"}
    assert "http" not in html.replace("http-equiv", "")


def test_every_link_leads_somewhere_and_no_id_stands_twice(broken_run: StoredRun, contract: Contract) -> None:
    page = Page(render_report(broken_run, contract))
    ids = [found["id"] for _, found in page.elements if "id" in found]
    assert len(set(ids)) == len(ids)
    links = {str(found["href"])[1:] for tag, found in page.elements if tag == "a"}
    assert links <= set(ids)


def test_every_picture_has_words_and_every_table_a_caption(broken_run: StoredRun, contract: Contract) -> None:
    page = Page(render_report(broken_run, contract))
    pictures = [found for tag, found in page.elements if tag == "svg"]
    assert pictures
    assert all(found.get("aria-label") or found.get("aria-hidden") for found in pictures)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("caption") == tags.count("table") > 0


def test_five_thousand_breaks_stay_a_page_with_whole_counts(many_breaks_run: StoredRun, contract: Contract) -> None:
    html = render_report(many_breaks_run, contract)
    text = Page(html).text
    assert len(html.encode()) < 2_000_000
    assert "5,000 breaks in 3 classes" in text
    assert html.count('id="break-') == 500
    for break_class in {item_break.break_class for item_break in many_breaks_run.result.breaks}:
        assert f'id="{break_class}"' in html
    assert "more breaks in the verdict store" in text


def test_a_break_tells_the_same_story_as_the_command_line(broken_run: StoredRun, contract: Contract) -> None:
    text = Page(render_report(broken_run, contract)).text
    for told in tell_breaks(broken_run, broken_run.result.breaks).values():
        for paragraph in explain(told).paragraphs:
            for sentence in paragraph.sentences:
                assert re.sub(r"\s+", " ", sentence) in text


def test_a_window_that_was_judged_late_says_what_its_slices_end_by(matched_run: StoredRun, contract: Contract) -> None:
    late = replace(matched_run, cut=replace(matched_run.cut, by_time=True))
    assert "No run looked when this window ended" in render_report(late, contract)
    assert "Nobody looked" not in render_report(matched_run, contract)


def test_a_run_that_read_what_held_windows_could_not_says_so(matched_run: StoredRun, contract: Contract) -> None:
    words = Page(render_report(replace(matched_run, completes=(5, 6)), contract)).text
    assert "It also read what cuts 5, 6 could not read because a side was held" in words
    assert (
        "It also read what cut 5 could not" in Page(render_report(replace(matched_run, completes=(5,)), contract)).text
    )
    assert "because a side was held" not in Page(render_report(matched_run, contract)).text


def test_the_page_of_a_run_that_was_read_without_its_breaks_says_what_its_report_says(broken_run: StoredRun) -> None:
    whole = report_page(broken_run, payouts())
    head = replace(broken_run, result=replace(broken_run.result, breaks=(), items=()))
    counted = page_of(head, payouts(), stakes(broken_run.result.breaks))
    assert (counted.sentence, counted.figures, counted.stakes) == (whole.sentence, whole.figures, whole.stakes)
    assert (counted.census_bars, counted.guarantees) == (whole.census_bars, whole.guarantees)
