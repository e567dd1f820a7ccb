"""Laws of the pairing that hold for every history: whatever the order of rows, and wherever the cuts fall."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import permutations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.compare import CompareRule, compared_columns
from tallystick.kafka_log.log_walk import Outcome
from tallystick.matching.match_case import Entry, LookupHit, MatchGroup, MatchStatus, RecordLocation
from tallystick.matching.pairing import pair_key, pair_several
from tallystick.model.direction import Direction
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LAW,
    LEDGER,
    MORE,
    NOON,
    T2L,
    T2T,
    TOPIC,
    case_of,
    deadlines_of,
    event,
    item_of,
    row,
    seen,
)
from tests.unit.in_memory_books import Books

DIRECTIONS = st.sampled_from([L2T, T2L, T2T])
KEYS = st.sampled_from(["ev-1", "ev-2", "ev-3"])


@dataclass(frozen=True)
class Run:
    """One cut of a history. What is held comes with a later one."""

    held_offsets: int
    held_xids: int
    in_grace: bool
    settled: bool


def random_steps(dice: Random) -> list[tuple[str, object]]:
    """A history of three keys: rows, events, aborted events, and runs among them."""
    kinds = ("post", "post", "write", "write", "abort", "run", "run")
    return [_random_step(dice, dice.choice(kinds)) for _ in range(dice.randint(3, 16))]


def _random_step(dice: Random, kind: str) -> tuple[str, object]:
    if kind != "run":
        return kind, f"ev-{dice.randint(1, 3)}"
    held = (0, 0, 1, 2)
    return kind, Run(dice.choice(held), dice.choice(held), dice.random() < 0.5, dice.random() < 0.7)


HISTORIES = st.integers(0, 10**9).map(lambda seed: random_steps(Random(seed)))
"""By seed, since drawn step by step most histories are too short for anything to go wrong in."""


def play(direction: Direction, steps: Sequence[tuple[str, object]]) -> Books:
    """Act a history out, and end it with two runs that hold nothing back."""
    books = Books(direction)
    books.begin()
    for what, about in steps:
        if what == "post":
            books.post(str(about))
        elif what in ("write", "abort"):
            books.write(str(about), outcome=Outcome.COMMITTED if what == "write" else Outcome.ABORTED)
        elif isinstance(about, Run):
            books.run(
                held_offsets=about.held_offsets,
                held_xids=about.held_xids,
                in_grace=about.in_grace,
                topic_settled=about.settled,
                ledger_settled=about.settled,
            )
    books.run()
    books.run()
    return books


def counts(books: Books) -> dict[str, tuple[int, int]]:
    """Rows and committed events of each key."""
    rows = Counter(one.match_key for one in books.rows.values())
    events = Counter(
        one.record.match_key for log in books.logs.values() for one in log if one.record.outcome is Outcome.COMMITTED
    )
    return {key: (rows[key], events[key]) for key in rows | events}


# One cut.


@LAW
@given(DIRECTIONS, st.sets(st.text(min_size=1, max_size=3), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_equal_sides_of_unique_keys_match(direction: Direction, keys: set[str], dice: Random) -> None:
    books = Books(direction)
    books.begin()
    for write in (books.post, books.write):
        for key in dice.sample(sorted(keys), len(keys)):
            write(key)
    result = books.run()
    assert (result.verdict, result.breaks, result.items) == (Verdict.MATCHED, (), ())
    assert result.figures.matched_rows == len(keys)


@LAW
@given(DIRECTIONS, st.sets(KEYS, min_size=1), st.booleans())
def test_a_key_doubled_on_both_sides_is_still_a_duplicate(direction: Direction, keys: set[str], later: bool) -> None:
    books = Books(direction)
    books.begin()
    for _ in range(2):
        for key in sorted(keys):
            books.post(key)
            books.write(key)
        if later:
            books.run()
    books.run()
    assert sorted(key for _, key in books.outstanding().elements()) == sorted(keys)
    assert {str(one)[:9] for one, _ in books.outstanding()} == {"duplicate"}


COPIES = st.lists(
    st.tuples(st.booleans(), st.integers(1, 9), st.sampled_from([100, 200])), min_size=1, max_size=6, unique=True
)


@LAW
@given(DIRECTIONS, COPIES, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(
    direction: Direction, drawn: list[tuple[bool, int, int]], dice: Random
) -> None:
    unique = {(in_topic, at): amount for in_topic, at, amount in drawn}
    copies: list[Entry] = [
        (event if in_topic else row)(at, amount_minor=amount) for (in_topic, at), amount in unique.items()
    ]
    shuffled = dice.sample(copies, len(copies))
    outcomes = [
        pair_key(case_of(*order), direction=direction, deadlines=deadlines_of()) for order in (copies, shuffled)
    ]
    assert outcomes[0].matched == outcomes[1].matched
    assert outcomes[0].residues == outcomes[1].residues


@LAW
@given(DIRECTIONS, COPIES)
def test_every_copy_is_matched_or_accounted_for_once(direction: Direction, drawn: list[tuple[bool, int, int]]) -> None:
    unique = {(in_topic, at): amount for in_topic, at, amount in drawn}
    copies = [(event if in_topic else row)(at, amount_minor=amount) for (in_topic, at), amount in unique.items()]
    outcome = pair_key(
        MatchGroup(match_key="ev-1", copies=tuple(copies)), direction=direction, deadlines=deadlines_of()
    )
    matched = [copy.item_id for pair in outcome.matched for copy in pair]
    odd = [one.item_id for residue in outcome.residues for one in (residue.copy, residue.partner) if one]
    assert sorted(matched + odd) == sorted(copy.item_id for copy in copies)


FEES = st.lists(st.integers(0, 6), max_size=4)
WITHIN_ONE = compared_columns({"fee": CompareRule(abs=Decimal(1))})


@MORE
@given(DIRECTIONS, FEES, FEES)
def test_no_choice_of_partners_leaves_fewer_that_differ_than_the_one_that_is_made(
    direction: Direction, in_topic: list[int], in_ledger: list[int]
) -> None:
    """Copies that waited, so that none is one too many, with a fee that may differ by one."""
    sides = [
        [replace(copy(number + 1), compared_text=WITHIN_ONE.text_of([str(fee)])) for number, fee in enumerate(fees)]
        for copy, fees in ((event, in_topic), (row, in_ledger))
    ]
    copies = [replace(one, carried=item_of(one)) for side in sides for one in side]
    if not copies:
        return
    outcome = pair_key(case_of(*copies), direction=direction, deadlines=deadlines_of(), columns=WITHIN_ONE)
    few, many = sorted((in_topic, in_ledger), key=len)
    best = max(
        sum(abs(one - other) <= 1 for one, other in zip(few, chosen, strict=True))
        for chosen in permutations(many, len(few))
    )
    assert len(outcome.matched) == best
    assert sum(residue.fate is MatchStatus.UNEQUAL for residue in outcome.residues) == len(few) - best


HITS = st.lists(
    st.builds(seen, st.sampled_from([IN_TOPIC, LEDGER]), st.sampled_from(RecordLocation), st.integers(1, 3))
)
"""The copy's own place may be among them."""
LEFT_AS = st.none() | st.tuples(
    st.sampled_from([ItemState.OPEN, ItemState.BROKEN, ItemState.WRITTEN_OFF]), st.sampled_from([NOON, NOON + 2 * HOUR])
)
"""The state and the deadline that an earlier cut gave the copy; None: this cut saw it first."""


