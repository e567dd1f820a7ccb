"""The report: what stands on it, that its bytes do not change, and that a stranger's text stays text."""

import hashlib
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tallystick.contract.contract import Contract
from tallystick.judging.allowed_oddities import LEGAL_ODDITIES_VERSION
from tallystick.kafka_cluster.config_check import CheckResult
from tallystick.kafka_cluster.state import SURROUNDINGS, ClusterState, TopicSettings
from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.findings import Break, NoticeFound
from tallystick.model.offsets import TopicPartition
from tallystick.model.partner_lag import Grace, RunLag, lags_of_pairs
from tallystick.model.run_result import IndexFile, KeyIndex
from tallystick.model.stored_run import StoredRun
from tallystick.report.break_story import explain, tell_breaks
from tallystick.report.guarantees import guarantees
from tallystick.report.leg_marks import leg_marks
from tallystick.report.log_excerpt import LogStrip, StripBatch
from tallystick.report.page import report_page
from tallystick.report.strip_drawing import draw_strip
from tallystick.report.write_report import render_report, report_path, write_report
from tests.unit.builders import T2T, contract_of

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Text per section, and every element, of a page whose tags must close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


def with_lag(run: StoredRun, lag: RunLag | None) -> StoredRun:
    return replace(run, result=replace(run.result, lag=lag))


def with_breaks(run: StoredRun, *breaks: Break) -> StoredRun:
    return replace(run, result=replace(run.result, breaks=breaks))


def with_census(run: StoredRun, *census: PartitionCensus) -> StoredRun:
    return replace(run, result=replace(run.result, figures=replace(run.result.figures, census=census)))


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
        "the law holds",
        "ledger:815",  # the item in flight
        "held, 7 behind",
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
    assert "Age of all that stands after this run" in Page(render_report(broken_run, contract)).text


def test_where_nothing_stands_no_ages_are_told(inconclusive_run: StoredRun, contract: Contract) -> None:
    assert "Age of all that stands" not in render_report(inconclusive_run, contract)


def test_a_matched_run_claims_no_break_and_no_doubt(matched_run: StoredRun, contract: Contract) -> None:
    text = Page(render_report(matched_run, contract)).text
    assert "No break, so no money at stake." in text
    assert "None: all that was due on both sides could be seen." in text


def test_an_offset_that_nobody_explains_is_seen(matched_run: StoredRun, contract: Contract) -> None:
    one, two = matched_run.result.figures.census
    gap = replace(one, unexplained=1, kafka_offset_end=one.kafka_offset_end + 1)
    page = report_page(with_census(matched_run, two, gap), contract)
    assert not page.law_holds
    assert page.census_bars[0].name == "billing.fees[0]"  # the odd one first
    assert page.census_bars[0].tone == "doubtful"
    html = render_report(with_census(matched_run, two, gap), contract)
    assert "the law does not hold" in html
    assert 'fill="url(#unexplained)"' in str(page.census_bars[0].bar)


def test_a_reader_that_counts_differently_is_seen(matched_run: StoredRun, contract: Contract) -> None:
    one, two = matched_run.result.figures.census
    html = render_report(with_census(matched_run, replace(one, spark_rows=2), two), contract)
    assert "counts differently in 1 partition" in html
    assert "counted the same" in render_report(matched_run, contract)


def test_the_slicing_is_named_with_the_guarantee_it_gives(matched_run: StoredRun, contract: Contract) -> None:
    ledger = contract.ledger.model_copy(update={"slice_by": "written_xid"})
    other = contract.model_copy(update={"ledger": ledger})
    assert "By xmin" in render_report(matched_run, contract)
    assert "By the column written_xid" in render_report(matched_run, other)
    grows = {"kind": "jdbc", "order_by": "entry_id", "overlap": 10}
    weaker = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=grows)})
    assert "By the column entry_id with an overlap of 10, weaker than a horizon" in render_report(matched_run, weaker)
    files = {"kind": "parquet", "quiet_seconds": 60}
    listed = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=files)})
    assert "By path and modification manifest: each file is read once" in render_report(matched_run, listed)


