"""A cut is fixed and stored before anything is read: in the world, where each side says what the test lets it.

One file, since all of it is one function, tried on the same books.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tallystick.contract.change import ContractChangeRefused
from tallystick.contract.contract import Contract
from tallystick.contract.verdict_deadline import next_firing
from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.kafka_log.topic_snapshot import TopicNotFound
from tallystick.ledger.earlier_rows import EarlierRows
from tallystick.ledger.postgres_sql import XMIN_WIDTH_MAX
from tallystick.model.cut import Cut, LedgerFile, LedgerSlice
from tallystick.model.errors import TallystickError
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import TopicPartition
from tallystick.model.run_result import unread_result
from tallystick.pipeline import make_cut
from tallystick.pipeline.make_cut import LedgerTooFarAhead
from tallystick.pipeline.sources import Sources, observe
from tallystick.pipeline.window_order import WindowNotOver, WindowOutOfOrder
from tallystick.store.runs.cut_store import CutAlreadyOpen
from tests.simulator.standins import run_functions
from tests.simulator.standins.ledger import WorldLedger
from tests.simulator.standins.seams import CurrentWorld, stand_ins
from tests.simulator.world.batches import Record
from tests.simulator.world.clock import NOON
from tests.simulator.world.config import Config
from tests.simulator.world.contracts import TOPIC, contract_of
from tests.simulator.world.database import Row
from tests.simulator.world.interleaving import Killed
from tests.simulator.world.world import World

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NAME = "books"
FIRST = TopicPartition(topic=TOPIC, partition=0)


@pytest.fixture
def make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Both sides are opened with the store, the contract and the connections that the cut was asked for with."""

    def make(slice_by: str = "xmin", **changes: Any) -> World:
        contract = contract_of("topic_to_ledger", slice_by, 1)
        if changes:
            contract = contract.model_validate(contract.model_dump(mode="json", exclude_defaults=True) | changes)
        CurrentWorld.it = World(config=Config(slice_by=slice_by), contracts=(contract,))
        return CurrentWorld.it  # type: ignore[no-any-return]

    with stand_ins():
        opened = make_cut.open_both_sides

        @contextmanager
        def checked(engine: Any, contract: Contract, connections: Any) -> Iterator[Sources]:
            world = CurrentWorld.it
            assert (engine, contract.name, connections) == (world.store, NAME, world)
            with opened(engine, contract, connections) as sides:
                yield sides

        monkeypatch.setattr(make_cut, "open_both_sides", checked)
        monkeypatch.setattr(make_cut, "next_firing", next_firing)  # the stand-in knows one schedule alone
        yield make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


def cut_at(
    world: World, end: datetime, *, now: datetime | None = None, ahead: timedelta | None = None, by: str = "run"
) -> Cut:
    """What a run of the window that ends there reads. now: unless told, the moment that the window ends."""
    world.clock.now = now or end
    return make_cut.resolve_cut(
        world.store,
        world.contract,
        world,  # type: ignore[arg-type]
        window_start_utc=end - HOUR,
        window_end_utc=end,
        now_utc=world.clock.now,
        scheduler_run_id=by,
        host_ahead=ahead,
    )


def judged(world: World, cut: Cut) -> Cut:
    """With a verdict, so that the next window may be cut."""
    doubt = DoubtFound(doubt=Doubt.CUT_CLOSED, sentence="A test closed it.")
    result = unread_result(NAME, cut.n, doubt, digest="closed", look_ups={})
    run_functions.commit_run(
        world.store, result, attempt=run_functions.claim_attempt(world.store, NAME, cut.n), alerts=()
    )
    return cut


def write(world: World, *, events: int = 0, rows: int = 0) -> None:
    """Events on the first partition, dated by the world's clock; rows in a transaction each."""
    for n in range(events):
        world.broker.write_plain(FIRST, [Record(b"k", b"%d" % n, world.clock.now_ms)])
    for n in range(rows):
        name = f"writer {n}"
        world.database.insert(name, Row(0, f"ev-{n}", "pay", "payout", 100, "EUR", world.clock.now_ms))
        world.database.commit(name)


