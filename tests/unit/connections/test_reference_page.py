"""docs/kafka-settings.md says what the tables of settings say."""

from pathlib import Path

from tallystick.connections.reference_page import settings_reference

PAGE = Path(__file__).parents[3] / "docs" / "kafka-settings.md"


def test_the_page_of_settings_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_reference(), (
        "run: python -m tallystick.connections.reference_page > docs/kafka-settings.md"
    )