@MORE
@given(DIRECTIONS, st.booleans(), LEFT_AS, HITS, st.sampled_from([None, NOON, NOON + HOUR]), st.booleans())
def test_a_copy_alone_is_judged_as_the_pairing_of_several_judges_it(
    direction: Direction,
    in_topic: bool,
    left_as: tuple[ItemState, datetime] | None,
    hits: list[LookupHit],
    settled_until_utc: datetime | None,
    older: bool,
) -> None:
    copy = event(1) if in_topic else row(1)
    if left_as is not None:
        copy = replace(copy, carried=item_of(copy, left_as[0], due_utc=left_as[1]))
    deadlines = deadlines_of(
        topic_settled_until_utc=settled_until_utc, ledger_settled_until_utc=settled_until_utc, rows_may_be_older=older
    )
    case, legs = case_of(copy, lookup_hits=hits), {"payout": TOPIC}
    judged = pair_key(case, direction=direction, deadlines=deadlines, legs=legs)
    assert judged == pair_several(case, direction=direction, deadlines=deadlines, legs=legs, rows_keep_sign=False)


# Many cuts.


@MORE
@given(DIRECTIONS, HISTORIES)
def test_one_event_and_one_row_are_never_left_broken_and_everything_else_is(
    direction: Direction, steps: list[tuple[str, object]]
) -> None:
    books = play(direction, steps)
    broken = Counter(key for _, key in books.outstanding().elements())
    for key, (rows, events) in counts(books).items():
        if rows and events:
            origins, followers = (rows, events) if direction is L2T else (events, rows)
            fewest, most = origins - 1 + max(0, followers - origins), origins - 1 + followers - 1
        else:
            fewest = most = rows + events
        assert fewest <= broken[key] <= most, f"{key}: {rows} rows, {events} events"


@MORE
@given(DIRECTIONS, HISTORIES)
def test_a_held_side_never_reads_as_missing(direction: Direction, steps: list[tuple[str, object]]) -> None:
    """What has been written on both sides, once, is broken by no run after that, whatever the cut may see of it."""
    books = Books(direction)
    books.begin()
    for number, (what, about) in enumerate([*steps, ("run", Run(0, 0, False, True))]):
        if what == "post":
            books.post(f"{about}/{number}")
            books.write(f"{about}/{number}")
        elif isinstance(about, Run):
            books.run(
                held_offsets=about.held_offsets,
                held_xids=about.held_xids,
                in_grace=about.in_grace,
                topic_settled=about.settled,
                ledger_settled=about.settled,
            )
    assert books.breaks == {}
    assert {item.state for item in books.items.values()} <= {ItemState.CLEARED}


@MORE
@given(DIRECTIONS, HISTORIES)
def test_a_break_is_reported_once_and_reddens_its_own_run_only(
    direction: Direction, steps: list[tuple[str, object]]
) -> None:
    books = play(direction, steps)
    reported = [found.break_id for result in books.results for found in result.breaks]
    assert len(reported) == len(set(reported))
    for result in books.results:
        assert (result.verdict is Verdict.BROKEN) == bool(result.breaks)
    assert all(item.break_id in books.breaks for item in books.items.values() if item.state is ItemState.BROKEN)


@MORE
@given(DIRECTIONS, HISTORIES)
def test_nothing_stays_open_once_both_sides_have_settled(direction: Direction, steps: list[tuple[str, object]]) -> None:
    books = play(direction, steps)
    assert ItemState.OPEN not in {item.state for item in books.items.values()}
    assert books.results[-1].figures.in_flight_items == 0
    assert (books.results[-1].breaks, books.results[-1].items) == ((), ())


@LAW
@given(DIRECTIONS, HISTORIES)
def test_a_second_judgement_of_the_same_history_gives_the_same_digests(
    direction: Direction, steps: list[tuple[str, object]]
) -> None:
    first, second = play(direction, steps), play(direction, steps)
    assert [result.digest for result in first.results] == [result.digest for result in second.results]