def offsets(cut: Cut) -> tuple[int, int]:
    part = cut.slice_of(FIRST)
    assert part is not None
    return part.offsets.kafka_offset_start, part.offsets.kafka_offset_end


def positions(cut: Cut) -> tuple[int, int]:
    return cut.ledger_slice.position_start, cut.ledger_slice.position_end


# The first cut.


def test_the_books_begin_at_the_stable_end_of_each_partition_and_at_the_ledgers_horizon(world: World) -> None:
    write(world, events=3, rows=2)
    producer = world.broker.init("app-0", now_ms=1)
    world.broker.write(producer, FIRST, [Record(b"k", b"1", 1)], now_ms=1)
    world.database.insert("open", Row(0, "ev-9", "pay", "payout", 100, "EUR", 1))
    write(world, events=1, rows=1)
    cut = cut_at(world, NOON + HOUR, by="scheduled__1")
    assert (cut.contract, cut.n, cut.is_baseline, cut.by_time) == (NAME, 0, True, False)
    assert [
        (part.offsets.topic_partition, part.offsets.kafka_offset_start, part.offsets.kafka_offset_end, part.mark)
        for part in cut.topic_slices
    ] == [(FIRST, 3, 3, 3), (replace(FIRST, partition=1), 0, 0, 0)]
    assert [part.snapshot.high_watermark for part in cut.topic_slices] == [5, 0]
    assert (positions(cut), cut.ledger_slice.mark, cut.ledger_slice.baseline_position) == ((102, 102), 102, 102)
    assert (cut.ledger_slice.snapshot.low_mark, cut.ledger_slice.snapshot.high_mark) == (102, 104)
    assert (cut.window_start_utc, cut.window_end_utc) == (NOON, NOON + HOUR)
    assert (cut.marked_at_utc, cut.now_utc) == (NOON + HOUR, NOON + HOUR)
    run = run_functions.read_run(world.store, NAME, 0)
    assert run is not None
    assert (run.cut, run.scheduler_run_id, run.attempt) == (cut, "scheduled__1", 1)


def test_the_first_cut_has_its_verdict_at_once_and_counts_what_is_older_than_the_books(world: World) -> None:
    write(world, rows=3)
    cut_at(world, NOON + HOUR)
    run = run_functions.read_run(world.store, NAME, 0)
    assert run is not None
    assert (run.result.contract, run.result.cut_n, run.result.digest) == (NAME, 0, "baseline")
    (doubt,) = run.result.doubts
    assert (doubt.doubt, doubt.sentence[:38]) == (Doubt.BASELINE, "This is the contract's first cut: the ")
    assert (run.result.figures.ledger_older_rows, [*run.result.look_ups]) == (3, ["surroundings"])
    assert world.store.alerts == []


def test_rows_before_the_books_are_counted_by_place_where_the_ledger_knows_places(
    make_world: Callable[..., World],
) -> None:
    world = make_world("written_xid")
    write(world, rows=3)
    cut_at(world, NOON + HOUR)
    run = run_functions.read_run(world.store, NAME, 0)
    assert run is not None
    kept = EarlierRows.from_json(run.result.look_ups["earlier_rows"])
    assert (sum(kept.counts.values()), run.result.figures.ledger_older_rows) == (3, None)


def test_no_slice_lies_before_the_one_whose_rows_are_counted_by_place(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[LedgerSlice, int]] = []
    monkeypatch.setattr(
        WorldLedger, "count_by_place", lambda _, ledger_slice, *, cut_n: asked.append((ledger_slice, cut_n))
    )
    world = make_world("written_xid")
    cut = cut_at(world, NOON + HOUR)
    run = run_functions.read_run(world.store, NAME, 0)
    assert run is not None
    assert (asked, [*run.result.look_ups]) == ([(cut.ledger_slice, 0)], ["surroundings"])


