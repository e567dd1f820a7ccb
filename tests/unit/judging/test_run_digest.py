"""Digests stand in stored verdicts: another way to compute them must give the same bytes."""

import json
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tallystick.model.census_values import BledBatch, PartitionCensus
from tallystick.model.findings import Money
from tallystick.model.run_result import RunResult
from tests.unit.builders import cut_of, event, evidence_of, row, slice_of, with_facts
from tests.unit.judging.results import judged

COUNTS = st.integers(min_value=0, max_value=2**63 - 1)
TEXTS = st.text(max_size=8)
BLED = st.builds(BledBatch, **{one.name: COUNTS for one in fields(BledBatch)} | {"marker_offset": COUNTS | st.none()})
CENSUS = st.builds(
    PartitionCensus,
    **{one.name: COUNTS for one in fields(PartitionCensus)}
    | {"topic": TEXTS, "spark_rows": COUNTS | st.none(), "bled": st.lists(BLED, max_size=3).map(tuple)},
)
MONEY = st.dictionaries(TEXTS, st.integers(), max_size=3)


def as_it_was_first_computed(result: RunResult, cut: Any, fingerprint: str, content_digests: Money) -> str:
    """Each record copied into a dictionary of its fields, all the way down."""
    document = {
        "contract": fingerprint,
        "cut": [cut.n, [asdict(part.offsets) for part in cut.topic_slices]],
        "ledger": [cut.ledger_slice.position_start, cut.ledger_slice.position_end],
        "content": content_digests,
        "verdict": result.verdict,
        "breaks": [str(found.break_id) for found in result.breaks],
        "doubts": sorted(found.doubt for found in result.doubts),
        "items": [[item.item_id, item.state, item.reason.stored] for item in result.items],
        "figures": asdict(result.figures),
    }
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


@given(
    census=st.lists(CENSUS, max_size=3), money=MONEY, content=MONEY, start=COUNTS, rows=COUNTS, older=COUNTS | st.none()
)
def test_the_digest_is_that_of_every_field_written_out(
    census: list[PartitionCensus], money: Money, content: Money, start: int, rows: int, older: int | None
) -> None:
    cut = cut_of(slice_of(start, start + 7), slice_of(0, 0, topic="other"))
    evidence = evidence_of(row(1), event(11, "b"), event(12, "b"), cut=cut)
    evidence = with_facts(replace(evidence, census=tuple(census)), topic_rows=rows, older_rows=older)
    result = judged(evidence, matched_money=money, content_digests=content)
    assert result.digest == as_it_was_first_computed(result, cut, evidence.contract.fingerprint, content)


def test_each_figure_moves_the_digest() -> None:
    digests = {judged(evidence_of(), matched_rows=n).digest for n in range(3)}
    assert len(digests) == 3


def test_what_json_does_not_know_is_part_of_the_digest_as_its_text() -> None:
    """A moment in ISO 8601."""
    told, written = datetime(2026, 3, 1, 12, tzinfo=UTC), UUID(int=7)
    as_values = judged(evidence_of(), content_digests={"topic": told, "ledger": written}).digest
    as_texts = {"topic": "2026-03-01T12:00:00+00:00", "ledger": "00000000-0000-0000-0000-000000000007"}
    assert as_values == judged(evidence_of(), content_digests=as_texts).digest
