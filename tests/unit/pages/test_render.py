"""A stranger's text stays text on a page, and every asset is there and names no other host."""

from dataclasses import replace

from tallystick.contract.contract import Contract
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.pages.render import ASSETS, render_page
from tallystick.report.page import page_of
from tallystick.store.breaks.item_query_store import BreakListing
from tallystick.tracing.hop import Trace
from tests.unit.pages.books_shown import page_of_break, told
from tests.unit.pages.plans_told import NOON


def test_a_strangers_text_stays_text() -> None:
    wicked = '"><script>alert(1)</script>\u202e'
    one = told(ItemState.BROKEN)
    found = replace(one.item_break, match_key=wicked, leg=wicked, story=wicked, evidence={wicked: wicked})
    html = render_page(
        "break",
        base="/b",
        now_utc=NOON,
        page=page_of_break(replace(one, item_break=found)),
        runbook="docs/x.md",
        address="a",
        token="t",
    )
    assert "<script>alert" not in html and "\u202e" not in html


def test_a_sentence_of_ours_stands_on_a_page_to_its_end(broken_run: StoredRun, contract: Contract) -> None:
    long = "It names " + ", ".join(f"offset {n}" for n in range(60)) + " and 7 more."
    found = replace(broken_run.result.breaks[0], story=long, match_key="k" * 400)
    run = render_page(
        "run",
        base="/b",
        now_utc=NOON,
        page=page_of(broken_run, contract, ()),
        breaks=BreakListing(breaks=(found,), next_after=""),
        stakes=[],
        chosen="",
        pruned=None,
        canaries="",
        titles={found.break_class: "Amount mismatch"},
        has_report=False,
        has_data_docs=False,
    )
    assert long in run and "(400 characters)" in run
    trace = render_page(
        "trace",
        base="/b",
        now_utc=NOON,
        asked=True,
        traces=(Trace(sentence=long, hops=(), lost_at=None),),
        silent=(),
        hidden=(),
        tones={},
        token="t",
    )
    assert long in trace


def test_every_asset_is_there_and_names_no_other_host() -> None:
    for path, _ in ASSETS.values():
        text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in text and "@import" not in text
