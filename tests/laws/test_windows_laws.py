"""Laws of windows that hold for every schedule of writers, producers, cuts, kills and re-runs, and what breaks them.

Each rule that looks right and is not has a twin here: the shortest schedule on which it breaks a law that the product's
own rule keeps there. So a law that could not fail would be noticed.

One file, since each law stands beside the wrong rules that break it, over one kind of schedule.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from tallystick.kafka_log.log_walk import Outcome
from tallystick.matching.scan_result import ledger_item_id, topic_item_id
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemState, OpenItem
from tests.laws.windows import Step, Windows, play
from tests.unit.builders import L2T, LAW, MORE, NOON, T2L
from tests.unit.in_memory_books import doubts_of
from tests.unit.ledger_model import (
    ASKS_AGAIN,
    BY_AGE,
    BY_CREATED_AT,
    BY_NEWEST_ENDED,
    BY_SEQUENCE,
    BY_SNAPSHOT_FUNCTION,
    BY_WRITTEN_XID,
    BY_XMIN,
    MARKED_BY_ENDED_ONES,
    MARKED_BY_OPEN_ONES,
    UNFLUSHED,
    UP_TO_HIGH_WATERMARK,
    SliceRule,
)

DIRECTIONS = st.sampled_from([L2T, T2L])
UNTIL_FOUND = settings(MORE, max_examples=4_000, phases=[Phase.generate])
"""The first example will do: it is shortened by steps, not by seed."""

WRITERS, PRODUCERS = ("a", "b", "c", "d"), ("p", "q", "r")
COPIES = (*((1, 1),) * 6, (1, 0), (0, 1), (2, 1), (1, 2), (2, 2), (0, 2))
"""Rows and events of a key, as they are begun; some are rolled back or aborted then."""
ROWS = ("insert", "insert", "nested")
"""A row is written under a savepoint of its own, or not."""
AMONG = (
    *("commit", "end") * 6,
    *("run",) * 4,
    *("cut", "kill", "again") * 3,
    *("rollback", "rollback_to") * 2,
    *("begin", "savepoint", "release", "sample", "crash"),
)
MOODS = ((), ("run",) * 12, ("cut", "kill", "again") * 3, ("crash", "rollback") * 2)
"""What a schedule has more of than others."""
TRAFFIC = ("insert", "produce", "commit", "end", "rollback")
"""What may also happen between two readings of one run."""


def random_schedule(dice: Random, more: Sequence[str] = ()) -> list[Step]:
    """The copies of a few keys, and among them what ends transactions and what runs do; some of it more often."""
    writes = [group for number in range(dice.randint(1, 7)) for group in _writes(dice, f"ev-{number}")]
    kinds = (*AMONG, *(more or dice.choice(MOODS)))
    among = [[_random_step(dice, dice.choice(kinds))] for _ in range(dice.randint(3, 8 + 3 * len(writes)))]
    steps = [step for group in dice.sample([*writes, *among], len(writes) + len(among)) for step in group]
    steps = [("meanwhile", *one) if one[0] in TRAFFIC and dice.random() < 0.1 else one for one in steps]
    steps.insert(dice.choice((0, 0, dice.randint(0, len(steps)))), ("baseline",))
    return steps


def _writes(dice: Random, key: str) -> list[list[Step]]:
    """The copies of one key, at once or wherever they fall."""
    rows, events = dice.choice(COPIES)
    steps = [
        *(_random_step(dice, dice.choice(ROWS), key=key) for _ in range(rows)),
        *(_random_step(dice, "produce", key=key) for _ in range(events)),
    ]
    dice.shuffle(steps)
    return [steps] if dice.random() < 0.5 else [[step] for step in steps]


def _random_step(dice: Random, kind: str, *, key: str = "") -> Step:
    writer, producer, when = dice.choice(WRITERS), dice.choice(PRODUCERS), dice.choice(("now", "late"))
    steps: dict[str, Step] = {
        "insert": (kind, writer, key),
        "nested": (kind, writer, key),
        "produce": (kind, producer, key, dice.choice("01")),
        "end": (kind, producer, dice.choice((Outcome.COMMITTED, Outcome.COMMITTED, Outcome.ABORTED))),
        "run": (kind, when),
        "cut": (kind, when),
        "again": (kind, str(dice.randint(0, 9))),
        "update": (kind, str(dice.randint(1, 9))),
    }
    return steps.get(kind, (kind,) if kind in ("kill", "sample", "crash") else (kind, writer))


def schedules(*more: str) -> st.SearchStrategy[list[Step]]:
    """By seed, since drawn step by step most schedules are too short for anything to go wrong in."""
    return st.integers(0, 10**9).map(lambda seed: random_schedule(Random(seed), more))


# The laws. Each yields a sentence for every way in which it is broken.


def slices_tile(windows: Windows) -> Iterator[str]:
    """(a) Each offset and each transaction id from the baseline on belongs to one cut, and is read by that one only."""
    for part, log in windows.partitions.items():
        ranges = [
            range(one.offsets.kafka_offset_start, one.offsets.kafka_offset_end)
            for cut in windows.cuts
            for one in cut.topic_slices
            if one.offsets.topic_partition == part
        ]
        if [offset for one in ranges for offset in one] != list(range(ranges[0].start, len(log))):
            yield f"{part}: offsets {ranges} of {len(log)}"
    bounds = [(cut.ledger_slice.position_start, cut.ledger_slice.position_end) for cut in windows.cuts]
    if any(start != end for (_, end), (start, _) in pairwise(bounds)):
        yield f"transaction ids {bounds}"
    read = Counter(item_id for items in dict(windows.reads).values() for item_id in items)
    for item_id in sorted(set(read) | set(committed(windows)) - at_baseline(windows)):
        times = read[item_id]
        if times != 1 or item_id not in committed(windows):
            yield f"{item_id}: read by {times} cuts"


def what_is_not_held_is_whole(windows: Windows) -> Iterator[str]:
    """(a) A cut without a held side has all that was written by its mark."""
    cut_of = {item_id: n for n, items in windows.reads for item_id in items}
    for item_id in sorted(set(committed(windows)) - at_baseline(windows)):
        for cut in windows.cuts[1 : cut_of.get(item_id, len(windows.cuts))]:
            held = cut.ledger_slice.held or any(one.held for one in cut.topic_slices)
            if not held and NOON + timedelta(seconds=windows.written_at[item_id]) < cut.marked_at_utc:
                yield f"{item_id}: not in cut {cut.n}, whose mark came after it"


def nothing_is_lost(windows: Windows) -> Iterator[str]:
    """(b) The outstanding breaks are what the schedule knows to be wrong, each once; no other item is left."""
    copies = committed(windows)
    old = {copies[item_id] for item_id in at_baseline(windows)}
    broken = Counter(key for _, key in windows.outstanding().elements())
    for key in sorted({*copies.values(), *broken} - old):
        rows, events = (sum(one == key for one in of_side.values()) for of_side in by_side(copies))
        origins, followers = (rows, events) if windows.direction is L2T else (events, rows)
        if origins and followers:
            fewest, most = origins - 1 + max(0, followers - origins), origins - 1 + followers - 1
        else:
            fewest = most = origins + followers
        if not fewest <= broken[key] <= most:
            yield f"{key}: {rows} rows, {events} events, {broken[key]} breaks"
        for one, _ in (found for found in windows.outstanding() if found[1] == key):
            if not str(one).startswith(possible_classes(windows.direction, rows, events)):
                yield f"{key}: {rows} rows, {events} events, {one}"
    for item in windows.items.values():
        if item.state in (ItemState.OPEN, ItemState.UNDECIDABLE) and item.match_key not in old:
            yield f"{item.item_id}: {item.state}, {item.reason.stored}"
    reported = Counter(found.break_id for result in windows.results for found in result.breaks)
    yield from (f"{one}: reported {times} times" for one, times in reported.items() if times > 1)


def possible_classes(direction: Direction, rows: int, events: int) -> tuple[str, ...]:
    """What may be said of a key's copies: alone, or one too many; a second copy that came first was alone once."""
    in_ledger = ("missing_in_topic",) if direction is L2T else ("phantom_in_ledger", "aborted_read", "open_read")
    in_topic = ("phantom_in_topic",) if direction is L2T else ("missing_in_ledger",)
    return (
        *(in_ledger if rows > events else ()),
        *(in_topic if events > rows else ()),
        *(("duplicate_in_ledger",) if rows > 1 else ()),
        *(("duplicate_in_topic",) if events > 1 else ()),
    )


