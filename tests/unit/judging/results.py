"""Literal results of a run for the tests of judging."""

from collections.abc import Sequence
from typing import Any

from tallystick.judging.judge import judge
from tallystick.matching.evidence import Evidence
from tallystick.model.open_item import OpenItem
from tallystick.model.run_result import RunResult


def judged(evidence: Evidence, *, carried: Sequence[OpenItem] = (), **changes: Any) -> RunResult:
    parts: dict[str, Any] = {
        "matched_rows": 7,
        "matched_money": {"EUR": 100},
        "content_digests": {"topic": "1", "ledger": "2"},
        "look_ups": {},
    }
    return judge(evidence, carried=carried, **(parts | changes))
