"""What other programs rely on is what we write, and docs/schemas/ says so.

To write the schemas anew: `python -m tallystick.documents.schema`.
"""

from pathlib import Path

import pytest

from tallystick.contract.error_lines import docstrings_by_key, fields_by_key
from tallystick.documents.schema import (
    SCHEMAS,
    AbortDocument,
    LeftOutDocument,
    LifeStepDocument,
    ParagraphDocument,
    PlanItemDocument,
    schema_text,
)

SCHEMA_FOLDER = Path(__file__).parents[3] / "docs" / "schemas"


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_in_the_repository_is_the_one_the_code_writes(name: str) -> None:
    assert (SCHEMA_FOLDER / name).read_text() == schema_text(name)


def test_no_other_schema_lies_there() -> None:
    assert {path.name for path in SCHEMA_FOLDER.iterdir()} == set(SCHEMAS)


def test_every_key_has_its_sentence() -> None:
    parts = (PlanItemDocument, AbortDocument, LeftOutDocument, ParagraphDocument, LifeStepDocument)
    for model in (*SCHEMAS.values(), *parts):
        assert docstrings_by_key(model).keys() == fields_by_key(model).keys()
