"""docs/commands.md says what the command line says: every command, every option, every default."""

import re
from pathlib import Path

from tallystick.cli.reference_page import command_reference
from tests.unit.cli.command_line import COMMANDS

ROOT = Path(__file__).parents[3]


def test_the_page_in_the_repository_is_the_one_the_code_writes() -> None:
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == command_reference(), (
        "run: python -m tallystick.cli.reference_page > docs/commands.md"
    )


def test_every_command_has_its_section_its_line_above_and_an_example() -> None:
    page = command_reference()
    sections = dict(re.findall(r"^## (tallystick [a-z -]+)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL))
    assert sorted(sections) == sorted(f"tallystick {' '.join(command)}" for command in COMMANDS)
    for name, section in sections.items():
        assert f"- [`{name}`](#{name.replace(' ', '-')}): " in page
        assert re.search(rf"^([A-Z_]+=\S+ )?{name}", section.split("```")[3].strip()), name


def test_every_option_says_what_it_does_and_its_default() -> None:
    page = command_reference()
    rows = re.findall(r"^\| `(.+?)` \| (.*) \|$", page, flags=re.MULTILINE)
    assert [words for words, says in rows if not says.endswith(".")] == []
    assert ("--limit N", "How many, newest first. Default: 20.") in rows
    assert ("--by NAME", "Who decided it. Required.") in rows
    assert ("--json", "One JSON document on stdout; its keys are stable.") in rows
    assert dict(rows)["--settle, --no-settle"].endswith(" Default: --settle.")
    assert "None" not in page


def test_a_default_that_is_no_word_is_said_in_words_and_once() -> None:
    rows = dict(re.findall(r"^\| `(.+?)` \| (.*) \|$", command_reference(), flags=re.MULTILINE))
    assert [words for words, says in rows.items() if re.search(r"Default: \.|Default: .*Default: ", says)] == []
    assert rows["--folder DIR"] == "Where to write the file. Default: the folder you are in."
    assert rows["--repository URL"].endswith("Default: Ivy's own.")
    assert rows["--host ADDRESS"].endswith("Default: 127.0.0.1.")


def test_every_row_stays_inside_its_table() -> None:
    for line in command_reference().splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) == 3, line
