"""A file that is no mapping, is missing or is no text is refused by name in one line."""

import re
from pathlib import Path

import pytest

from tallystick.contract.contract import ContractRefused, load_contract
from tallystick.host.yaml_file import read_mapping
from tests.unit.contract.documents import refusal

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
"""Ten times ten times ten values, in nine lines."""

DEEP_BY_ALIASES = f"a: [&a0 [b], {', '.join(f'&a{n} [*a{n - 1}]' for n in range(1, 1_001))}]\n? [*a1000]\n: c\n"
"""A key is made whole before what its aliases name is."""


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("", "got nothing; expected a mapping that begins with 'contract:'"),
        ("- contract: billing\n", "got a list; expected a mapping that begins with 'contract:'"),
        ("billing\n", "got a text; expected a mapping that begins with 'contract:'"),
        ("contract: [billing\n", "not readable as YAML: line 2, column 1: expected ',' or ']', but got '<stream end>'"),
        ("contract: billing\n\towner: x\n", "not readable as YAML: line 2, column 1: found character '\\t'"),
        ("a: 1\n---\na: 2\n", "not readable as YAML: line 2, column 1: but found another document"),
        ("a: !!python/object:os.system x\n", "not readable as YAML: line 1, column 4: could not determine a construc"),
        ("? [a]\n: b\n", "not readable as YAML: line 1, column 3: a key is a list; expected a text"),
        ("? {a: b}\n: c\n", "not readable as YAML: line 1, column 3: a key is a mapping; expected a text"),
        (
            "start_date: 2026-99-99\n",
            "not readable as YAML: line 1, column 13: this is no timestamp; expected one",
        ),
        ('owner: "a\\ud83d"\n', "not readable as YAML: line 1, column 8: a text has half a surrogate pair"),
        ('version: !!int ""\n', "not readable as YAML: line 1, column 10: this is no int; expected one"),
        ("version: !!float x\n", "not readable as YAML: line 1, column 10: this is no float; expected one"),
        (f"version: {'1:' * 200}1.0\n", "not readable as YAML: line 1, column 10: this is no float; expected one"),
        (f"version: 1{'0' * 5_000}\n", "not readable as YAML: line 1, column 10: this is no int; expected one"),
        (
            f"a: {'[' * 3_000}",
            "not readable as YAML: line 1, column 22: it is nested more than 20 deep; expected a contract",
        ),
        (DEEP_BY_ALIASES, "not readable as YAML: it is nested too deep; expected a contract"),
        (f"a: {'b' * (64 << 10)}", "got more than 65,536 bytes; expected a contract"),
        ("a: &a {b: *a}\n", "its aliases say more than 100,000 values, or say themselves; expected a contract"),
        (BOMB, "its aliases say more than 100,000 values, or say themselves; expected a contract"),
        (
            "legs:\n  pay: billing\n  pay: refunds\n",
            "not readable as YAML: line 3, column 3: the key 'pay' stands twice in one mapping; expected it once",
        ),
    ],
)
def test_a_file_that_is_no_yaml_mapping_is_refused_in_one_line(tmp_path: Path, text: str, refused: str) -> None:
    assert refusal(tmp_path, text).startswith(refused)


@pytest.mark.parametrize("value", [f"{'[' * 18}{']' * 18}", f"'{'b' * 65_000}'", '"\\U0001f4b6"'])
def test_one_that_is_as_deep_or_as_long_as_it_may_be_is_read(tmp_path: Path, value: str) -> None:
    path = tmp_path / "billing.yaml"
    path.write_text(f"a: {value}\n")
    assert [*read_mapping(path)] == ["a"]


def test_a_missing_file_a_folder_and_a_binary_file_are_refused_by_name(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"contract: \xff")
    for path, refused in (
        (tmp_path / "none.yaml", "no such file; expected a contract in YAML"),
        (tmp_path, "Is a directory; expected a readable file"),
        (binary, "byte 10 is no UTF-8; expected a text file in UTF-8"),
    ):
        with pytest.raises(ContractRefused, match=re.escape(f"{path}: {refused}")):
            load_contract(path)
