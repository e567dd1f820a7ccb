"""docs/contract.md says what the code says: every key, every default, every class."""

import re
from pathlib import Path

from pydantic import BaseModel

from tallystick.contract.contract import Contract, ContractRefused, load_contract
from tallystick.contract.error_lines import docstrings_by_key, fields_by_key, model_inside
from tallystick.contract.reference_page import EXAMPLE, contract_reference
from tallystick.model.finding_names import BreakClass

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "contract.md"


def models(model: type[BaseModel]) -> list[type[BaseModel]]:
    inside = [found for field in model.model_fields.values() if (found := model_inside(field.annotation))]
    return [model, *(deeper for found in inside for deeper in models(found))]


def test_the_page_in_the_repository_is_the_one_the_code_writes() -> None:
    written = contract_reference()
    assert PAGE.read_text(encoding="utf-8") == written, (
        "run: python -m tallystick.contract.reference_page > docs/contract.md"
    )


def test_every_field_has_a_sentence_and_its_row() -> None:
    page = contract_reference()
    for model in models(Contract):
        words = docstrings_by_key(model)
        for name in fields_by_key(model):
            assert name in words, f"{model.__name__}.{name} has no docstring"
            assert words[name].endswith("."), f"{model.__name__}.{name}"
            assert re.search(rf"^\| `{name}` \|.*{re.escape(words[name][:40])}", page, re.MULTILINE)


def test_the_page_names_every_break_class_and_no_fault_of_rendering() -> None:
    page = contract_reference()
    for break_class in BreakClass:
        assert f"| `{break_class}` |" in page
    for leftover in ("$ref", "None", "null", "anyOf", "| text |  | |"):
        assert leftover not in page


def test_every_row_of_every_table_has_as_many_cells_as_its_head() -> None:
    columns = 0
    for line in contract_reference().splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line))
        if not line.startswith("|"):
            columns = 0
        elif columns:
            assert cells == columns, line
        else:
            columns = cells


def test_the_shortest_contract_is_one_and_nothing_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "example.yaml"
    path.write_text(EXAMPLE)
    contract = load_contract(path)
    assert contract.name == "billing_payouts"
    required = {name for name, field in Contract.model_fields.items() if field.is_required()}
    assert required == set(contract.model_fields_set)


def test_the_example_of_a_refusal_is_what_the_code_says(tmp_path: Path) -> None:
    path = tmp_path / "billing_payouts.yaml"
    path.write_text(EXAMPLE.replace("  table:", "  tabel:"))
    try:
        load_contract(path)
    except ContractRefused as refused:
        shown = {line.replace(str(tmp_path), "dags/contracts") for line in str(refused).splitlines()}
    assert shown == set(re.findall(r"^dags/contracts/.*$", contract_reference(), re.MULTILINE))
