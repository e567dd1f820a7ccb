"""No rule decides by what a sentence says: it compares codes, classes and places, so that words are free to change."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tallystick.model.item_reason import ReasonCode

ROOT = Path(__file__).parents[2]
RULES = ("model", "matching", "anomalies", "judging", "compensation", "store", "pipeline", "executor")
ASKS_OF_TEXT = {"startswith", "endswith", "find", "index", "count", "removeprefix", "match", "fullmatch", "search"}
SAYS = {"stored", "sentence"}
"""Attributes that hold a sentence. An item's `reason` is no text: mypy refuses to compare it with one."""


def find_sentences_read(source: str, constants: Collection[str] = ()) -> list[int]:
    """Return the line of each comparison with a sentence, or of what holds one. constants: names of sentences."""
    return sorted(
        {
            node.lineno
            for node, operands in _questions(ast.parse(source))
            for operand in operands
            if any(_is_sentence(one, constants) for one in ast.walk(operand))
        }
    )


def _questions(tree: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield node, [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS_OF_TEXT:
            yield node, [node.func.value, *node.args]
        elif isinstance(node, ast.MatchValue):
            yield node.value, [node.value]


def _is_sentence(node: ast.AST, constants: Collection[str]) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " " in node.value.strip() or node.value in _ONE_WORD
    if isinstance(node, ast.Attribute):
        return node.attr in SAYS
    return isinstance(node, ast.Name) and node.id in constants


_ONE_WORD = {code.value for code in ReasonCode}


def sentence_constants(source: str) -> Iterator[str]:
    """Names of a module's constants that are sentences."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            text = ast.unparse(node.value)[1:-1].strip()
            if " " in text:
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def rule_files() -> list[Path]:
    return [file for package in RULES for file in sorted((ROOT / "tallystick" / package).rglob("*.py"))]


def test_no_rule_compares_a_sentence() -> None:
    files = [file for file in rule_files() if "versions" not in file.parts]
    assert len(files) > 100
    constants = {name for file in files for name in sentence_constants(file.read_text())}
    assert constants
    found = {
        str(file.relative_to(ROOT)): lines
        for file in files
        if (lines := find_sentences_read(file.read_text(), constants))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("planted", "is_found"),
    [
        ('copy.carried.reason.startswith(f"its partner lies beyond the cut of the {there}")', True),
        ("[one for one in residues if one.reason == MAY_BE_OLDER]", True),
        ('reason in ("within the partner\'s grace", other)', True),
        ('item.reason.stored == "x"', True),
        ('"expired unread" in doubt.sentence', True),
        ('match reason:\n    case "its partner came": pass', True),
        ("one.reason.code is ReasonCode.MAY_BE_OLDER", False),
        ("(item.state, item.reason) == (state, residue.reason)", False),
        ('item.item_id.startswith("legs:")', False),
        ('reason = "its partner came"', False),
    ],
)
def test_a_planted_comparison_is_found_and_an_honest_one_is_not(planted: str, is_found: bool) -> None:
    assert bool(find_sentences_read(planted, ["MAY_BE_OLDER"])) is is_found


def test_a_sentence_is_found_under_its_name() -> None:
    named = 'MAY_BE_OLDER = "it may be an older row"\nPART = "topic"\nHELD = f"the {side} is held"\n'
    assert list(sentence_constants(named)) == ["MAY_BE_OLDER", "HELD"]
