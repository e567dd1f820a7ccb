"""The log around a break is drawn, and its transaction underlined to its marker."""

import re
from dataclasses import replace

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.offsets import TopicPartition
from tallystick.model.stored_run import StoredRun
from tallystick.report.log_excerpt import LogStrip, StripBatch
from tallystick.report.strip_drawing import draw_strip
from tallystick.report.write_report import render_report
from tests.unit.report.parsed_page import Page, with_breaks

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