def test_by_written_xid_the_report_says_what_is_seen_and_what_is_not(matched_run: StoredRun) -> None:
    def says(**ledger: object) -> str:
        table = {"connection": "ledger_billing", "table": "billing.payout", "slice_by": "written_xid"}
        return dict(guarantees(matched_run, contract_of(ledger=table | ledger)))["Ledger slices"]

    for one in (says(), says(earlier_rows="archived", compared_windows=24)):
        assert "a row without an id, with an older one or with one that was not given out yet is in no cut" in one
        assert "A deleted row and one that comes into the same slice between two runs cancel out" in one
        assert "strong" not in one
    assert "A row that was read and is deleted later shows in its slice's count, once" in says()
    assert "Rows that are deleted later are not seen" in says(earlier_rows="archived")
    assert "Not seen: a row whose amount, currency or key is changed after it was paired" in says()
    assert "What the rows of 24 windows back say is read again and compared" in says(compared_windows=24)


def test_the_index_of_keys_is_named_with_its_size_its_horizon_and_what_it_leaves_open(matched_run: StoredRun) -> None:
    index = KeyIndex(copies=4, kept_from=1, files=(IndexFile(path="a", size_bytes=62, sha256="0"),))
    run = replace(matched_run, result=replace(matched_run.result, key_index=index))
    lines = dict(guarantees(run, contract_of(T2T)))
    assert "in the last 168 windows" in lines["Index of keys"]
    assert "holds 4 copies in 62 bytes, 15.5 bytes a copy" in lines["Index of keys"]
    assert "Ledger slices" not in lines
    assert "Index of keys" not in dict(guarantees(matched_run, contract_of()))
    seeded = replace(matched_run, result=replace(matched_run.result, key_index=replace(index, seed=7)))
    assert not seeded.result.of_inputs
    memory = dict(guarantees(seeded, contract_of()))["Memory of keys"]
    assert "of the last 168 windows: one that comes again is a duplicate" in memory
    assert "holds 4 copies in 62 bytes" in memory
    assert "None: this run is older" in dict(guarantees(matched_run, contract_of()))["Memory of keys"]
    page = render_report(run, contract_of(T2T))
    assert "pairs of output and input agree" in page
    assert ">Input topic</th>" in page
    assert ">Ledger</th>" in render_report(matched_run, contract_of())


RENDER = """
import hashlib, pickle, sys
from tallystick.report.write_report import render_report
run, contract = pickle.load(open(sys.argv[1], "rb"))
print(hashlib.sha256(render_report(run, contract).encode()).hexdigest())
"""


