"""By when all of what had come to a side has been read, on a real store: where cuts reach their marks, and not."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from tallystick.model.cut import Cut, LedgerFile
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import TopicPartition
from tallystick.model.verdict import Verdict
from tallystick.store.breaks.sides_read_store import sides_read_up_to
from tallystick.store.runs.cut_store import claim_attempt
from tallystick.store.runs.run_store import commit_run

PART, PAYOUTS = TopicPartition(topic="billing.payouts", partition=0), "billing.payouts"
BOTH = (PART, None)
NEVER = datetime.min.replace(tzinfo=UTC)
Changed = Callable[[Cut], Cut]


@pytest.fixture
def judged(store: Engine, books: Any) -> Callable[..., Cut]:
    """Judge the next cut, so changed, with that doubt."""
    cuts: list[Cut] = []

    def judge(*changes: Changed, doubt: Doubt | None = None, **details: Any) -> Cut:
        cut = books.cut(len(cuts))
        for change in changes:
            cut = change(cut)
        cuts.append(books.save(store, cut))
        doubts = (DoubtFound(doubt=doubt, sentence="", details=details),) if doubt else ()
        result = replace(books.result(cut.n, verdict=Verdict.INCONCLUSIVE if doubt else Verdict.MATCHED), doubts=doubts)
        commit_run(store, result, attempt=claim_attempt(store, "payouts", cut.n), alerts=())
        return cut

    judge()
    return judge


def held(cut: Cut, *, by: int = 1) -> Cut:
    """The same, whose slices end so far below their marks."""
    part, ledger = cut.topic_slices[0], cut.ledger_slice
    return replace(
        cut,
        topic_slices=(replace(part, mark=part.mark + by), *cut.topic_slices[1:]),
        ledger_slice=replace(ledger, mark=ledger.mark + by),
    )


def of_ledger(**changed: Any) -> Changed:
    return lambda cut: replace(cut, ledger_slice=replace(cut.ledger_slice, **changed))


def by_server(**changed: Any) -> Changed:
    return lambda cut: of_ledger(snapshot=replace(cut.ledger_slice.snapshot, **changed))(cut)


def late(cut: Cut) -> Cut:
    return replace(cut, by_time=True)


def test_what_every_cut_leaves_to_the_next_one_is_read_once_that_one_has_passed_it(
    store: Engine, judged: Callable[..., Cut]
) -> None:
    one = judged(held)
    assert [sides_read_up_to(store, "payouts", [side]) for side in BOTH] == [NEVER, NEVER]  # a baseline has no sample
    two = judged(held)
    assert [sides_read_up_to(store, "payouts", [side]) for side in BOTH] == [one.marked_at_utc] * 2
    judged(partial(held, by=1000))
    assert sides_read_up_to(store, "payouts", BOTH) == two.marked_at_utc
    whole = judged()
    assert sides_read_up_to(store, "payouts", BOTH) == whole.marked_at_utc


def test_the_side_that_is_read_least_far_says_how_far_both_are(store: Engine, judged: Callable[..., Cut]) -> None:
    one = judged()
    two = judged(lambda cut: replace(held(cut), ledger_slice=cut.ledger_slice))
    assert [sides_read_up_to(store, "payouts", [side]) for side in BOTH] == [one.marked_at_utc, two.marked_at_utc]
    assert sides_read_up_to(store, "payouts", BOTH) == one.marked_at_utc


def test_a_cut_whose_sample_was_late_says_nothing_and_reads_what_others_left(
    store: Engine, judged: Callable[..., Cut]
) -> None:
    one = judged(held)
    judged(late)
    assert sides_read_up_to(store, "payouts", BOTH) == one.marked_at_utc


def test_a_cut_that_people_closed_has_read_nothing_and_the_next_one_counts(
    store: Engine, judged: Callable[..., Cut]
) -> None:
    one, closed = judged(), judged(doubt=Doubt.CUT_CLOSED)
    assert sides_read_up_to(store, "payouts", BOTH) == one.marked_at_utc
    two = judged(held)
    assert sides_read_up_to(store, "payouts", BOTH) == one.marked_at_utc < closed.marked_at_utc
    judged(held)
    assert sides_read_up_to(store, "payouts", BOTH) == two.marked_at_utc


@pytest.mark.parametrize("doubt", [Doubt.TOPIC_RECREATED, Doubt.LOG_TRUNCATED])
def test_a_slice_whose_log_does_not_go_on_there_has_read_nothing_of_it(
    store: Engine, judged: Callable[..., Cut], doubt: Doubt
) -> None:
    one = judged()
    two = judged(doubt=doubt, topic=PAYOUTS)
    assert [sides_read_up_to(store, "payouts", [side]) for side in BOTH] == [one.marked_at_utc, two.marked_at_utc]
    three = judged(doubt=doubt, topic="billing.fees")
    assert sides_read_up_to(store, "payouts", BOTH) == three.marked_at_utc
    four = judged(doubt=Doubt.LOG_EXPIRED, topic=PAYOUTS)
    assert sides_read_up_to(store, "payouts", BOTH) == four.marked_at_utc


@pytest.mark.parametrize("changed", [{"timeline": 2}, {"system_identifier": "another"}])
def test_positions_of_another_server_do_not_pass_those_of_the_one_before(
    store: Engine, judged: Callable[..., Cut], changed: dict[str, Any]
) -> None:
    judged(held)
    three = judged(held, by_server(**changed))
    assert sides_read_up_to(store, "payouts", [None]) == NEVER
    judged(by_server(**changed), held)
    assert sides_read_up_to(store, "payouts", [None]) == three.marked_at_utc


def test_a_mark_above_all_that_a_server_has_given_out_is_no_sample_of_it(
    store: Engine, judged: Callable[..., Cut]
) -> None:
    """A server that keeps no history may show less at any time: its newest rows were deleted."""
    one = judged()
    judged(by_server(high_mark=199))
    assert sides_read_up_to(store, "payouts", [None]) == one.marked_at_utc
    judged(by_server(high_mark=299, timeline=0))
    four = judged(by_server(high_mark=399, timeline=0))
    assert sides_read_up_to(store, "payouts", [None]) == four.marked_at_utc


def test_a_file_that_a_cut_left_is_read_once_a_slice_has_taken_it_as_it_was(
    store: Engine, judged: Callable[..., Cut]
) -> None:
    file, other = (LedgerFile(path=path, size_bytes=9, modified_ns=1) for path in ("a.parquet", "b.parquet"))
    grown = replace(file, size_bytes=10)
    judged(of_ledger(left=(file, other)))
    judged(of_ledger(left=(file,), files=(other,)))
    assert sides_read_up_to(store, "payouts", [None]) == NEVER
    three = judged(of_ledger(left=(grown,)))
    assert sides_read_up_to(store, "payouts", [None]) == NEVER
    four = judged(of_ledger(files=(grown,)), held)
    assert sides_read_up_to(store, "payouts", [None]) == three.marked_at_utc
    judged(of_ledger(files=(file,)), held)
    assert sides_read_up_to(store, "payouts", [None]) == four.marked_at_utc


def test_a_file_that_only_a_cut_has_taken_that_people_closed_is_not_read_by_the_one_before(
    store: Engine, judged: Callable[..., Cut]
) -> None:
    file = LedgerFile(path="a.parquet", size_bytes=9, modified_ns=1)
    one = judged(of_ledger(left=(file,)))
    judged(of_ledger(files=(file,)), doubt=Doubt.CUT_CLOSED)
    assert sides_read_up_to(store, "payouts", [None]) == NEVER
    judged(held)
    assert sides_read_up_to(store, "payouts", [None]) == one.marked_at_utc


def test_a_partition_that_came_later_had_nothing_before_and_a_topic_that_was_not_read_may_have_had(
    store: Engine, judged: Callable[..., Cut]
) -> None:
    def with_one_more(cut: Cut, *, topic: str, partition: int) -> Cut:
        part = cut.topic_slices[0]
        offsets = replace(
            part.offsets, topic=topic, partition=partition, kafka_offset_start=cut.n - 2, kafka_offset_end=cut.n - 1
        )
        snapshot = replace(part.snapshot, topic=topic, partition=partition)
        more = replace(part, offsets=offsets, snapshot=snapshot, mark=2)
        return replace(cut, topic_slices=(*cut.topic_slices, more))

    added, new_topic = replace(PART, partition=1), TopicPartition(topic="billing.fees", partition=0)
    with_both = [partial(with_one_more, topic=one.topic, partition=one.partition) for one in (added, new_topic)]
    one = judged()
    two = judged(*with_both)
    assert [sides_read_up_to(store, "payouts", [side]) for side in (PART, added, new_topic)] == [
        two.marked_at_utc,
        one.marked_at_utc,
        NEVER,
    ]
    three = judged(*with_both)
    assert sides_read_up_to(store, "payouts", [PART, added, new_topic, None]) == three.marked_at_utc
