"""Records that bled are asked for as far as their batches are named."""

from tallystick.matching.evidence import BLED_RECORDS, bled_item_ids
from tallystick.model.census_values import BledBatch
from tests.unit.anomalies.builders import bled
from tests.unit.anomalies.copies import item_at
from tests.unit.builders import event, row
from tests.unit.judging.origins import wanted


def test_records_that_bled_are_asked_for_as_far_as_their_batches_are_named() -> None:
    assert wanted(bled(event(11), row(1))) == {item_at(11)}
    part = bled(event(11)).census[0]
    batch = BledBatch(
        kafka_offset_start=0, kafka_offset_end=10**6, producer_id=7, producer_epoch=0, span_epoch=1, marker_offset=None
    )
    assert len(list(bled_item_ids([part.__class__(**{**vars(part), "bled": (batch,)})]))) == BLED_RECORDS