def test_a_first_cut_whose_process_was_killed_before_its_verdict_has_it_before_the_next_is_made(world: World) -> None:
    world.point.begin([], kill_at=1 + questions_until(world, "store.claim_attempt"))
    with pytest.raises(Killed):
        cut_at(world, NOON + HOUR, by="killed")
    assert run_functions.read_run(world.store, NAME, 0) is None
    cut = cut_at(world, NOON + 2 * HOUR)
    run = run_functions.read_run(world.store, NAME, 0)
    assert run is not None
    assert (cut.n, run_functions.read_run(world.store, NAME, 1)) == (1, None)
    # What the killed attempt had counted is gone: rows that were updated since may be older than the books.
    assert run.result.look_ups["rows_moved_below"] == cut.ledger_slice.snapshot.high_mark


def questions_until(world: World, question: str) -> int:
    """How many questions a first cut asks before that one, in a world like this."""
    other = World(config=world.config, contracts=world.contracts)
    asked: list[str] = []
    other.point.reached = asked.append  # type: ignore[method-assign]
    CurrentWorld.it = other
    cut_at(other, NOON + HOUR)
    CurrentWorld.it = world
    return asked.index(question)


# The cuts after it.


def test_each_cut_goes_on_where_the_one_before_it_ended(world: World) -> None:
    write(world, events=2, rows=2)
    cut_at(world, NOON + HOUR)
    write(world, events=3, rows=4)
    one = judged(world, cut_at(world, NOON + 2 * HOUR, by="second"))
    assert (one.n, offsets(one), positions(one)) == (1, (2, 5), (102, 106))
    assert (one.window_start_utc, one.window_end_utc, one.now_utc) == (NOON + HOUR, NOON + 2 * HOUR, NOON + 2 * HOUR)
    write(world, events=1, rows=1)
    two = cut_at(world, NOON + 3 * HOUR, by="third")
    assert (two.n, offsets(two), positions(two)) == (2, (5, 6), (106, 107))
    assert (two.by_time, two.ledger_slice.baseline_position) == (False, 102)
    assert [row.scheduler_run_id for row in world.store.of(NAME).cuts] == ["run", "second", "third"]


def test_a_window_that_was_cut_is_read_again_as_it_was_and_no_side_is_asked(world: World) -> None:
    cut_at(world, NOON + HOUR)
    write(world, events=1)
    one = cut_at(world, NOON + 2 * HOUR)
    write(world, events=1)
    world.admin.down = True
    assert cut_at(world, NOON + 2 * HOUR, now=NOON + 3 * HOUR) is one
    judged(world, one)
    assert cut_at(world, NOON + 2 * HOUR, now=NOON + 3 * HOUR) is one
    with pytest.raises(BrokerUnreachable):
        cut_at(world, NOON + 3 * HOUR)


def test_a_cut_without_a_verdict_is_judged_before_another_window_is_cut(world: World) -> None:
    cut_at(world, NOON + HOUR)
    one = cut_at(world, NOON + 2 * HOUR)
    with pytest.raises(CutAlreadyOpen):
        cut_at(world, NOON + 3 * HOUR)
    assert run_functions.read_run(world.store, NAME, one.n) is None
    judged(world, one)
    assert cut_at(world, NOON + 3 * HOUR).n == 2


def test_a_window_that_is_read_already_or_not_over_is_refused_before_any_side_is_asked(world: World) -> None:
    judged(world, cut_at(world, NOON + HOUR) and cut_at(world, NOON + 2 * HOUR))
    world.admin.down = True
    with pytest.raises(WindowOutOfOrder, match=rf"{NAME}: a window that ends at 2026-03-01 13:30.*cut 1"):
        cut_at(world, NOON + 1.5 * HOUR, now=NOON + 3 * HOUR)
    with pytest.raises(WindowNotOver, match=rf"{NAME}: a window that ends at 2026-03-01 15:00.*clock says .* 14:59"):
        cut_at(world, NOON + 3 * HOUR, now=NOON + 3 * HOUR - MINUTE)