def in_time_is_never_missing(windows: Windows) -> Iterator[str]:
    """(b) Partners written within the grace of each other are no run's break, nor undecidable, however late they ended.

    But a row that a run finds while its event is open has read what nobody may read yet.
    """
    copies = committed(windows)
    grace_seconds = windows.contract.partner_grace.total_seconds()
    called = {
        **{item.match_key: str(item.state) for item in every_item(windows) if item.state is ItemState.UNDECIDABLE},
        **{found.match_key: str(found.break_class) for result in windows.results for found in result.breaks},
    }
    for key in sorted(set(copies.values()) & set(called) - {copies[item_id] for item_id in at_baseline(windows)}):
        written = [windows.written_at[item_id] for item_id, one in copies.items() if one == key]
        once = [sum(one == key for one in of_side.values()) for of_side in by_side(copies)] == [1, 1]
        in_time = once and max(written) - min(written) < grace_seconds
        if in_time and called[key] != BreakClass.OPEN_READ_IN_LEDGER:
            yield f"{key}: {called[key]}, written at {written}"


def every_item(windows: Windows) -> Iterator[OpenItem]:
    """Each chapter of each item."""
    return (item for result in windows.results for item in result.items)


def runs_repeat(windows: Windows) -> Iterator[str]:
    """(c) Whoever reads a cut, whenever, reads the same; judged again it has the same breaks and the same digest."""
    first = dict(reversed(windows.reads))
    for n, items in windows.reads:
        if items != first[n]:
            yield f"cut {n}: read {sorted(first[n])}, then {sorted(items)}"
    for n, again in windows.judged_again:
        before = windows.results[n - 1]
        if (again.breaks, again.items, again.digest) != (before.breaks, before.items, before.digest):
            yield f"cut {n}: {classes_by_id(before.breaks)}, then {classes_by_id(again.breaks)}"


