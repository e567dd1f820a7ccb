"""What people are told to type is there: every command in the pages for users, and the walk's contract and script."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from lab.servers.stack import LabAddresses
from tallystick.contract.contract import load_contract
from tests.unit.cli.command_line import COMMANDS

ROOT = Path(__file__).parents[2]
GENERATED = ("contract.md", "commands.md", "kafka-settings.md")  # each has a test of its own
PAGES = (
    "README.md",
    *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in GENERATED),
)


def typed(page: str) -> list[list[str]]:
    """Words after `tallystick` on each line of a block of code, or between backticks."""
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    commands = [re.match(r"(?:[A-Z_]+=\S+ )*tallystick (.*)", line) for line in lines]
    return [found[1].split() for found in commands if found]


def test_the_pages_tell_of_commands() -> None:
    assert sum(len(typed(page)) for page in PAGES) > 30


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_page_names_is_there(page: str) -> None:
    for words in typed(page):
        assert any(tuple(words[: len(command)]) == command for command in COMMANDS) or "|" in words[1], words


def test_the_walk_asks_for_addresses_that_its_servers_have_and_migrates_as_the_stores_owner() -> None:
    text = (ROOT / "docs" / "walk.md").read_text()
    asked = set(re.findall(r"\(at ([a-z_]+)\)", text))
    assert asked <= {field.name for field in fields(LabAddresses)}
    (migrate,) = [line for line in text.splitlines() if "tallystick store migrate" in line]
    assert migrate == 'TALLYSTICK_STORE_DSN="$(at store_owner_dsn)" tallystick store migrate --grant-to tallystick'


def test_the_walks_files_are_there_and_its_contract_is_valid() -> None:
    text = (ROOT / "docs" / "walk.md").read_text()
    named = set(re.findall(r"docs/examples/walk/[a-z_.]+\b", text))
    there = [file for file in (ROOT / "docs/examples/walk").iterdir() if file.is_file()]  # Python leaves its byte code
    assert named == {f"docs/examples/walk/{file.name}" for file in there}
    contract = load_contract(ROOT / "docs/examples/walk/shop_orders.yaml")
    for connection in (contract.kafka.connection, contract.ledger.connection):
        assert f"TALLYSTICK_CONN_{connection.upper()}=" in text