def test_another_contract_than_the_one_of_the_newest_cut_is_refused(world: World) -> None:
    cut_at(world, NOON + HOUR)
    other = contract_of("topic_to_ledger", "written_xid", 1)
    with pytest.raises(ContractChangeRefused):
        make_cut.require_same_books(world.store, other)  # type: ignore[arg-type]
    world.contracts = (other,)
    with pytest.raises(ContractChangeRefused):
        cut_at(world, NOON + HOUR)


@pytest.mark.parametrize(("ahead", "ms"), [(None, None), (timedelta(microseconds=2_900), 2), (-MINUTE, -60_000)])
def test_a_cut_says_in_whole_milliseconds_how_far_its_host_is_ahead(
    world: World, ahead: timedelta | None, ms: int | None
) -> None:
    cut = cut_at(world, NOON + HOUR, ahead=ahead)
    assert (cut.host_ahead_ms, type(cut.host_ahead_ms)) == (ms, type(ms))


def test_a_topic_of_strays_that_is_not_there_is_refused_and_one_that_is_there_is_no_part_of_the_cut(
    make_world: Callable[..., World],
) -> None:
    kafka = {"connection": "kafka", "stray_topics": ["billing.strays"]}
    world = make_world(kafka=kafka)
    with pytest.raises(TopicNotFound, match=r"billing.strays"):
        cut_at(world, NOON + HOUR)
    world.broker.create_topic("billing.strays", 1)
    assert {part.offsets.topic for part in cut_at(world, NOON + HOUR).topic_slices} == {TOPIC}


def test_a_ledger_that_may_not_be_read_is_refused_before_anything_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: WorldLedger) -> None:
        raise TallystickError("no SELECT")

    with monkeypatch.context() as patched:
        patched.setattr(WorldLedger, "describe", refuses)
        with pytest.raises(TallystickError, match="no SELECT"):
            cut_at(world, NOON + HOUR)
    assert (world.store.of(NAME).cuts, world.store.of(NAME).samples) == ([], {})


def test_what_the_ledger_fixes_with_a_slice_is_stored_with_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = (LedgerFile(path="day=1/a.parquet", size_bytes=9, modified_ns=1),)

    def fix(_: WorldLedger, ledger_slice: LedgerSlice) -> LedgerSlice:
        return replace(ledger_slice, files=taken)

    monkeypatch.setattr(WorldLedger, "fix", fix)
    assert [cut_at(world, NOON + n * HOUR).ledger_slice.files for n in (1, 2)] == [taken, taken]


@pytest.mark.parametrize(("slice_by", "refused"), [("xmin", True), ("written_xid", False)])
def test_a_slice_by_xmin_that_grew_too_wide_is_refused_and_nothing_is_stored(
    make_world: Callable[..., World], slice_by: str, refused: bool
) -> None:
    world = make_world(slice_by)
    write(world, rows=2)
    cut_at(world, NOON + HOUR)
    world.database.next_xid += XMIN_WIDTH_MAX + 1
    if not refused:
        assert cut_at(world, NOON + 2 * HOUR).n == 1
        return
    with pytest.raises(LedgerTooFarAhead, match="since cut 0 ended"):
        cut_at(world, NOON + 2 * HOUR)
    assert len(world.store.of(NAME).cuts) == 1
    world.database.next_xid -= 1
    assert cut_at(world, NOON + 2 * HOUR).n == 1


# Where a window ends.


def sample(world: World, at: datetime, *, end: datetime = NOON + 2 * HOUR) -> None:
    """As a run takes one while it settles. end: of its window."""
    world.clock.now = at
    observe(world.store, world.contract, world, window_end_utc=end, now_utc=at)  # type: ignore[arg-type]