def test_two_processes_write_the_same_bytes(many_breaks_run: StoredRun, contract: Contract, tmp_path: Path) -> None:
    stored = tmp_path / "run.pickle"
    stored.write_bytes(pickle.dumps((many_breaks_run, contract)))
    hashes = {
        subprocess.run(
            [sys.executable, "-c", RENDER, str(stored)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert hashes == {hashlib.sha256(render_report(many_breaks_run, contract).encode()).hexdigest() + "\n"}


def test_the_zone_a_database_answers_in_changes_no_byte(matched_run: StoredRun, contract: Contract) -> None:
    tokyo = timezone(timedelta(hours=9))
    moved = replace(
        matched_run,
        window_start_utc=matched_run.window_start_utc.astimezone(tokyo),
        window_end_utc=matched_run.window_end_utc.astimezone(tokyo),
        recorded_at=matched_run.recorded_at.astimezone(tokyo),
        now_utc=matched_run.now_utc.astimezone(tokyo),
    )
    assert render_report(moved, contract) == render_report(matched_run, contract)


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
    item = replace(broken_run.result.items[0], match_key=HOSTILE, leg=HOSTILE, reason=HOSTILE, item_id=HOSTILE)
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


def test_a_run_with_many_partitions_draws_some_and_lists_all(matched_run: StoredRun, contract: Contract) -> None:
    one = matched_run.result.figures.census[0]
    census = tuple(replace(one, partition=number) for number in range(100))
    html = render_report(with_census(matched_run, *census), contract)
    assert "And 60 more partitions in the table." in html
    assert "billing.fees[99]" in html


def test_a_report_is_written_whole_or_not_at_all(
    matched_run: StoredRun, contract: Contract, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(matched_run, contract, tmp_path)
    assert path == report_path(tmp_path, "billing_payouts", 6)
    assert path.read_text(encoding="utf-8") == render_report(matched_run, contract)
    before = path.read_bytes()

    def fails(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_report(matched_run, contract, tmp_path)
    assert path.read_bytes() == before


def test_an_amount_that_nobody_knows_is_not_zero(broken_run: StoredRun, contract: Contract) -> None:
    unknown = replace(broken_run.result.breaks[0], currency="", amount_minor=0, break_class=BreakClass.PHANTOM_IN_TOPIC)
    text = Page(render_report(with_breaks(broken_run, unknown), contract)).text
    assert "Amount not known" in text
    assert "0.00" not in text.split("Money at stake")[-1].split("Doubts")[0]


def test_compacted_offsets_are_named_and_counted_only_where_there_are_any(
    matched_run: StoredRun, contract: Contract
) -> None:
    one, two = matched_run.result.figures.census
    holed = replace(one, compacted=5, holes=5, empty_transactions=4, kafka_offset_end=one.kafka_offset_end + 5)
    page = report_page(with_census(matched_run, holed, two), contract)
    assert page.law.endswith("+ 5 compacted + 0 unexplained")
    assert page.law_holds
    compacts = [bar for bar in page.census_bars if "url(#compacted)" in str(bar.bar)]
    assert [bar.name for bar in compacts] == ["billing.fees[0]"]
    assert "compacted away" in Page(render_report(with_census(matched_run, holed, two), contract)).text
    assert "compacted away" not in Page(render_report(matched_run, contract)).text


def with_notices(run: StoredRun, *notices: NoticeFound) -> StoredRun:
    return replace(run, result=replace(run.result, notices=notices))


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
    assert text.index("on-call was told") < text.index("3 offsets expire.") < text.index(quiet.sentence)
    assert "Nothing to tell." in Page(render_report(matched_run, contract)).text


def test_legal_oddities_are_counted_under_their_lists_version(matched_run: StoredRun, contract: Contract) -> None:
    late = NoticeFound(notice=Notice.LATE_PARTNER, sentence="Late.", count=3)
    counts = {oddity.name: oddity.count for oddity in report_page(with_notices(matched_run, late), contract).oddities}
    assert counts["aborted records"] == 2
    assert counts["transaction markers"] == 3
    assert counts["late partners"] == 3
    assert f"list {LEGAL_ODDITIES_VERSION}" in Page(render_report(matched_run, contract)).text


def test_the_posture_is_told_by_the_settings_that_the_run_stored(matched_run: StoredRun, contract: Contract) -> None:
    unread = report_page(matched_run, contract).posture
    assert {line.standing for line in unread if line.setting == "cleanup.policy"} == {CheckResult.UNKNOWN}
    read = TopicSettings(
        topic="billing.fees",
        replication_factor=3,
        in_sync_replicas=3,
        min_insync_replicas=1,
        unclean_leader_election=False,
        cleanup_policy=("delete",),
        retention_ms=-1,
        retention_bytes=-1,
        message_timestamp_type="CreateTime",
    )
    look_ups = {"surroundings": SURROUNDINGS.dump_python(ClusterState(topic_settings=(read,)), mode="json")}
    run = replace(matched_run, result=replace(matched_run.result, look_ups=look_ups))
    standings = {
        line.setting: line.standing for line in report_page(run, contract).posture if line.scope == "billing.fees"
    }
    assert standings["min.insync.replicas"] is CheckResult.AT_RISK
    assert standings["cleanup.policy"] is CheckResult.OK
    assert "set 2 with three replicas" in Page(render_report(run, contract)).text


def test_a_baseline_claims_no_posture(baseline_run: StoredRun, contract: Contract) -> None:
    baseline = replace(baseline_run, cut=replace(baseline_run.cut, n=0))
    assert "A baseline reads no settings." in Page(render_report(baseline, contract)).text


STRIP = LogStrip(
    topic_partition=TopicPartition(topic="billing.fees", partition=0),
    kafka_offset=17,
    batches=(
        StripBatch(kafka_offset_start=15, kafka_offset_end=16, kind="plain", producer_id=-1, producer_epoch=-1),
        StripBatch(kafka_offset_start=16, kafka_offset_end=19, kind="aborted", producer_id=4001, producer_epoch=3),
        StripBatch(kafka_offset_start=19, kafka_offset_end=20, kind="abort marker", producer_id=4001, producer_epoch=4),
        StripBatch(kafka_offset_start=24, kafka_offset_end=25, kind="open", producer_id=7, producer_epoch=0),
    ),
)


def test_the_log_around_a_break_is_drawn_from_what_was_stored(broken_run: StoredRun, contract: Contract) -> None:
    first, second, *_ = broken_run.result.breaks
    drawn = replace(first, evidence={**first.evidence, "strip": STRIP.to_json()})
    html = render_report(with_breaks(broken_run, drawn, second), contract)
    page = Page(html)
    assert html.count('<svg class="strip"') == 1
    assert (
        "billing.fees[0] around offset 17: 15 plain; 16 to 18 aborted by producer 4001 epoch 3; "
        "19 abort marker by producer 4001 epoch 4; 24 open by producer 7 epoch 0"
    ) in {found.get("aria-label") for _, found in page.elements}
    for expected in ("offset what producer epoch 15", "16 3 aborted 4001 3", "its producer transaction", "4 empty"):
        assert expected in page.text
    assert "strip.batches" not in page.text


@pytest.mark.parametrize(
    ("kafka_offset", "words"),
    [(17, "its producer transaction"), (24, "its producer transaction, which does not end here"), (15, None)],
    ids=["ended by a marker", "open", "plain"],
)
def test_the_transaction_of_the_break_is_underlined_to_its_marker(kafka_offset: int, words: str | None) -> None:
    drawn = str(draw_strip(replace(STRIP, kafka_offset=kafka_offset)))
    assert drawn.count('class="span"') == (0 if words is None else 1)
    if words is not None:
        assert f">{words}</text>" in drawn
        start = re.search(r'<text x="(\d+)" y="\d+" class="span"', drawn)
        width = re.search(r' width="(\d+)"', drawn)
        assert start and width and int(start[1]) + 6 * len(words) <= int(width[1])  # a letter's width, generously


def test_every_leg_is_marked_as_committed_aborted_or_nowhere(broken_run: StoredRun, contract: Contract) -> None:
    legs = {"fee": "billing.fees", "payout": "billing.payouts", "tax": "billing.taxes"}
    payout, fee = "topic:billing.payouts:0:17", "topic:billing.fees:0:3"
    span = {"first_offset": 3, "marker": "abort", "marker_offset": 4, "marker_epoch": 1}
    torn = replace(
        broken_run.result.breaks[-1],
        leg="fee+tax",
        evidence={
            "seen_legs": {"payout": payout},
            "found_elsewhere": [
                {"at": fee, "place": "aborted"},
                {"at": "topic:billing.taxes:0:5", "place": "before_baseline"},
            ],
            "identities": {payout: {"at": payout, "producer_id": -1, "span": None}, fee: {"at": fee, "span": span}},
        },
    )
    three = contract.model_copy(update={"legs": legs})
    assert [(mark.leg, mark.state, mark.words) for mark in leg_marks(torn, legs)] == [
        ("fee", "aborted", "aborted at offset 3 of billing.fees[0], abort marker at 4"),
        ("payout", "committed", "committed at offset 17 of billing.payouts[0]"),
        ("tax", "absent", "nowhere on the retained log"),
    ]
    html = render_report(with_breaks(broken_run, torn), three)
    for state in ("committed", "aborted", "absent"):
        assert html.count(f'<li class="{state}">') == 1
    assert leg_marks(broken_run.result.breaks[0], legs) == ()


def test_a_break_tells_the_same_story_as_the_command_line(broken_run: StoredRun, contract: Contract) -> None:
    text = Page(render_report(broken_run, contract)).text
    for told in tell_breaks(broken_run, broken_run.result.breaks).values():
        for paragraph in explain(told).paragraphs:
            for sentence in paragraph.sentences:
                assert re.sub(r"\s+", " ", sentence) in text


# How late partners came.


def measured(*lags_ms: int, grace: Grace) -> RunLag:
    return RunLag(topics=lags_of_pairs(("billing.payouts", lag_ms) for lag_ms in lags_ms), grace=grace)


def test_lags_are_drawn_from_the_fastest_bucket_to_the_slowest(matched_run: StoredRun, contract: Contract) -> None:
    run = with_lag(matched_run, measured(5, 15, 15, 70, 10**9, grace=Grace(seconds=60)))
    (table,) = report_page(run, contract).lags
    assert (table.rows[0].words, table.rows[-1].words) == ("up to 10 ms", "over 46.7 h")
    assert [row.count for row in table.rows[:4]] == [1, 2, 0, 1]
    assert sum(row.count for row in table.rows) == 5
    assert table.summary == "5 pairs: half of them within 20 ms, 99 of 100 within 93.3 h, 999 of 1,000 within 93.3 h"
    assert table.summary in Page(render_report(run, contract)).text


@pytest.mark.parametrize(
    ("grace", "words"),
    [
        (Grace(seconds=60), "as the contract says; no clean run has measured"),
        (
            Grace(seconds=60, measured_ms=640, clean_runs=1),
            "clean run, 999 of 1,000 came within 640 ms, which the",
        ),
        (Grace(seconds=164, measured_ms=163_840, clean_runs=9), "within 2.8 min, more than the 60 seconds that the"),
        (
            Grace(seconds=164, measured_ms=163_840, clean_runs=9, pairs=1_000),
            "in 9 clean runs, 999 of 1,000 came within 2.8 min",
        ),
        (
            Grace(seconds=164, measured_ms=163_840, clean_runs=9, pairs=999),
            "in 9 clean runs, all but the longest of 999 pairs, too few for 999 of 1,000, came within 2.8 min, more",
        ),
        (Grace(seconds=3_600, measured_ms=5_242_880, clean_runs=2), "within 1.5 h, so the grace is its cap"),
    ],
)
def test_the_grace_says_why_it_is_what_it_is(
    matched_run: StoredRun, contract: Contract, grace: Grace, words: str
) -> None:
    page = report_page(with_lag(matched_run, measured(5, grace=grace)), contract)
    assert words in dict(page.guarantees)["Grace"]


def test_a_cap_at_the_contracts_own_grace_is_not_said_to_cover_what_took_longer(
    matched_run: StoredRun, contract: Contract
) -> None:
    capped = contract.model_copy(update={"partner_grace_seconds": 60, "partner_grace_cap_seconds": 60})
    run = with_lag(matched_run, measured(5, grace=Grace(seconds=60, measured_ms=81_920, clean_runs=2)))
    assert "within 1.4 min, so the grace is its cap" in dict(report_page(run, capped).guarantees)["Grace"]


def test_an_older_run_has_measured_nothing(matched_run: StoredRun, contract: Contract) -> None:
    page = report_page(with_lag(matched_run, None), contract)
    assert page.lags == ()
    assert "no clean run has measured" in dict(page.guarantees)["Grace"]


def test_a_window_that_was_judged_late_says_what_its_slices_end_by(matched_run: StoredRun, contract: Contract) -> None:
    late = replace(matched_run, cut=replace(matched_run.cut, by_time=True))
    assert "Nobody looked when this window ended" in render_report(late, contract)
    assert "Nobody looked" not in render_report(matched_run, contract)


def test_a_run_that_read_what_held_windows_could_not_says_so(matched_run: StoredRun, contract: Contract) -> None:
    words = Page(render_report(replace(matched_run, settles=(5, 6)), contract)).text
    assert "It also read what cuts 5, 6 could not, because a side was held" in words
    assert "It also read what cut 5 could not" in Page(render_report(replace(matched_run, settles=(5,)), contract)).text
    assert "because a side was held" not in Page(render_report(matched_run, contract)).text
