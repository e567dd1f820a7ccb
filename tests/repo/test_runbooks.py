"""Whoever is paged finds a page: one per class and per name of an alert, with the four things to know at night."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from tallystick.alerting.alert import INCONCLUSIVE, OWN_EXPECTATIONS, SILENCES, TEST
from tallystick.alerting.alert_content import ALERT_TEXTS
from tallystick.cli.app import app
from tallystick.connections.connections import runbook_links
from tallystick.model.finding_names import BreakClass, Doubt, Notice

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "runbooks"
ALERTS = sorted({*BreakClass, *Doubt, *Notice, INCONCLUSIVE, *SILENCES, *OWN_EXPECTATIONS})
HEADINGS = ["What it means", "How to check", "What to do", "What never to do"]
PAGE = pytest.mark.parametrize("alert", ALERTS)


def faults(text: str) -> list[str]:
    """What a page lacks: its four headings in order, with something below each; and commands that exist."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    found = [] if parts[1::2] == HEADINGS else [f"headings: {parts[1::2]}"]
    found += [
        f"nothing below {heading}" for heading, body in zip(parts[1::2], parts[2::2], strict=True) if not body.strip()
    ]
    return found + [f"no command: tallystick {name}" for name in commands_in(text) if name not in COMMANDS]


def commands_in(text: str) -> list[str]:
    """The words after each `tallystick` that stands in code."""
    return re.findall(r"`tallystick ((?:alert |compensation |contract |cut |jars |store )?[a-z-]+)", text)


def _commands() -> set[str]:
    group = get_command(app)
    names: set[str] = {"--version"}
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        names |= {f"{name} {inner}" for inner in getattr(command, "commands", {})} or {name}
    return names


COMMANDS = _commands()


@PAGE
def test_every_class_has_its_page(alert: str) -> None:
    text = (FOLDER / f"{alert}.md").read_text()
    assert faults(text) == []
    assert text.startswith(f"# {ALERT_TEXTS[alert].title}\n`{alert}`")


@PAGE
def test_a_page_of_what_pages_nobody_speaks_of_no_alert_that_names_the_run(alert: str) -> None:
    text = (FOLDER / f"{alert}.md").read_text()
    assert not ("and pages nobody." in text and "the alert names the run" in text)


def test_no_page_stands_without_its_class() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{alert}.md" for alert in ALERTS)


def test_every_topic_of_an_alert_has_its_words() -> None:
    assert {str(alert) for alert in ALERTS} | {TEST} == set(ALERT_TEXTS)


@PAGE
def test_a_page_links_only_pages_that_are_there(alert: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (FOLDER / f"{alert}.md").read_text())
    assert [link for link in links if not (FOLDER / link).is_file()] == []


def test_the_link_of_an_alert_leads_to_its_page() -> None:
    assert (ROOT / runbook_links({})["runbook"].format(alert=ALERTS[0])).is_file()
    elsewhere = runbook_links({"TALLYSTICK_RUNBOOKS_URL": "https://wiki.example.org/tally/"})
    assert elsewhere["runbook"].format(alert="torn_cut") == "https://wiki.example.org/tally/torn_cut.md"


@pytest.mark.parametrize(
    "text",
    [
        "# T\n## What it means\nx\n## How to check\nx\n## What to do\nx\n",
        "# T\n## What it means\nx\n## How to check\nx\n## What to do\n\n## What never to do\nx\n",
        "# T\n## How to check\nx\n## What it means\nx\n## What to do\nx\n## What never to do\nx\n",
        "# T\n## What it means\nx\n## How to check\n`tallystick explode`\n## What to do\nx\n## What never to do\nx\n",
    ],
)
def test_a_page_that_lacks_something_is_found(text: str) -> None:
    assert len(faults(text)) == 1
