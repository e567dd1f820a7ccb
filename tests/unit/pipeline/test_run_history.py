"""What a run knows of the time before the books began."""

from dataclasses import replace

from tallystick.model.cut import TopicSlice
from tallystick.model.offsets import TopicPartition
from tallystick.pipeline.run_history import inputs_of_before
from tests.unit.builders import TOPIC, cut_of, slice_of

PLACE = TopicPartition(topic=TOPIC, partition=0)


def began(*, high_watermark: int, topic_id: str | None = None) -> TopicSlice:
    """The baseline's part of the log, which an open transaction held at offset 10."""
    part = slice_of(10, 10)
    snapshot = replace(part.snapshot, high_watermark=high_watermark, topic_id=topic_id or part.snapshot.topic_id)
    return replace(part, snapshot=snapshot)


def ends(baseline: TopicSlice, *, topics: tuple[str, ...] = (TOPIC,)) -> dict[TopicPartition, int]:
    return inputs_of_before(cut_of(slice_of(16, 20)), cut_of(baseline, n=0), topics)


def test_inputs_that_stood_behind_an_open_transaction_when_the_books_began_end_at_its_high_watermark() -> None:
    """Also once the slices have passed it: an input of then may wait still."""
    assert ends(began(high_watermark=15)) == {PLACE: 15}


def test_what_came_since_is_none_of_before() -> None:
    assert ends(began(high_watermark=10)) == {}
    assert ends(began(high_watermark=15), topics=()) == {}
    assert ends(began(high_watermark=15, topic_id="another")) == {}