def test_a_window_ends_at_the_first_sample_since_its_end_and_the_next_one_has_the_rest(world: World) -> None:
    cut_at(world, NOON + HOUR)
    write(world, events=1, rows=1)
    sample(world, NOON + 2 * HOUR - MINUTE)
    write(world, events=2, rows=2)
    sample(world, NOON + 2 * HOUR + MINUTE)
    write(world, events=4, rows=4)
    one = judged(world, cut_at(world, NOON + 2 * HOUR, now=NOON + 2 * HOUR + 9 * MINUTE))
    assert (offsets(one), positions(one), one.by_time) == ((0, 3), (100, 103), False)
    assert (one.marked_at_utc, one.now_utc) == (NOON + 2 * HOUR + MINUTE, NOON + 2 * HOUR + 9 * MINUTE)
    two = cut_at(world, NOON + 3 * HOUR)
    assert (offsets(two), positions(two), two.marked_at_utc) == ((3, 7), (103, 107), NOON + 3 * HOUR)


def test_a_cut_looks_at_both_sides_and_keeps_what_it_saw(world: World) -> None:
    cut_at(world, NOON + HOUR)
    write(world, events=2, rows=1)
    cut = cut_at(world, NOON + 2 * HOUR, now=NOON + 2 * HOUR + MINUTE)
    assert (offsets(cut), cut.marked_at_utc) == ((0, 2), NOON + 2 * HOUR + MINUTE)
    kept = world.store.of(NAME).samples[NOON + 2 * HOUR + MINUTE]
    assert (kept.high_watermark(FIRST), kept.ledger_high_mark) == (2, 101)
    assert list(world.store.of(NAME).samples) == [NOON + HOUR, NOON + 2 * HOUR + MINUTE]


def test_samples_from_before_the_books_do_not_move_where_they_begin(world: World) -> None:
    sample(world, NOON + MINUTE, end=NOON)
    write(world, events=2, rows=2)
    cut = cut_at(world, NOON, now=NOON + 2 * MINUTE)
    assert (offsets(cut), positions(cut), cut.marked_at_utc) == ((2, 2), (102, 102), NOON + 2 * MINUTE)


def outage(world: World) -> None:
    """Nobody looks for three hours. Each hour has one event and one row more than the last."""
    cut_at(world, NOON)
    for n in range(1, 4):
        world.clock.now = NOON + n * HOUR - MINUTE
        write(world, events=n, rows=n)


def test_after_an_outage_each_window_ends_where_its_end_lies_by_timestamp(world: World) -> None:
    outage(world)
    late = NOON + 3 * HOUR + MINUTE
    cuts = [judged(world, cut_at(world, NOON + n * HOUR, now=late + n * MINUTE)) for n in (1, 2, 3)]
    assert [offsets(cut) for cut in cuts] == [(0, 1), (1, 3), (3, 6)]
    assert [positions(cut) for cut in cuts] == [(100, 101), (101, 103), (103, 106)]
    assert [cut.by_time for cut in cuts] == [True, True, False]
    assert [cut.marked_at_utc for cut in cuts] == 3 * [late + MINUTE]


def test_a_window_is_late_from_the_moment_that_the_next_one_is_over(world: World) -> None:
    outage(world)
    cut = cut_at(world, NOON + HOUR, now=NOON + 2 * HOUR - MINUTE)
    assert (cut.by_time, offsets(cut)) == (False, (0, 6))


def test_the_first_cut_is_never_made_by_time(world: World) -> None:
    write(world, events=3, rows=3)
    cut = cut_at(world, NOON, now=NOON + 5 * HOUR)
    assert (cut.by_time, offsets(cut), positions(cut)) == (False, (3, 3), (103, 103))


def test_rows_are_asked_for_by_time_from_the_books_end_up_to_the_late_mark_and_never_backwards(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[datetime, int, int]] = []

    def first_position_at(_: WorldLedger, at_utc: datetime, *, start: int, end: int) -> None:
        asked.append((at_utc, start, end))

    monkeypatch.setattr(WorldLedger, "first_position_at", first_position_at)
    outage(world)
    backup = world.database.copy_now()
    judged(world, cut_at(world, NOON + HOUR, now=NOON + 4 * HOUR))
    world.database.restore(backup)
    world.database.next_xid = 90
    world.database.latest_ended = 89
    cut_at(world, NOON + 2 * HOUR, now=NOON + 5 * HOUR)
    assert asked == [(NOON + HOUR, 100, 106), (NOON + 2 * HOUR, 106, 106)]
