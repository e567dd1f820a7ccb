"""What a page shows: no key unless the contract does, and nothing that turns it around."""

from tests.unit.alerting.snapshot_texts import TEXTS


def test_no_text_shows_a_key_unless_the_contract_does() -> None:
    """The keys of the literal breaks are their transactions' too; neither leaves the house."""
    shown = [name for name, text in TEXTS.items() if "transaction-" in text or "match_key" in text]
    assert shown == ["shown_key_of_a_backfill.txt"]


def test_a_key_that_turns_a_page_around_is_written_out() -> None:
    mail = TEXTS["shown_key_of_a_backfill.txt"].split("=== email")[1]
    assert "\u202e" not in mail
    assert "\\u202e" in mail