def classes_by_id(breaks: Sequence[Break]) -> dict[str, str]:
    return {str(one.break_id): str(one.break_class) for one in breaks}


def committed(windows: Windows) -> Mapping[str, str]:
    """Item id to key of all that stands on either side at the end."""
    rows = {ledger_item_id(str(row.row_id)): row.match_key for row in windows.ledger.rows.values()}
    events = {
        topic_item_id(part.topic, part.partition, one.record.kafka_offset): one.record.match_key
        for part, log in windows.partitions.items()
        for one in log
        if one is not None and one.record.outcome is Outcome.COMMITTED
    }
    return rows | events


def by_side(copies: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Rows and events."""
    rows = {item_id: key for item_id, key in copies.items() if item_id.startswith("ledger:")}
    return rows, {item_id: key for item_id, key in copies.items() if item_id not in rows}


def at_baseline(windows: Windows) -> set[str]:
    """What stood on either side when the books began, and no cut has to read."""
    begins = {one.offsets.topic_partition: one.offsets.kafka_offset_end for one in windows.cuts[0].topic_slices}
    events = {
        topic_item_id(part.topic, part.partition, offset) for part, end in begins.items() for offset in range(end)
    }
    rows = {ledger_item_id(row_id) for row_id in windows.rows_at_baseline}
    return (events | rows) & set(committed(windows))


LAWS = (slices_tile, what_is_not_held_is_whole, nothing_is_lost, in_time_is_never_missing, runs_repeat)


def broken_laws(steps: Sequence[Step], direction: Direction, rule: SliceRule) -> dict[str, list[str]]:
    windows = play(steps, direction, rule)
    found = {law.__name__: list(law(windows)) for law in LAWS}
    return {name: sentences for name, sentences in found.items() if sentences}


# The product's rules keep them.


@MORE
@given(DIRECTIONS, schedules())
def test_windows_by_the_horizon_keep_every_law(direction: Direction, steps: list[Step]) -> None:
    expect_no_broken_law(steps, direction, BY_XMIN)


@LAW
@given(DIRECTIONS, schedules(*("update",) * 4))
def test_windows_by_a_written_id_keep_every_law_also_when_rows_are_updated(
    direction: Direction, steps: list[Step]
) -> None:
    expect_no_broken_law(steps, direction, BY_WRITTEN_XID)


@LAW
@given(DIRECTIONS, schedules(*("kill", "again") * 4))
def test_a_schedule_without_its_kills_and_re_runs_ends_in_the_same_digests(
    direction: Direction, steps: list[Step]
) -> None:
    steps = [step for step in steps if step[0] != "crash"]  # which ids it gives out again, a run's flush decides
    calm = [("wait",) if step[0] in ("kill", "again") else step for step in steps]
    disturbed, undisturbed = play(steps, direction), play(calm, direction)
    assert [one.digest for one in disturbed.results] == [one.digest for one in undisturbed.results]
    assert [classes_by_id(one.breaks) for one in disturbed.results] == [
        classes_by_id(one.breaks) for one in undisturbed.results
    ]
    assert disturbed.outstanding() == undisturbed.outstanding()


def expect_no_broken_law(steps: Sequence[Step], direction: Direction, rule: SliceRule) -> None:
    """A red law shows its shortest schedule."""
    if broken_laws(steps, direction, rule):
        steps = shortest(steps, lambda fewer: bool(broken_laws(fewer, direction, rule)))
    assert broken_laws(steps, direction, rule) == {}, f"{direction}: {steps}"


def shortest(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Leave out every step without which it still fails."""
    kept = list(steps)
    at = len(kept)
    while at > 0:
        at -= 1
        fewer = kept[:at] + kept[at + 1 :]
        if fails(fewer):
            kept, at = fewer, len(fewer)
    return kept


# What looks right and breaks them.


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A rule, the law it breaks, and the shortest schedule on which it does. more: what a random schedule needs."""

    rule: SliceRule
    law: Callable[[Windows], Iterator[str]]
    steps: tuple[Step, ...]
    direction: Direction = L2T
    more: tuple[str, ...] = ()


MISTAKES = {
    "rows by created_at: one that commits late is older than the window": Mistake(
        rule=BY_CREATED_AT,
        law=slices_tile,
        steps=(("insert", "a", "ev-1"), ("run", "now"), ("commit", "a")),
    ),
    "rows by a sequence: so is one whose number was drawn before another's": Mistake(
        rule=BY_SEQUENCE,
        law=slices_tile,
        steps=(("insert", "a", "ev-1"), ("insert", "b", "ev-2"), ("commit", "b"), ("run", "now"), ("commit", "a")),
    ),
    "rows by age(xmin): it counts open writers that the snapshot's xmax does not": Mistake(
        rule=BY_AGE,
        law=slices_tile,
        steps=(
            ("baseline",),
            ("insert", "a", "ev-1"),
            ("insert", "b", "ev-2"),
            ("insert", "c", "ev-3"),
            ("insert", "d", "ev-4"),
            ("commit", "a"),
            ("run", "now"),
        ),
    ),
    "up to the newest id that has ended: open writers have older ones": Mistake(
        rule=BY_NEWEST_ENDED,
        law=slices_tile,
        steps=(
            ("insert", "a", "ev-1"),
            ("insert", "b", "ev-2"),
            ("insert", "c", "ev-3"),
            ("commit", "c"),
            ("run", "now"),
            ("commit", "a"),
        ),
    ),
    "rows by pg_visible_in_snapshot: it takes an open transaction's savepoint for ended": Mistake(
        rule=BY_SNAPSHOT_FUNCTION,
        law=slices_tile,
        steps=(
            ("nested", "a", "ev-1"),
            ("insert", "b", "ev-2"),
            ("commit", "b"),
            ("run", "now"),
            ("commit", "a"),
        ),
        more=("rollback_to",),
    ),
    "a sample's mark without the open writers: who began before the deadline is not waited for": Mistake(
        rule=MARKED_BY_ENDED_ONES,
        law=in_time_is_never_missing,
        direction=T2L,
        steps=(
            ("baseline",),
            ("produce", "p", "ev-1", "0"),
            ("insert", "a", "ev-1"),
            ("end", "p", "committed"),
            ("run", "now"),
            ("run", "now"),
        ),
        more=("run",) * 8,
    ),
    "a mark above the open transactions: their savepoints have later ids": Mistake(
        rule=MARKED_BY_OPEN_ONES,
        law=what_is_not_held_is_whole,
        steps=(("baseline",), ("wait",), ("nested", "a", "ev-1"), ("sample",), ("commit", "a"), ("cut", "late")),
        more=("sample", "sample", "cut", "commit") * 5,
    ),
    "a horizon that is not flushed: a crash gives ids below it out again": Mistake(
        rule=UNFLUSHED,
        law=slices_tile,
        steps=(("insert", "a", "ev-1"), ("rollback", "a"), ("run", "now"), ("crash",), ("insert", "b", "ev-2")),
        more=("crash", "rollback") * 4,
    ),
    "topics up to the high watermark: what is still open there is read by nobody": Mistake(
        rule=UP_TO_HIGH_WATERMARK,
        law=slices_tile,
        steps=(("baseline",), ("produce", "p", "ev-1", "0"), ("run", "now"), ("end", "p", "committed")),
    ),
    "look-ups asked anew when a stored cut is judged again: the world has moved on": Mistake(
        rule=ASKS_AGAIN,
        law=runs_repeat,
        steps=(
            ("baseline",),
            ("insert", "a", "ev-1"),
            ("commit", "a"),
            ("run", "now"),
            ("run", "now"),
            ("produce", "p", "ev-1", "0"),
            ("again", "1"),
        ),
        more=("run", "again") * 4,
    ),
}
EACH_MISTAKE = pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))


@EACH_MISTAKE
def test_a_mistake_breaks_its_law_where_the_rule_keeps_them_all(mistake: Mistake) -> None:
    def is_broken(steps: Sequence[Step]) -> bool:
        return any(mistake.law(play(steps, mistake.direction, mistake.rule)))

    assert is_broken(mistake.steps)
    assert broken_laws(mistake.steps, mistake.direction, BY_XMIN) == {}


@EACH_MISTAKE
def test_a_mistake_is_found_by_random_schedules(mistake: Mistake) -> None:
    def is_broken(steps: Sequence[Step]) -> bool:
        return any(mistake.law(play(steps, mistake.direction, mistake.rule)))

    found = find(schedules(*mistake.more), is_broken, settings=UNTIL_FOUND)
    assert broken_laws(found, mistake.direction, BY_XMIN) == {}
    assert len(shortest(found, is_broken)) <= len(mistake.steps) + 4


UPDATED = (
    ("baseline",),
    ("insert", "a", "ev-1"),
    ("produce", "p", "ev-1", "0"),
    ("commit", "a"),
    ("end", "p", "committed"),
    ("run", "now"),
    ("update", "1"),
)


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_an_update_after_the_match_breaks_slices_by_xmin_and_is_doubted_and_slices_by_a_written_id_hold(
    direction: Direction,
) -> None:
    windows = play(UPDATED, direction)
    assert list(slices_tile(windows)) == ["ledger:1: read by 2 cuts"]
    assert [doubts_of(result) for result in windows.results][-1] == [Doubt.LEDGER_REWRITTEN, Doubt.VACUOUS_RUN]
    assert broken_laws(UPDATED[:-1], direction, BY_XMIN) == {}
    assert broken_laws(UPDATED, direction, BY_WRITTEN_XID) == {}


@LAW
@given(DIRECTIONS, schedules(*("update", "run") * 4))
def test_no_update_of_a_row_that_a_cut_has_read_goes_without_a_doubt(direction: Direction, steps: list[Step]) -> None:
    windows = play(steps, direction)
    is_doubted = any(Doubt.LEDGER_REWRITTEN in doubts_of(result) for result in windows.results)
    assert is_doubted or not [one for one in slices_tile(windows) if "ledger" in one]
