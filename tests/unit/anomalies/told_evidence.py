"""What is said of each planted case, kept in told_evidence.json: documents, pages and alerts show it by these keys.

To write it anew after a change that people shall see: python -m tests.unit.anomalies.told_evidence
"""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tallystick.anomalies.registry import RULES
from tallystick.judging.canary_cases import name_of
from tallystick.matching.evidence import Evidence
from tallystick.model.findings import Break, DoubtFound, NoticeFound

FILE = Path(__file__).with_suffix(".json")
FOLDER = Path(__file__).parent


def told_of(evidence: Evidence) -> list[dict[str, Any]]:
    """All findings, as JSON."""
    told = [_document(found) for rule in RULES for found in rule.judge(evidence)]
    return list(json.loads(json.dumps(told, default=str)))


def kept() -> dict[str, list[list[dict[str, Any]]]]:
    """By the name of a test file: what each of its pairs says."""
    return dict(json.loads(FILE.read_text()))


def _document(found: Break | DoubtFound | NoticeFound) -> dict[str, Any]:
    if isinstance(found, Break):
        at_stake = {"amount_minor": found.amount_minor, "currency": found.currency, "copies": found.copies}
        about = {"name": name_of(found), "leg": found.leg, "story": found.story}
        return {**about, **at_stake, "evidence": found.evidence}
    said = {"name": name_of(found), "sentence": found.sentence, "details": found.details}
    return said | {"count": found.count} if isinstance(found, NoticeFound) else said


def _written_now() -> Iterator[tuple[str, list[list[dict[str, Any]]]]]:
    for file in sorted(FOLDER.glob("*/test_*.py")):
        planted = getattr(import_module(f"tests.unit.anomalies.{file.parent.name}.{file.stem}"), "TestPlanted", None)
        if planted is not None:
            yield file.stem, [told_of(pair.fires) for pair in planted.pairs]


if __name__ == "__main__":
    FILE.write_text(json.dumps(dict(_written_now()), indent=1, sort_keys=True) + "\n")
