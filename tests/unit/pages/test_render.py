"""A stranger's text stays text on a page, and every asset is there and names no other host."""

from dataclasses import replace

from tallystick.model.open_item import ItemState
from tallystick.pages.render import ASSETS, render_page
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


def test_every_asset_is_there_and_names_no_other_host() -> None:
    for path, _ in ASSETS.values():
        text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in text and "@import" not in text
