"""What the simulated world has found, each shrunk to its fewest steps: none of it is violated any more.

One file, since each story is a line of the same list and is told by the same few questions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tallystick.judging.record_origins import read_record_origins
from tallystick.model.finding_names import Doubt
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.pipeline import investigate
from tests.simulator.known import known_as
from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.standins.run_functions import outstanding_breaks
from tests.simulator.world.config import Config

pytestmark = pytest.mark.usefixtures("in_the_world")


def play(config: Config, *steps: object) -> Play:
    """Plays a schedule, in which nothing may be violated."""
    played = Play(Schedule(config, tuple(steps_of(*steps))))  # type: ignore[arg-type]
    assert played.all() == []
    return played


def known_to_play(config: Config, *steps: object) -> Play:
    """Plays a schedule, in which nothing may be violated but what is known."""
    played = Play(Schedule(config, tuple(steps_of(*steps))))  # type: ignore[arg-type]
    assert [one for one in played.all() if known_as(one) is None] == []
    return played


def doubts(played: Play, *, upto: int) -> list[list[str]]:
    """Of the first runs behind the baseline."""
    verdicts = played.world.store.of("books").verdicts
    return [[str(one.doubt) for one in verdicts[n].result.doubts] for n in range(1, upto + 1)]


def outstanding(played: Play) -> list[str]:
    return [str(one.item_break.break_class) for one in outstanding_breaks(played.world.store, "books")]


def test_a_torn_transaction_is_whole_once_its_leg_came_beside_a_repeat_of_the_other() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, key_is_unique=True, producer_mode="plain", carrier_mode="at_most"),
        *("window", ("half_trade", 2, 7), "window", "window"),
        *(("by_hand", 2, 6), "window", "window"),
    )
    assert outstanding(played) == ["duplicate_in_topic_reprocessed"]


def test_no_transaction_is_torn_whose_forgotten_leg_waits_for_its_row() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, producer_mode="plain", carrier_mode="at_most", contracts=2),
        *(("pay", 2, 7), "window", ("trade", 1, 5), "window", ("retain_all", 1), ("both_again", 0, 8), "window"),
    )
    assert outstanding(played) == ["duplicate_in_ledger", "duplicate_in_topic_cause_unknown"]


def test_no_transaction_is_torn_by_what_repeats_a_repeat() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, producer_mode="plain", carrier_mode="at_most", contracts=2),
        *("window", ("trade", 1, 5), "window", ("retain_all", 1), ("both_again", 0, 8)),
    )
    assert outstanding(played) == ["duplicate_in_ledger", "duplicate_in_topic_no_idempotence"]


def torn_only_since(config: Config, *steps: object) -> None:
    """Hold that no transaction of these steps is called torn, and that one which is torn behind them is."""
    assert "torn_transaction" not in outstanding(play(config, *steps, "window", "window"))
    torn_since = play(config, *steps, "window", ("pay_one_leg", 0, 0), "commit_first", ("trade", 1, 5), *["window"] * 3)
    assert outstanding(torn_since).count("torn_transaction") == 1


SLOWLY = ("window", ("pay", 0, 0), ("commit_first_slowly", 0, 1))
TORN = ("window", ("pay_one_leg", 0, 0), "commit_first", "window")


def test_no_transaction_is_torn_whose_leg_expired_unread_windows_before_the_other_could_be_read() -> None:
    config = Config(legs=2)
    assert outstanding(play(config, *SLOWLY, ("retain", 0, 3), "window", "window")) == []
    assert outstanding(play(config, *TORN)) == ["torn_transaction"]


@pytest.mark.parametrize("kind", ["xmin", "written_xid", "jdbc", "parquet"])
@pytest.mark.parametrize(
    ("direction", "again"), [("ledger_to_topic", ("redeliver", 0, 8)), ("topic_to_ledger", ("first_again", 0, 8))]
)
def test_no_transaction_from_before_the_books_is_torn_by_a_leg_that_is_sent_again_once_the_log_has_forgotten_it(
    direction: str, again: tuple[object, ...], kind: str
) -> None:
    config = Config(direction=direction, legs=2, slice_by=kind, producer_mode="plain", carrier_mode="at_least")
    before, after = (
        (("trade", 0, 5), "window", ("retain_all", 1), ("trade", 1, 5), "window"),
        (("trade", 1, 5), "window"),
    )
    sent_again = play(config, *before, again, *after)
    assert "torn_transaction" not in outstanding(sent_again)
    assert "partner_not_settled" in {doubt for run in doubts(sent_again, upto=4) for doubt in run}
    torn_since = play(config, *before, ("pay_one_leg", 0, 0), "commit_first", *after, "window")
    assert outstanding(torn_since) == ["torn_transaction"]


_LATE_OF_BEFORE = {
    "ledger_to_topic": (
        *(("pay", 2, 0), ("trade", 0, 5), "window", "retain_all", ("trade", 1, 5), "window", ("redeliver", 0, 8)),
        *(("commit_first", 2, 0), ("trade", 1, 5), "window"),
    ),
    "topic_to_ledger": (
        *(("half_trade", 2, 0), ("carry", 2, 0), ("carry", 2, 0), ("trade", 0, 5), "window", "retain_all"),
        *(("trade", 1, 5), "window", ("first_again", 1, 2), ("commit_second", 2, 0), ("trade", 1, 5), "window"),
    ),
}
"""A horizon below the rows of a whole transaction until a leg of it comes again."""


@pytest.mark.parametrize(
    ("direction", "kind"),
    [("ledger_to_topic", "xmin"), ("ledger_to_topic", "written_xid"), ("topic_to_ledger", "written_xid")],
)
def test_no_transaction_is_torn_of_which_a_row_is_undecidable_for_the_leg_that_is_not_seen(
    direction: str, kind: str
) -> None:
    """Its rows were left behind the baseline, and one is read beside a leg that comes again."""
    config = Config(direction=direction, legs=2, slice_by=kind, producer_mode="plain", carrier_mode="at_least")
    late = _LATE_OF_BEFORE[direction]
    assert "torn_transaction" not in outstanding(play(config, *late, "window", "window"))
    torn_since = play(config, *late, "window", ("pay_one_leg", 0, 0), "commit_first", ("trade", 1, 5), "window")
    assert outstanding(torn_since).count("torn_transaction") == 1


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        pytest.param(
            Config(slice_by="jdbc", legs=2, key_is_unique=True),
            (
                *(("trade", 5, 1), "window", ("archive", 5, 4), ("pay", 2, 8), ("retain", 4, 6), ("both_again", 4, 10)),
                *(("trade", 3, 3), ("phantom", 2, 3), "window", "window", ("retain", 3, 1)),
            ),
            id="jdbc",
        ),
        pytest.param(
            Config(legs=2, key_is_unique=True, producer_mode="plain", carrier_mode="at_most"),
            (
                *(("trade", 2, 3), ("trade", 4, 3), ("pay", 2, 3), ("trade", 1, 5), "window", ("carry", 1, 0)),
                *(("commit_second", 3, 2), "window", "window", ("retain_all", 3, 7), ("carry", 1, 4)),
                ("first_again", 4, 7),
            ),
            id="xmin",
        ),
        pytest.param(
            Config(slice_by="written_xid", legs=2, carrier_mode="at_least"),
            (
                *(("half_trade", 3, 3), "window", ("trade", 0, 5), ("trade", 4, 11), "window", "window"),
                *(("archive", 5, 4), ("retain_all", 3, 3), ("first_again", 0, 1)),
            ),
            id="written_xid",
        ),
        pytest.param(
            Config(direction="ledger_to_topic", legs=2),
            (
                *(("trade", 3, 4), "window", ("cluster_down", 0, 0, 27), "cluster_down", ("touch", 4, 2, 22), "window"),
                *(("replace_row", 5, 0), "window", ("both_again", 5, 9), "window", ("retain_all", 5, 9)),
            ),
            id="its events come behind its rows",
        ),
    ],
)
def test_nor_where_an_earlier_run_has_left_that_row_undecidable_and_no_run_reads_it_again(
    config: Config, steps: tuple[object, ...]
) -> None:
    torn_only_since(config, *steps)


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        pytest.param(
            Config(direction="ledger_to_topic", slice_by="jdbc", legs=2, carrier_mode="at_least"),
            (("trade", 1, 3), "window", "window", ("redeliver", 5, 7), "window", ("retain_all", 5, 7)),
            id="its row is held back",
        ),
        pytest.param(
            Config(direction="ledger_to_topic", slice_by="jdbc", legs=2, key_is_unique=True, carrier_mode="at_most"),
            (("trade", 2, 3), ("retain_all", 0, 1), "window", ("redeliver", 3, 10), "window"),
            id="the row of the other leg has just been read",
        ),
        pytest.param(
            Config(legs=2, key_is_unique=True, posts="column"),
            (
                *(("pay", 1, 7), ("trade", 4, 7), ("carry", 1, 9), ("retain_all", 1, 9), "window"),
                *(("first_again", 4, 5), "window", "window"),
            ),
            id="its row comes behind it",
        ),
        pytest.param(
            Config(direction="topic_to_topic", slice_by="topic", legs=2, carrier_mode="at_most"),
            (
                *(("trade", 5, 1), ("trade", 4, 0), ("trade", 0, 9), "window", "window", ("redeliver", 2, 1)),
                ("compact", 1, 1),
            ),
            id="its input was found only by the run that had to judge it",
        ),
        pytest.param(
            Config(slice_by="jdbc", legs=2, contracts=2),
            (
                *(("trade", 0, 8), ("trade", 2, 11), ("cluster_down", 0, 0, 38), "window", "cluster_down", "window"),
                *(("retain_all", 4, 3), ("first_again", 4, 1)),
            ),
            id="its row, of before, is read beside it",
        ),
    ],
)
def test_nor_before_what_is_known_of_its_rows_tells_whether_it_is_of_before(
    config: Config, steps: tuple[object, ...]
) -> None:
    torn_only_since(config, *steps)


def test_nor_where_the_event_of_its_other_leg_had_followed_a_row_too_many_that_was_written_off() -> None:
    steps = (
        *(("pay", 5, 5), "window", "window", ("commit_first", 4, 10), "window", "window", ("correct_by_hand", 5, 7)),
        *("window", ("write_off", 5, 11), ("retain_all", 3, 8), ("write_off", 3, 8)),
    )
    config = Config(direction="ledger_to_topic", slice_by="parquet", legs=2)
    assert outstanding(play(config, *steps, "window", "window")) == []
    torn_since = play(config, *steps, "window", ("pay_one_leg", 0, 0), "commit_first", ("trade", 1, 5), *["window"] * 3)
    assert outstanding(torn_since).count("torn_transaction") == 1


def test_no_row_is_without_an_event_that_retention_took_behind_a_cut_that_an_open_transaction_held() -> None:
    config = Config(legs=2, key_is_unique=True, contracts=2, posts="negated")
    steps = (("pay", 0, 0), "window", ("trade", 2, 8), "window", ("cluster_down", 2, 7, 32), "window", ("trade", 3, 4))
    assert outstanding(play(config, *steps, ("retain_all", 0, 3), "window", "window")) == []
    assert "phantom_in_ledger" in outstanding(play(config, *steps, ("phantom", 2, 3), "window", "window", "window"))


def test_nor_whose_row_an_update_took_past_a_cut_that_an_open_transaction_held() -> None:
    config = Config(direction="ledger_to_topic", slice_by="xmin", producer_mode="transactional")
    steps = (("pay_one_leg", 1, 9), ("trade", 0, 10), "window", ("pay", 5, 8), ("retain", 2, 2))
    down = (("commit_first", 4, 6), ("cluster_down", 0, 0, 23), "window", "cluster_down", "window")
    played = play(config, *steps, ("touch", 4, 1, 27), *down)
    assert outstanding(played) == []
    assert [("partner_not_settled" in one) for one in doubts(played, upto=4)] == [False, True, False, True]
    ended = (("commit_first", 5, 0), *[("carry", 0, 0), ("commit_second", 0, 0)] * 2, "window", ("pay", 4, 0))
    at_most = config._replace(carrier_mode="at_most")
    played = play(at_most, *steps, ("touch", 4, 1, 27), *down, *ended, ("commit_first", 4, 0), ("lose", 0, 0), "window")
    assert outstanding(played) == ["missing_in_topic_never_produced"]


def test_rows_that_were_left_undecided_in_words_are_told_by_written_xid_though_they_are_touched_since() -> None:
    config = Config(slice_by="written_xid", key_is_unique=False, producer_mode="plain", carrier_mode="at_least")
    steps = (("pay", 1, 2), ("carry", 1, 3), ("trade", 5, 10), "window", ("redeliver", 5, 4), ("commit_second", 2, 3))
    cut_back = (("trade", 0, 11), ("first_again", 2, 3), "window")
    played = play(config, *steps, ("truncate", 3, 7, 24), "window", *cut_back, ("rewrite", 1, 4))
    assert "log_rewritten" in doubts(played, upto=2)[1]
    assert outstanding(played) == []
    assert outstanding(play(config, *steps, "window", *cut_back, ("rewrite", 1, 4))).count("duplicate_in_ledger") == 1


def test_a_row_without_event_is_told_by_its_transaction_that_is_torn_for_want_of_its_leg() -> None:
    played = play(
        Config("ledger_to_topic", "xmin", legs=2, key_is_unique=False, producer_mode="plain", carrier_mode="at_most"),
        *(("trade", 4, 9), ("keyless_legs", 3, 10), ("pay", 4, 0), ("kill", 31, 0), "window", ("half_trade", 5, 4)),
        *(("lose", 5, 0, 27), "window"),
    )
    assert outstanding(played) == ["torn_transaction"]
    said = played.oracle.reported["books"]["pay-5"]
    played.oracle.reported["books"]["pay-5"] = [(at, replace(found, leg="payout")) for at, found in said]
    played.oracle.over(played.product)
    assert [one.sentence.partition(",")[0] for one in played.oracle.violations] == ["books: ev-5-fee: missing"]


def test_one_whose_row_a_transaction_wrote_that_was_open_when_the_books_began_is_left_undecided_in_words() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, key_is_unique=True),
        *(("pay_one_leg", 1, 10), "window", ("trade", 3, 4), "window", ("retain", 4, 5), ("half_trade", 1, 2)),
        *("window", "window"),
    )
    assert outstanding(played) == []
    runs = [run for _, run in sorted(played.world.store.of("books").verdicts.items())]
    said = [run for run in runs if _leaves_a_transaction_undecided(run.result.items)]
    assert [Doubt.PARTNER_NOT_SETTLED in run.doubts for run in said] == [True]


def test_nor_where_the_input_of_a_leg_that_is_sent_again_is_out_of_sight() -> None:
    played = play(
        Config(direction="topic_to_topic", slice_by="topic", legs=2, carrier_mode="at_most"),
        *(("trade", 2, 6), "retain_all", "window", ("redeliver", 3, 9), "window", "window"),
    )
    assert outstanding(played) == []
    assert "partner_not_settled" in doubts(played, upto=2)[1]


def test_one_of_which_a_row_is_undecidable_is_torn_all_the_same_while_the_topics_have_lost_nothing() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, producer_mode="plain", carrier_mode="at_most"),
        *(("half_trade", 4, 3), "window", ("pay", 5, 9), ("commit_first", 1, 10), ("delete", 0, 0), ("delete", 4, 11)),
        *("window", ("delete", 0, 8), "window", ("trade", 2, 1), "window", "window"),
    )
    assert "torn_transaction" in outstanding(played)


_ANEW_PERHAPS = {
    "jdbc": (
        *("window", ("trade", 4, 1), "window", ("retain_all", 3, 8), ("pay", 2, 11), ("trade", 3, 11), "window"),
        *(("commit_first", 0, 10), "window", ("lose", 2, 5)),
    ),
    "xmin": (
        *("window", ("trade", 1, 10), "window", ("half_trade", 2, 6), ("archive", 1, 0), ("retain_all", 4, 5)),
        *("window", ("archive", 4, 2), "window", ("wait", 1, 2)),
    ),
}
"""Rows that may have been written anew, of a transaction of which one leg never comes."""


@pytest.mark.parametrize(("kind", "carrier"), [("jdbc", "at_most"), ("xmin", "exactly")])
def test_one_that_is_torn_is_left_undecided_in_words_where_the_row_of_its_absent_leg_may_have_been_written_anew(
    kind: str, carrier: str
) -> None:
    config = Config(direction="ledger_to_topic", slice_by=kind, legs=2, carrier_mode=carrier)
    played = play(config, *_ANEW_PERHAPS[kind])
    assert outstanding(played) == []
    runs = [run for _, run in sorted(played.world.store.of("books").verdicts.items())]
    said = [run for run in runs if _leaves_a_transaction_undecided(run.result.items)]
    assert [Doubt.PARTNER_NOT_SETTLED in run.doubts for run in said] == [True]


def _leaves_a_transaction_undecided(items: Iterable[OpenItem]) -> bool:
    return any(one.side is ItemSide.LEGS and one.state is ItemState.UNDECIDABLE for one in items)


@pytest.mark.parametrize("kind", ["xmin", "parquet"])
@pytest.mark.parametrize(
    ("direction", "again"), [("ledger_to_topic", ("redeliver", 0, 8)), ("topic_to_ledger", ("first_again", 0, 8))]
)
def test_nor_where_its_rows_were_written_anew_before_a_leg_of_it_is_sent_again(
    direction: str, again: tuple[object, ...], kind: str
) -> None:
    config = Config(direction=direction, legs=2, slice_by=kind, producer_mode="plain", carrier_mode="at_least")
    anew = (("touch", 0, 0), ("touch", 0, 1)) if kind == "xmin" else (("rewrite", 0, 0),)
    played = play(
        config,
        *(("trade", 0, 5), "window", "retain_all", ("trade", 1, 5), "window", *anew, again, ("trade", 1, 5)),
        *("window", "window", "window"),
    )
    assert "torn_transaction" not in outstanding(played)
    assert "partner_not_settled" in doubts(played, upto=3)[2]


AGAIN = ("both_again", 0, 8)


@pytest.mark.parametrize(
    ("again", "told"),
    [
        pytest.param((AGAIN,), ["duplicate_in_ledger"], id="its row is new"),
        pytest.param(("touch", ("redeliver", 0, 8)), [], id="its row is written anew"),
    ],
)
def test_no_transaction_is_torn_whose_leg_comes_again_while_its_row_is_held(
    again: tuple[object, ...], told: list[str]
) -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, producer_mode="plain", carrier_mode="at_least"),
        *("window", ("trade", 0, 5), "window", "retain_all", ("pay", 1, 0), *again, "window", "window"),
    )
    assert [one for one in outstanding(played) if not one.startswith("duplicate_in_topic")] == told


def test_one_that_is_torn_since_is_told_beside_it_while_the_log_shows_the_older_one() -> None:
    played = play(Config(legs=2, producer_mode="plain"), ("trade", 0, 5), "window", AGAIN, "pay_one_leg")
    assert outstanding(played) == ["duplicate_in_topic_no_idempotence", "torn_transaction"]


@pytest.mark.parametrize(
    ("again", "told"), [(("trade", 1, 1), []), (("redeliver", 1, 1), ["duplicate_in_topic_new_session"])]
)
def test_by_jdbc_the_event_of_a_late_row_is_no_duplicate_where_another_row_of_its_slice_went(
    again: tuple[object, ...], told: list[str]
) -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="jdbc", carrier_mode="at_least"),
        *("window", ("trade", 1, 1), "pay", *(5 * [("trade", 1, 1)]), "window"),
        *("delete", "commit_first", "carry", "commit_second", again, ("trade", 1, 1)),
    )
    assert outstanding(played) == told


def test_an_event_is_not_held_against_what_its_row_said_before_an_update_behind_the_horizon() -> None:
    played = play(
        Config(direction="ledger_to_topic"),
        *("window", "half_trade", "window", ("pay", 1, 0), "change", "carry", "commit_second", "window"),
    )
    assert outstanding(played) == []


def test_each_event_of_a_row_that_its_owner_replaced_is_its_own() -> None:
    played = play(
        Config(
            direction="ledger_to_topic", slice_by="written_xid", legs=2, producer_mode="plain", carrier_mode="at_least"
        ),
        *(
            ("trade", 2, 6),
            "window",
            ("replace_row", 1, 0),
            ("half_trade", 0, 8),
            "window",
            ("trade", 1, 6),
            ("pay", 2, 4),
        ),
        *(("replace_row", 5, 7), ("trade", 1, 10), "window", ("trade", 3, 11), "window"),
    )
    assert outstanding(played) == []


def test_a_repaired_row_that_its_owner_changes_meanwhile_stops_no_books() -> None:
    played = play(
        Config(direction="ledger_to_topic", producer_mode="plain", carrier_mode="at_least", contracts=2),
        *(
            "window",
            ("half_trade", 2, 9, 26),
            "window",
            "window",
            ("plan_and_act", 0, 5),
            ("change", 1, 3, 53),
            "window",
        ),
    )
    told = [
        str(one.break_class) for row in played.world.store.of("audit").verdicts.values() for one in row.result.breaks
    ]
    assert told[:2] == ["missing_in_topic_never_produced", "amount_mismatch"]


OLDER = (("trade", 1, 5), "window")


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        pytest.param((*OLDER, ("retain", 1, 3), "window", "rewrite"), [], id="compacted"),
        pytest.param(
            (*OLDER, ("retain", 1, 3), "window", ("pay", 2, 0), "commit_first", "lose"),
            ["missing_in_topic_never_produced"],
            id="a new file alone",
        ),
    ],
)
def test_a_row_that_comes_again_in_a_compacted_file_is_not_missing_once_its_event_has_expired(
    steps: tuple[object, ...], told: list[str]
) -> None:
    config = Config(direction="ledger_to_topic", slice_by="parquet", producer_mode="plain", carrier_mode="at_most")
    assert outstanding(play(config, *steps)) == told


@pytest.mark.parametrize(
    ("began", "told"),
    [
        pytest.param((*OLDER,), [], id="in no index: the books began later"),
        pytest.param(("window", *OLDER), ["duplicate_in_ledger"], id="in the index"),
    ],
)
def test_an_input_that_comes_again_is_a_duplicate_as_far_as_the_index_of_keys_reaches(
    began: tuple[object, ...], told: list[str]
) -> None:
    config = Config(direction="topic_to_topic", slice_by="topic")
    assert outstanding(play(config, *began, ("first_again", 2, 9))) == told


TWICE = (("trade", 0, 0), ("trade", 0, 0))


@pytest.mark.parametrize(("step", "told"), [("rewrite_tail", [["log_rewritten"], []]), ("lead", [[], []])])
def test_a_log_that_grew_again_below_the_baseline_is_told_by_the_first_run(step: str, told: list[list[str]]) -> None:
    played = play(Config(producer_mode="plain"), *TWICE, "window", (step, 0, 0), "window", "window")
    assert doubts(played, upto=2) == told


@pytest.mark.parametrize(
    ("step", "told"), [("rewrite_tail", [[], ["log_rewritten"], ["log_rewritten"], []]), ("lead", [[], [], [], []])]
)
def test_a_log_that_grew_again_is_told_again_where_it_does_before_anything_new_was_read(
    step: str, told: list[list[str]]
) -> None:
    played = play(
        Config(producer_mode="plain"),
        *("window", *TWICE, "window", (step, 0, 0), "window", (step, 0, 1), "window", "window"),
    )
    assert doubts(played, upto=4) == told


CLOSED = (("cluster_down", 0, 0, 20), "window", "close_cut", "cluster_down")


def test_a_cut_that_is_closed_unread_forgets_nothing_of_the_log_before_it() -> None:
    played = play(
        Config(producer_mode="plain"),
        *("window", *TWICE, "window", *CLOSED, ("rewrite_tail", 0, 0), "window", "window"),
    )
    assert doubts(played, upto=4) == [[], ["cut_closed"], ["log_rewritten"], []]


@pytest.mark.parametrize("slice_by", ["xmin", "written_xid"])
@pytest.mark.parametrize(("again", "told"), [("by_hand", ["duplicate_in_ledger"]), ("wait", [])])
def test_a_row_whose_double_stands_in_a_cut_that_was_closed_is_one_too_many(
    slice_by: str, again: str, told: list[str]
) -> None:
    missing = ("window", "trade", "window", "half_trade", "window", "window")
    played = play(
        Config(slice_by=slice_by, carrier_mode="at_least"),
        *(*missing, again, *CLOSED, "carry", "commit_second", "window", "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(("again", "told"), [("redeliver", ["duplicate_in_topic_new_session"]), ("wait", [])])
def test_of_two_events_of_a_row_in_a_cut_that_was_closed_one_is_too_many(again: str, told: list[str]) -> None:
    played = play(
        Config(direction="ledger_to_topic", carrier_mode="at_least"),
        *("window", "half_trade", *CLOSED, "carry", "commit_second", again, "window", "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("again", "told"), [(("first_again", 1, 0), ["duplicate_in_topic_cause_unknown"]), (("wait", 1, 0), [])]
)
@pytest.mark.parametrize("held", [True, False], ids=["held", "idle"])
def test_an_event_repeats_one_of_a_closed_cut_though_the_cut_behind_that_had_none_to_read(
    held: bool, again: object, told: list[str]
) -> None:
    before, after = ([("pay", 1, 0)], [("commit_first", 1, 0)]) if held else ([], [])
    played = play(
        Config(partitions=1),
        *("window", "half_trade", *CLOSED, *before, "window", "carry", again, *after, "window"),
        *("commit_second", "window", "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("again", "told"), [(("first_again", 5, 10), ["duplicate_in_topic_reprocessed"]), (("trade", 5, 10), [])]
)
def test_an_event_that_is_published_again_is_not_the_one_of_a_row_from_before_the_books_that_was_touched(
    again: tuple[object, ...], told: list[str]
) -> None:
    played = play(
        Config(key_is_unique=True, producer_mode="plain", carrier_mode="at_most"),
        *(("trade", 2, 8), "window", ("touch", 0, 4), "window", again, "window", "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(("again", "told"), [("redeliver", ["duplicate_in_topic_new_session"]), ("wait", [])])
@pytest.mark.parametrize("before", [("window", "trade"), ("trade", "window")], ids=["read", "older than the books"])
def test_an_event_that_comes_again_is_one_too_many_where_its_row_is_touched_behind_the_horizon(
    before: tuple[str, ...], again: str, told: list[str]
) -> None:
    played = play(
        Config(direction="ledger_to_topic", carrier_mode="at_least"),
        *(*before, "window", ("pay", 1, 0), "touch", again, "window"),
        *(("commit_first", 1, 0), "carry", "commit_second", "window", "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(("again", "told"), [("wait", []), (("redeliver", 0, 0), ["duplicate_in_topic_new_session"])])
def test_by_jdbc_the_event_of_a_late_row_is_no_duplicate_where_rows_went_that_sum_up_to_the_same(
    again: object, told: list[str]
) -> None:
    """Rows 2 and 3 are archived, 1 and 4 come late."""
    half_trades = (("half_trade", 0, 6), ("half_trade", 0, 10))
    played = play(
        Config(direction="ledger_to_topic", slice_by="jdbc", key_is_unique=True, carrier_mode="at_most"),
        *("window", ("pay", 5, 3), *half_trades, ("pay", 5, 10), ("pay", 3, 6), ("pay", 3, 6), ("trade", 0, 2)),
        *("window", ("archive", 4, 2), again),
    )
    assert [one for one in outstanding(played) if one.startswith("duplicate")] == told


@pytest.mark.parametrize("slice_by", ["xmin", "written_xid"])
def test_an_event_that_the_baseline_could_not_read_is_no_duplicate_of_its_row_s_second(slice_by: str) -> None:
    """The replicas were behind, so that its row is older than the books and it is not."""
    played = play(
        Config(slice_by=slice_by, producer_mode="plain", carrier_mode="at_least"),
        *(("fall_behind", 0, 9), ("trade", 5, 1), "window", ("redeliver", 1, 4), "window"),
    )
    assert outstanding(played) == ["duplicate_in_ledger"]


@pytest.mark.parametrize(
    ("step", "told"), [(("touch", 4, 1, 13), ["ledger_rewritten", "vacuous_run"]), (("wait", 0, 0), [])]
)
def test_a_row_that_is_updated_while_the_books_begin_is_missed_by_the_count_of_older_rows(
    step: object, told: list[str]
) -> None:
    """Its horizon and this count are read at one moment. Its event has expired when a run asks for it."""
    played = play(
        Config(direction="ledger_to_topic", carrier_mode="at_least", contracts=2),
        *(("trade", 5, 10), step, "window", ("retain", 2, 3, 41), "window"),
    )
    assert doubts(played, upto=1) == [told]
    assert outstanding(played) == []


@pytest.mark.parametrize(
    ("late", "told"), [(("carry", "commit_second"), ["duplicate_in_ledger"]), (("lose",), [])], ids=["late", "never"]
)
def test_beside_a_row_that_was_touched_after_a_cut_had_read_it_another_row_of_its_event_is_one_too_many(
    late: tuple[str, ...], told: list[str]
) -> None:
    """The first was written by hand. Either may be that one, written anew; both cannot."""
    played = play(
        Config(carrier_mode="at_most"),
        *("window", "half_trade", "window", "window", "by_hand", "window", ("touch", 4, 2, 9), "window"),
        *(*late, "window", "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("later", "told"),
    [(("wait",), []), (("half_trade", "lose"), ["missing_in_topic_never_produced"])],
    ids=["alone", "a new row"],
)
def test_a_row_from_before_the_books_that_is_touched_ahead_of_two_runs_is_not_missing_once_its_event_has_expired(
    later: tuple[str, ...], told: list[str]
) -> None:
    """Each time between a run's count and its scan: the second run has it in its slice, and neither reads it."""
    played = play(
        Config(direction="ledger_to_topic", carrier_mode="at_most", contracts=2),
        *(("trade", 5, 10, 0), "window", ("touch", 4, 2, 4), "window", ("retain", 2, 3, 41), ("touch", 4, 3, 15)),
        *("window", "window", "window", *later, "window", "window"),
    )
    assert outstanding(played) == told


def test_no_transaction_is_torn_whose_leg_was_read_as_the_event_of_a_row_too_many_and_has_expired() -> None:
    """The leg's first row was added to a file that a cut had taken already, so that no cut reads it."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="parquet", legs=2),
        *(("half_trade", 5, 5), "window", ("pay", 0, 4), ("file_added_to", 2, 10), ("file_added_to", 0, 7)),
        *(("pay", 2, 1), ("trade", 2, 2), ("carry_out_of_turn", 5, 7), ("carry_wrong", 0, 5), ("carry", 5, 1)),
        *(("file_added_to", 2, 0), ("carry", 4, 0), ("carry_out_of_turn", 3, 7), ("trade", 1, 11)),
        *(("first_again", 3, 8), "window", ("retain_all", 5, 9)),
    )
    assert outstanding(played) == ["duplicate_in_ledger"]


@pytest.mark.parametrize(
    ("also", "told"),
    [
        pytest.param("reverse_for_nothing", ["duplicate_in_ledger"], id="beside its reversal"),
        pytest.param("trade", ["missing_in_ledger"], id="beside another key's row"),
    ],
)
def test_an_event_is_not_missing_whose_row_was_taken_back_and_archived_unread(also: str, told: list[str]) -> None:
    """To post it beside a repair of the reversal would pay twice where what is archived still counts."""
    played = play(
        Config(key_is_unique=True, posts="negated"), *("window", ("trade", 0, 8), (also, 3, 9), ("archive", 3, 11))
    )
    assert outstanding(played) == told


@pytest.mark.parametrize("held", [(), (("carry", 3, 5),)], ids=["in one cut", "its reversal behind the horizon"])
def test_a_row_too_many_that_another_contract_has_taken_back_already_is_none(held: tuple[object, ...]) -> None:
    played = play(
        Config(slice_by="written_xid", carrier_mode="at_least", contracts=2, posts="column"),
        *("window", ("pay", 3, 4), ("trade", 0, 11), ("first_again", 3, 0), ("trade", 4, 7), "window", ("trade", 2, 6)),
        *("window", ("plan_and_act", 0, 8), ("trade", 4, 9, 58), "window", *held, ("plan_and_act", 2, 7), "window"),
    )
    of_audit = played.world.store.of("audit").verdicts.values()
    assert any(
        found.match_key == "ev-3-payout" for row in of_audit for found in row.result.breaks if row.result.cut_n == 3
    )
    assert "duplicate_in_ledger" not in outstanding(played)


@pytest.mark.parametrize(("later", "told"), [("carry", ["log_rewritten"]), ("wait", ["log_truncated"])])
def test_a_log_that_was_cut_back_once_a_run_had_read_it_and_has_grown_again_is_told_by_the_next_run(
    later: str, told: list[str]
) -> None:
    """The run has no batch left to keep, so that the next one found nothing to compare and called it MATCHED."""
    played = play(
        Config(
            direction="ledger_to_topic",
            partitions=2,
            key_is_unique=True,
            producer_mode="transactional",
            carrier_mode="at_most",
        ),
        *(
            ("half_trade", 1, 2),
            "window",
            ("half_trade", 1, 2),
            "window",
            "window",
            ("trade", 5, 9),
            ("by_hand", 3, 10),
        ),
        *(("truncate", 0, 7, 21), "window", ("by_hand", 5, 11), (later, 0, 0), (later, 0, 0), "window"),
    )
    assert [one for one in doubts(played, upto=4)[3] if one.startswith("log_")] == told


@pytest.mark.parametrize(("gone", "told"), [(("delete", 2, 9), True), (("wait", 2, 9), False)], ids=["gone", "stands"])
def test_a_reversal_is_one_row_too_many_where_what_it_takes_back_is_gone_unread(
    gone: tuple[object, ...], told: bool
) -> None:
    """So says the run, and it doubts the ledger: nobody knows which of the key's rows still counts."""
    played = play(
        Config(producer_mode="plain", carrier_mode="at_least", posts="column"),
        *(("trade", 0, 2), ("first_again", 5, 6), ("both_again", 5, 6), ("carry", 5, 1, 42), ("trade", 4, 2)),
        *(("trade", 1, 11, 60), "window", ("trade", 5, 3), ("trade", 1, 2), "window", ("both_again", 1, 1), "window"),
        *(("plan_and_act", 5, 1), ("trade", 1, 9), "window", ("plan_and_act", 0, 5), gone),
    )
    run = played.world.store.of("books").verdicts[4].result
    ours = [str(one.break_class) for one in run.breaks if one.match_key == "ev-5-payout"]
    assert ("duplicate_in_ledger" in ours, [str(one.doubt) for one in run.doubts]) == (
        told,
        ["ledger_rewritten"] if told else [],
    )


@pytest.mark.parametrize(("step", "told"), [("rewrite_tail", ["log_rewritten"]), ("lead", [])])
def test_nothing_is_judged_of_a_log_that_was_cut_back_since_the_cut_and_has_grown_again(
    step: str, told: list[str]
) -> None:
    """It was judged, by records that had been written after the cut was made."""
    played = play(
        Config(legs=2, carrier_mode="at_least"),
        *("window", ("trade", 2, 10), ("trade", 1, 8), (step, 5, 2, 17), "window", "wait", ("trade", 5, 3)),
    )
    (of_first_run,) = doubts(played, upto=1)
    assert [one for one in of_first_run if one.startswith("log_")] == told


def test_a_reversal_that_was_cut_away_once_it_was_read_is_no_event_too_many() -> None:
    """The header that says what it takes back went with it."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(("trade", 3, 7), ("trade", 5, 7), ("trade", 5, 1), ("trade", 5, 1), "window", ("redeliver", 1, 3), "window"),
        *(("plan_and_act", 4, 7), ("truncate", 4, 11, 25), "window"),
    )
    assert outstanding(played) == ["duplicate_in_topic_new_session"]
    assert "torn_cut" in doubts(played, upto=2)[1]


_DOUBLED = (
    *(("trade", 3, 7), ("trade", 5, 7), ("trade", 5, 1), ("trade", 5, 1), "window", ("redeliver", 1, 3), "window"),
    ("plan_and_act", 4, 7),
)
"""An event too many, and its reversal."""


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        pytest.param(("retain_all", 4, 3, 22), [], id="expired"),
        pytest.param(("truncate", 4, 11, 26), ["duplicate_in_topic_new_session"], id="cut away once it was believed"),
    ],
)
def test_a_reversal_that_was_read_and_expired_has_taken_back_what_it_names_and_one_that_was_cut_away_has_not(
    taken: tuple[object, ...], left: list[str]
) -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(*_DOUBLED, taken, "window", "window"),
    )
    assert outstanding(played) == left
    assert "torn_cut" in doubts(played, upto=2)[1]


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        pytest.param(("truncate", 5, 0, 0), ["duplicate_in_topic_new_session"], id="aborted once its marker had gone"),
        pytest.param(("wait", 5, 0), [], id="it stands"),
    ],
)
def test_the_copy_of_a_reversal_that_was_aborted_stands_for_a_contract_that_repairs_nothing(
    taken: tuple[object, ...], left: list[str]
) -> None:
    """The world held it to be taken back for good."""
    played = play(
        Config(direction="ledger_to_topic", partitions=1, carrier_mode="at_most", contracts=2),
        *(("trade", 0, 8), ("trade", 4, 7), "window", ("trade", 0, 9), ("redeliver", 2, 5), "window", "window"),
        *(("plan_and_act", 0, 0), taken, "window", ("trade", 0, 9), "window", "window"),
    )
    assert [str(one.item_break.break_class) for one in outstanding_breaks(played.world.store, "audit")] == left


@pytest.mark.parametrize("is_brought_home", [True, False])
def test_a_reversal_that_a_cleaner_takes_once_it_was_read_is_no_event_too_many(
    is_brought_home: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the scan brings no records home, what it takes back went with it: its break stands, and nothing else is
    said of it.
    """
    if not is_brought_home:

        def of_the_log_alone(*asked: Any) -> Any:
            return read_record_origins(*asked[:3], heads=asked[4])

        monkeypatch.setattr(investigate, "read_record_origins", of_the_log_alone)
    config = Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least", partitions=1)
    played = Play(Schedule(config, ()))
    for step in steps_of(*_DOUBLED):
        played.do(step)
    (copy,) = (one.money for one in played.world.truth.events if one.by == "repair")
    played.services.write(True, 0, replace(copy, match_key="ev-9-payout", amount_minor=777), partition=0)
    played.services.end(True, 0, commit=True)
    played.services.carry(0, 0, 0)
    played.services.end_carrying(0, commit=True)
    for step in steps_of(("compact", 4, 8, 22), "window", "window", "window"):
        played.do(step)
    assert any("compaction takes" in one for one in played.world.told)
    verdicts = played.world.store.of("books").verdicts
    assert [one.break_class for n in (2, 3, 4) for one in verdicts[n].result.breaks] == []
    assert (outstanding(played), doubts(played, upto=2)[1]) == (
        ([], []) if is_brought_home else (["duplicate_in_topic_new_session"], ["torn_cut"])
    )


@pytest.mark.parametrize(
    ("taken", "told", "doubted"),
    [
        pytest.param(("truncate", 0, 0, 24), "duplicate_in_ledger", ["partner_not_settled", "torn_cut"], id="read"),
        pytest.param(("truncate", 0, 0), "duplicate_in_ledger", [], id="gone before it is read"),
        pytest.param(("wait", 0, 0), "duplicate_in_topic_reprocessed", [], id="not taken"),
    ],
)
def test_the_row_of_an_event_too_many_that_was_cut_away_once_it_was_read_is_one_too_many_itself(
    taken: tuple[object, ...], told: str, doubted: list[str]
) -> None:
    """No item named it, so that the books were MATCHED over it."""
    played = play(
        Config(producer_mode="plain", carrier_mode="at_least", partitions=1),
        *(("trade", 0, 5), "window", ("trade", 0, 6), "window", ("half_trade", 0, 7), ("first_again", 0, 0)),
        *(("carry", 1, 0), ("carry", 1, 0), "commit_second", taken, "window", ("trade", 0, 1), "window"),
    )
    verdicts = played.world.store.of("books").verdicts
    assert [str(one.break_class) for n in (2, 3) for one in verdicts[n].result.breaks if "ev-1-" in one.match_key] == [
        told
    ]
    assert doubts(played, upto=2)[1] == doubted


@pytest.mark.parametrize(
    ("cleaned", "published"), [(("compact", 4, 8), 0), (("wait", 4, 8), 0), (("retain_all", 1), 0)]
)
def test_no_event_is_published_again_that_came_and_was_compacted_away_before_a_run_read_it(
    cleaned: tuple[object, ...], published: int
) -> None:
    down = ("cluster_down", 0, 9)
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid"),
        *(("half_trade", 0, 2), ("half_trade", 2, 5), "window", ("canary_key", 4, 3), ("pay", 0, 1), "window"),
        *(("trade", 2, 4), "window", down, ("trade", 0, 0), ("carry", 5, 4), ("cluster_down", 5, 4)),
        *(("cluster_down", 1, 9), ("trade", 5, 4), cleaned, ("cluster_down", 4, 9), ("plan_and_act", 4, 8)),
    )
    assert sum(one.by == "repair" for one in played.world.truth.events) == published


@pytest.mark.parametrize(("step", "told"), [("rewrite_tail", [["log_rewritten"]]), ("lead", [[]])])
def test_a_log_that_was_cut_back_and_grew_again_once_a_run_had_read_it_is_told_by_the_next_run(
    step: str, told: list[list[str]]
) -> None:
    """By what the scan has read, not by what the log shows when the run asks it for the batches to keep."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(("trade", 0, 7), "window", ("redeliver", 3, 10), (step, 1, 7, 31), "window", "window"),
    )
    assert doubts(played, upto=2)[1:] == told


@pytest.mark.parametrize(("again", "told"), [(("redeliver", 0, 3), ["duplicate_in_ledger"]), (("wait", 0, 3), [])])
def test_of_two_rows_read_behind_the_paired_one_that_is_gone_one_is_too_many_though_events_expired_unread(
    again: tuple[object, ...], told: list[str]
) -> None:
    """The first is behind the horizon while the one that was paired is archived; either may be that one, moved."""
    played = play(
        Config(carrier_mode="at_most"),
        *("canary_key", "window", ("carry", 4, 0), "canary_key", "half_trade", "carry", "carry", ("trade", 1, 0)),
        *("archive", ("redeliver", 4, 3), "window", "archive", "retain_all", "window", again),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(("moved", "told"), [("rewrite", 1), ("redeliver", 2)], ids=["rewritten", "a third row"])
def test_a_row_that_is_rewritten_beside_the_one_that_repeats_it_is_no_second_duplicate(moved: str, told: int) -> None:
    """Their event is older than the books. Once the duplicate is repaired nothing is left."""
    config, steps = Config(carrier_mode="at_least", posts="column"), ("trade", "window", "redeliver", "window", moved)
    assert outstanding(play(config, *steps)) == told * ["duplicate_in_ledger"]
    played = play(config, *steps, "window", "window", "plan_and_act")
    assert outstanding(played) == (told - 1) * ["duplicate_in_ledger"]


def test_a_row_that_is_touched_beside_the_one_that_repeats_our_repair_is_no_second_duplicate() -> None:
    steps = ("window", "pay", "window", "window", "plan_and_act", "trade", "window")
    steps += (("touch", 4, 1, 9), ("touch", 4, 0, 10), "window", "window")
    config = Config(producer_mode="plain", carrier_mode="at_most", posts="negated")
    played = play(config, *steps)
    assert outstanding(played) == ["duplicate_in_ledger_compensated"]
    played = play(config, *steps, "plan_and_act")
    assert [one.item_break.match_key for one in outstanding_breaks(played.world.store, "books")] == ["ev-2-payout"]


@pytest.mark.parametrize(("step", "told"), [("rewrite_tail", ["log_rewritten"]), ("lead", [])])
def test_an_event_that_came_to_stand_where_a_run_had_read_others_is_read_by_no_cut(step: str, told: list[str]) -> None:
    """So a second one is the first that the books know; the run before has said that it may not have seen one."""
    played = play(
        Config(slice_by="written_xid", carrier_mode="exactly"),
        *(("trade", 3, 5), "window", ("trade", 3, 3), (step, 2, 6, 37), "window", ("trade", 5, 2), "window"),
        ("first_again", 2, 2),
    )
    assert [one for one in doubts(played, upto=2)[1] if one.startswith("log_")] == told


@pytest.mark.parametrize(
    ("before", "told"),
    [
        pytest.param((("rewrite", 1, 11),), [], id="its file went"),
        pytest.param((("file_written_twice", 0, 0),), ["duplicate_in_ledger"], id="its file stands beside"),
    ],
)
def test_a_row_that_comes_again_in_another_file_with_another_amount_is_the_one_that_waited(
    before: tuple[object, ...], told: list[str]
) -> None:
    """It was a second row of its key, and the first one, which stands nowhere, was never produced."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="parquet", carrier_mode="at_least"),
        *("window", ("half_trade", 2, 0), "window", *before, ("change", 1, 10)),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(("again", "told"), [("file_written_twice", ["duplicate_in_ledger"]), ("wait", [])])
def test_a_row_of_a_file_that_was_written_twice_is_one_too_many_and_its_event_is_not(
    again: str, told: list[str]
) -> None:
    """Both have one row id: the first is older than the books, the second waits for an event behind an open one."""
    played = play(Config(slice_by="parquet"), ("pay", 0, 3), ("trade", 2, 7), "window", again, "window")
    assert outstanding(played) == told


@pytest.mark.parametrize(("again", "told"), [(("redeliver", 0, 3), ["duplicate_in_ledger"]), (("wait", 0, 3), [])])
def test_a_row_that_waited_for_its_event_is_one_too_many_beside_one_that_is_older_than_the_books(
    again: tuple[object, ...], told: list[str]
) -> None:
    played = play(
        Config(carrier_mode="at_least", producer_mode="transactional"),
        *(("pay", 0, 3), ("trade", 2, 7), "window", again, "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("later", "told"),
    [pytest.param("wait", 1, id="both written anew"), pytest.param("redeliver", 2, id="and a third beside them")],
)
def test_of_two_rows_that_are_written_anew_one_was_called_one_too_many_already(later: str, told: int) -> None:
    """The other one was called so too, and stayed so once the first had been taken back."""
    played = play(
        Config(producer_mode="transactional", carrier_mode="at_most", posts="column"),
        *("window", ("half_trade", 1, 7), "window", "window", ("plan_and_act", 2, 6), ("trade", 4, 11), "window"),
        *(("rewrite", 5, 1), (later, 0, 0), "window"),
    )
    assert sum(one.startswith("duplicate_in_ledger") for one in outstanding(played)) == told


AGAIN_ONCE = ("first_again", 2, 0)


@pytest.mark.parametrize(
    ("again", "told"),
    [((AGAIN_ONCE,), []), ((AGAIN_ONCE, AGAIN_ONCE), ["duplicate_in_topic_new_session"])],
    ids=["once", "twice"],
)
def test_an_event_whose_marker_was_cut_away_and_came_anew_is_held_to_be_unread(
    again: tuple[object, ...], told: list[str]
) -> None:
    """It lies below the baseline, which no later cut reads again; the run that finds the log rewritten says so."""
    played = play(
        Config(),
        *(("half_trade", 3, 7), ("pay", 2, 0), "window", ("trade", 3, 0), ("rewrite_tail", 0, 5), "window"),
        *again,
    )
    assert "log_rewritten" in doubts(played, upto=1)[0]
    assert outstanding(played) == told


def test_an_event_that_came_where_a_run_had_just_read_another_one_is_held_to_be_unread() -> None:
    played = play(
        Config(legs=2, producer_mode="plain"),
        *(("trade", 0, 1), "trade", "trade", "window", ("keyless_legs", 0, 11), ("half_trade", 1, 3), "first_again"),
        *(("rewrite_tail", 2, 3, 34), "trade", "truncate", "window", "trade", "carry", ("first_again", 0, 10)),
    )
    assert "log_rewritten" in doubts(played, upto=1)[0]


@pytest.mark.parametrize(
    ("cut", "said"),
    [((("cluster_down", 0, 0, 39), "window", "close_cut", "cluster_down"), True), (("window",), False)],
    ids=["closed", "judged"],
)
def test_of_further_events_nobody_can_say_how_many_are_too_many_where_several_rows_stand_in_a_closed_cut(
    cut: tuple[object, ...], said: bool
) -> None:
    played = play(
        Config(direction="ledger_to_topic", carrier_mode="at_least"),
        *(("pay", 4, 0), "window", "trade", "both_again", ("both_again", 0, 11), "window", ("half_trade", 1, 0), *cut),
    )
    assert ("partner_not_settled" in {one for found in doubts(played, upto=5) for one in found}) == said


@pytest.mark.parametrize(
    ("later", "told"), [("touch", []), ("redeliver", ["duplicate_in_ledger"])], ids=["touched", "a third row"]
)
def test_by_written_xid_a_row_beside_one_in_a_closed_cut_is_found_by_what_comes_and_by_no_touch(
    later: str, told: list[str]
) -> None:
    played = play(
        Config(slice_by="written_xid", carrier_mode="at_most"),
        *("trade", "trade", "trade", "window", "trade", "window", ("redeliver", 0, 3), ("cluster_down", 0, 0, 19)),
        *("window", "close_cut", "cluster_down", "window", (later, 0, 3)),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("question", "told"),
    [pytest.param(45, 1, id="once the run had judged it"), pytest.param(0, 2, id="before the run")],
)
def test_a_row_one_too_many_that_is_taken_back_while_its_run_ends_was_one_when_it_began(
    question: int, told: int
) -> None:
    """A plan is drawn from the verdict that is stored, and acted on before the run has told of it."""
    repaired = ("plan_and_act", 3, 0, question)
    played = play(
        Config(legs=2, producer_mode="transactional", carrier_mode="at_most", posts="column"),
        *(("pay_one_leg", 1, 7), ("cluster_down", 0, 0, 33), "cluster_down", ("trade", 3, 9), ("commit_first", 5, 10)),
        *("window", "window", ("redeliver", 4, 2), *((repaired,) if question else ("window", repaired)), "window"),
    )
    runs = played.world.store.of("books").verdicts.values()
    assert [str(one.break_class) for row in runs for one in row.result.breaks] == ["duplicate_in_ledger"]
    (taken_back,) = (row for row in played.world.truth.rows.values() if row.taken_back_at)
    assert len([row for row in runs if row.recorded_at < taken_back.taken_back_at]) == told


@pytest.mark.parametrize(
    ("cut_back", "told"), [(("truncate", 4, 3, 15), True), (("wait", 0, 0), False)], ids=["cut back", "whole"]
)
def test_an_event_whose_marker_was_cut_away_is_due_since_a_run_could_first_read_it(
    cut_back: tuple[object, ...], told: bool
) -> None:
    """It is visible anew with its producer's next transaction, and the run behind that finds its row missing."""
    played = play(
        Config(slice_by="written_xid", producer_mode="transactional", posts="negated"),
        *(("trade", 0, 5), ("rewrite_tail", 5, 6, 29), "window", ("half_trade", 0, 6), ("both_again", 4, 2), "pay"),
        *(("pay", 3, 1), ("cluster_down", 0, 0, 17), "cluster_down", ("trade", 5, 10), ("carry", 1, 9)),
        *(("commit_first", 2, 2), ("cluster_down", 0, 0, 45), "window", "cluster_down", "window", ("wait", 2, 7, 28)),
        *(cut_back, "window", ("trade", 5, 9), ("both_again", 0, 8), "window"),
    )
    assert ("log_truncated" in doubts(played, upto=2)[1]) == told


@pytest.mark.parametrize("step", ["truncate", "wait"])
def test_an_event_that_came_open_where_others_had_been_read_is_told_of_by_the_run_that_finds_the_log_rewritten(
    step: str,
) -> None:
    """It is visible once its transaction ends, behind that run, and no later one looks there."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(("pay", 4, 4), "window", ("canary_key", 4, 2), "window", ("plan_and_act", 4, 10, 36), "window", "trade"),
        *((step, 2, 4, 36), "window", ("carry", 5, 0), "window", ("canary_key", 4, 6)),
    )
    assert ("log_rewritten" in doubts(played, upto=4)[3]) == (step == "truncate")


@pytest.mark.parametrize("step", ["truncate", "wait"])
def test_a_transaction_stays_torn_by_the_protocol_that_an_election_makes_whole_and_a_run_finds_the_log_rewritten(
    step: str,
) -> None:
    """One partition had an abort marker, which is cut away; the next marker commits what it had aborted."""
    played = play(
        Config(slice_by="xmin", legs=2, key_is_unique=False, carrier_mode="exactly", posts="column"),
        *("window", ("pay", 4, 8), ("end_on_one_partition", 1), ("commit_first", 5, 9), "window", "window"),
        *((step, 0, 1, 7), "window", ("trade", 4, 0)),
    )
    assert "torn_by_protocol" in outstanding(played)
    assert any("log_rewritten" in told for told in doubts(played, upto=5)) == (step == "truncate")


@pytest.mark.parametrize(
    ("repaired", "told"), [("plan_and_act", []), ("wait", ["duplicate_in_ledger"])], ids=["taken back", "it stands"]
)
def test_what_takes_back_a_row_that_was_one_too_many_to_older_books_alone_is_none_to_younger_ones(
    repaired: str, told: list[str]
) -> None:
    """Their baseline came once both rows stood, so that they know neither as one too many."""
    down = ("cluster_down", 2, 8)
    played = play(
        Config(slice_by="written_xid", legs=2, carrier_mode="at_least", contracts=2, posts="negated"),
        *(("trade", 2, 3), ("cluster_down", 0, 0, 29), "cluster_down", "window", down, ("redeliver", 5, 10), down),
        *("window", (repaired, 5, 9), "window"),
    )
    assert outstanding(played) == []
    of_audit = outstanding_breaks(played.world.store, "audit")
    assert [str(one.item_break.break_class) for one in of_audit] == told


@pytest.mark.parametrize(("step", "told"), [("truncate", True), ("wait", False)], ids=["cut back", "whole"])
def test_books_that_began_while_the_log_was_cut_back_say_so_and_leave_alone_what_another_contract_has_paired(
    step: str, told: bool
) -> None:
    """One contract read the event and the other did not: to that one, the row was one too many, and was taken back."""
    played = play(
        Config(slice_by="written_xid", producer_mode="plain", contracts=2, posts="negated"),
        *(("trade", 2, 4), ("first_again", 1, 2), (step, 0, 10, 13), "window", ("both_again", 2, 2), "window"),
        *(("plan_and_act", 0, 10), "window"),
    )
    assert ("log_rewritten" in doubts(played, upto=1)[0]) == told
    of_audit = outstanding_breaks(played.world.store, "audit")
    assert [str(one.item_break.break_class) for one in of_audit] == ["duplicate_in_topic_no_idempotence"]
    assert not [row for row in played.world.truth.rows.values() if row.taken_back_at]


@pytest.mark.parametrize("slice_by", ["xmin", "written_xid", "parquet"])
@pytest.mark.parametrize(
    ("again", "told"), [("redeliver", ["duplicate_in_topic_reprocessed"]), ("wait", [])], ids=["again", "once"]
)
def test_an_event_that_comes_again_is_a_duplicate_where_its_row_stood_above_an_open_writer_when_the_books_began(
    again: str, told: list[str], slice_by: str
) -> None:
    """The first slice reads the row, which pairs with the second event; the first one is older than the books."""
    played = play(
        Config(direction="ledger_to_topic", slice_by=slice_by, producer_mode="plain", carrier_mode="at_least"),
        *(("pay", 1, 0), "trade", "window", (again, 5, 0)),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize("slice_by", ["xmin", "written_xid"])
@pytest.mark.parametrize(
    ("expires", "told"), [("retain_all", []), ("wait", ["missing_in_topic_never_produced"])], ids=["gone", "never came"]
)
def test_a_row_that_was_updated_ahead_of_the_scan_of_its_slice_is_not_missing_where_that_run_lost_events(
    expires: str, told: list[str], slice_by: str
) -> None:
    """By xmin the next slice reads it, whose cut has lost nothing."""
    first = "trade" if expires == "retain_all" else "pay"
    played = play(
        Config(direction="ledger_to_topic", slice_by=slice_by, producer_mode="plain", carrier_mode="at_most"),
        *("window", (first, 0, 1), ("commit_first", 0, 0), "lose", ("touch", 4, 3, 11), (expires, 1, 5), "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("again", "told"),
    [("first_again", ["duplicate_in_topic_no_idempotence"]), ("wait", [])],
    ids=["again", "once"],
)
def test_an_event_that_comes_again_while_its_surplus_rows_are_updated_is_a_duplicate(
    again: str, told: list[str]
) -> None:
    """It waited for them, and was missing once they had been read, though its first event is older than the books."""
    down = ("cluster_down", 0, 0, 16)
    played = play(
        Config(producer_mode="plain", carrier_mode="at_most", contracts=2, posts="column"),
        *(("pay", 3, 4), ("trade", 0, 10), ("carry", 4, 7), ("trade", 2, 5), ("redeliver", 0, 11), "trade"),
        *(("half_trade", 5, 1), ("trade", 2, 3), ("carry", 1, 4), ("redeliver", 2, 4), ("redeliver", 4, 8), down),
        *("window", "cluster_down", ("trade", 0, 3), ("replace_row", 1, 11), ("replace_row", 3, 1)),
        *(("replace_row", 2, 4), "window", ("replace_row", 4, 10), ("replace_row", 2, 8), ("redeliver", 2, 8)),
        *("window", (again, 2, 8), ("touch", 4, 0, 6), ("touch", 4, 2, 10), down, "window", "cluster_down", "window"),
    )
    of_topic = [one for one in outstanding(played) if not one.startswith("duplicate_in_ledger")]
    assert of_topic == told


def test_a_log_that_expired_while_it_got_another_leader_leaves_nobody_in_doubt() -> None:
    """Each restart of a broker brings another leader, and a quiet topic's retention takes all that was read."""
    played = play(
        Config(direction="ledger_to_topic", key_is_unique=True, contracts=2),
        *(("half_trade", 2, 0), ("carry", 3, 10), ("commit_second", 2, 7), "window", ("trade", 0, 4), "window"),
        *(("lead", 2, 0), ("retain_all", 4, 11), "window"),
    )
    assert [one for told in doubts(played, upto=2) for one in told if one == "log_rewritten"] == []
    assert outstanding(played) == []


@pytest.mark.parametrize(
    ("again", "told"), [("redeliver", ["duplicate_in_ledger"]), ("wait", [])], ids=["again", "once"]
)
def test_rows_wait_for_an_event_that_too_few_replicas_have_also_where_other_offsets_expired_unread(
    again: str, told: list[str]
) -> None:
    """Both were undecidable, so that neither was one too many once the event had come."""
    played = play(
        Config(slice_by="written_xid", producer_mode="plain", carrier_mode="at_most", contracts=2),
        *(("trade", 5, 4), ("trade", 5, 6), ("half_trade", 5, 4), "window", ("fall_behind", 0, 5), ("trade", 2, 10)),
        *("trade", ("half_trade", 2, 3), ("trade", 5, 7), ("retain", 3, 8), (again, 3, 8), "window", "window"),
    )
    assert [one for one in outstanding(played) if one.startswith("duplicate")] == told


@pytest.mark.parametrize(
    ("gone", "told"), [("archive", ["duplicate_in_ledger", "missing_in_ledger"]), ("wait", ["duplicate_in_ledger"])]
)
def test_an_event_is_missing_whose_row_was_archived_unread_beside_one_that_names_it_and_no_plan_posts_it(
    gone: str, told: list[str]
) -> None:
    """The row may never have been there; but to post beside what stands would pay twice if it was."""
    played = play(
        Config(
            slice_by="written_xid",
            legs=2,
            key_is_unique=True,
            producer_mode="plain",
            carrier_mode="at_most",
            posts="negated",
        ),
        *(("half_trade", 5, 9), ("carry", 2, 5), "window", ("trade", 3, 5), "window", ("commit_second", 2, 10)),
        *(("reverse_for_nothing", 5, 1), (gone, 3, 4), "window", ("plan_and_act", 0, 8), "window"),
    )
    breaks = [one for row in played.world.store.of("books").verdicts.values() for one in row.result.breaks]
    assert sorted(str(one.break_class) for one in breaks if one.match_key == "ev-2-fee") == told
    posted = [row.money.match_key for row in played.world.truth.rows.values() if row.by == "repair"]
    assert "ev-2-fee" not in posted


@pytest.mark.parametrize(("step", "told"), [("truncate", ["log_rewritten"]), ("wait", [])], ids=["cut back", "whole"])
@pytest.mark.parametrize("question", [10, 18], ids=["before what stands is kept to compare", "behind that"])
def test_a_log_that_is_cut_back_while_the_books_begin_and_grows_again_is_told_by_the_first_run(
    step: str, told: list[str], question: int
) -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(("trade", 3, 8), (step, 4, 5, question), "window", ("half_trade", 1, 1), ("carry_wrong", 1, 8)),
        ("trade", 4, 8),
    )
    assert [one for one in doubts(played, upto=1)[0] if one == "log_rewritten"] == told


@pytest.mark.parametrize(("step", "told"), [("truncate", ["log_rewritten"]), ("wait", [])], ids=["cut back", "whole"])
def test_a_marker_that_stands_where_another_one_had_stood_shows_that_the_log_was_written_anew(
    step: str, told: list[str]
) -> None:
    """What stood before it has expired; the world gave all markers one checksum, which Kafka does not."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least", contracts=2),
        *(("trade", 3, 8), (step, 4, 5, 45), "window", ("half_trade", 1, 1), ("carry_wrong", 1, 8), ("trade", 4, 8)),
        "retain",
    )
    assert [one for one in doubts(played, upto=1)[0] if one == "log_rewritten"] == told


@pytest.mark.parametrize(("step", "lost"), [("rewrite_tail", 1), ("wait", 0)], ids=["cut back", "whole"])
def test_a_row_differs_from_no_event_that_was_cut_away_and_came_again_as_the_row_says(step: str, lost: int) -> None:
    played = play(
        Config(legs=2),
        *(("pay_one_leg", 3, 0), "window", ("half_trade", 2, 5), ("carry_wrong", 2, 10), ("rewrite_tail", 2, 10)),
        *(("first_again", 5, 0), ("carry_wrong", 1, 7), ("carry_wrong", 3, 4), (step, 2, 4), ("first_again", 4, 2)),
    )
    assert len([one for one in played.world.truth.events if one.outcome == "lost" and one.once_visible]) >= lost


@pytest.mark.parametrize(
    ("gone", "told"), [("retain_all", ["torn_transaction"]), ("wait", [])], ids=["its leg expired", "all there"]
)
def test_a_torn_transaction_stays_one_whose_leg_expired_unread_though_its_other_leg_comes_again(
    gone: str, told: list[str]
) -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", legs=2, carrier_mode="at_least"),
        *("window", ("half_trade", 4, 2), "window", "window", ("write_off", 1, 1), ("by_hand", 1, 1), "window"),
        *("window", ("trade", 2, 9), (gone, 1, 9), "window", ("redeliver", 1, 6)),
    )
    assert [one for one in outstanding(played) if one == "torn_transaction"] == told
    assert ("log_expired" in doubts(played, upto=5)[4]) == bool(told)


@pytest.mark.parametrize(
    ("step", "told"), [("truncate", "log_rewritten"), ("wait", "log_expired")], ids=["cut back", "expired alone"]
)
def test_a_log_that_a_run_saw_cut_back_was_rewritten_though_what_came_in_its_place_has_expired(
    step: str, told: str
) -> None:
    """Nothing is left to compare; where it ended says enough."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="jdbc", carrier_mode="at_most"),
        *(("trade", 0, 7), ("pay", 0, 11), "window", (step, 5, 11), "window", ("trade", 1, 9), ("trade", 0, 6)),
        *(("truncate", 0, 11), ("retain_all", 1, 3), "window"),
    )
    assert [one for one in doubts(played, upto=2)[1] if one.startswith("log_")] == [told]
    assert outstanding(played) == []


@pytest.mark.parametrize(
    ("again", "told"), [("plan_and_act", []), ("wait", ["duplicate_in_ledger"])], ids=["both", "one of them"]
)
def test_two_rows_too_many_are_taken_back_by_two_of_which_one_names_the_row_that_a_repair_posted(
    again: str, told: list[str]
) -> None:
    """Of a posted row, one written by hand and one that came late, the first two are taken back."""
    played = play(
        Config(legs=2, slice_by="written_xid", carrier_mode="at_least", contracts=2, posts="column"),
        *("window", ("half_trade", 4, 11), "window", "window", ("plan_and_act", 3, 5), ("by_hand", 2, 11)),
        *(("trade", 3, 0), "window", ("plan_and_act", 1, 6), (again, 5, 7)),
    )
    assert outstanding(played) == told


def test_a_wrong_amount_is_told_though_its_event_came_to_stand_where_another_had_been_read() -> None:
    """The log was cut back behind what two runs had read; nobody reads its new end."""
    played = play(
        Config(direction="topic_to_ledger", legs=1, producer_mode="transactional", posts="negated"),
        *(("trade", 4, 6), ("rewrite_tail", 0, 6, 15), "window", ("pay", 4, 8), ("pay_one_leg", 4, 7)),
        *(("first_again", 0, 8), ("first_again", 5, 8), ("rewrite_tail", 0, 11, 13), "window"),
        *(("pay_one_leg", 3, 10), ("hang", 4, 4), ("trade", 2, 2), ("half_trade", 0, 7), ("truncate", 0, 8, 42)),
        *("window", ("truncate", 5, 0), ("truncate", 4, 8), ("pay", 2, 3), ("truncate", 2, 11), ("pay", 2, 8)),
        *("window", ("trade", 2, 5), ("carry", 2, 10), ("trade", 2, 7), ("carry_wrong", 0, 6), ("carry_wrong", 3, 2)),
    )
    assert "amount_mismatch" in outstanding(played)


@pytest.mark.parametrize(
    ("end", "step", "told"),
    [("abort_first", "rewrite_tail", []), ("commit_first", "wait", ["torn_transaction"])],
    ids=["aborted, and its marker cut away", "committed"],
)
def test_of_one_leg_that_was_aborted_and_comes_to_stand_as_its_marker_is_cut_away_its_row_is_said_to_be_unsettled(
    end: str, step: str, told: list[str]
) -> None:
    """The producer's next commit ends what was open again, where a cut has read already that it was aborted."""
    played = play(
        Config(slice_by="jdbc", legs=2, carrier_mode="at_most"),
        *("window", "pay_one_leg", ("pay", 4, 0), (end, 0, 6), "window", (step, 4, 1, 20), "window"),
        ("pay", 0, 10),
    )
    first = [one.item_break for one in outstanding_breaks(played.world.store, "books")]
    assert [str(one.break_class) for one in first if one.transaction_key == "pay-1"] == told
    assert ("partner_not_settled" in doubts(played, upto=4)[3]) == (not told)


@pytest.mark.parametrize(
    ("gone", "told"), [("retain_all", []), ("wait", ["torn_transaction"])], ids=["expired", "all there"]
)
def test_one_leg_is_said_to_be_unsettled_where_the_other_may_have_expired_older_than_the_books(
    gone: str, told: list[str]
) -> None:
    played = play(
        Config(slice_by="written_xid", legs=2, producer_mode="plain", carrier_mode="exactly", posts="negated"),
        *(("trade", 5, 8), "window", ("pay_one_leg", 4, 0), "window", (gone, 0, 6)),
    )
    assert outstanding(played) == told
    assert ("partner_not_settled" in doubts(played, upto=2)[1]) == (not told)


@pytest.mark.parametrize(
    ("row", "told"),
    [("odd_id", []), ("half_trade", ["duplicate_in_ledger", *(2 * ["duplicate_in_topic_new_session"])])],
    ids=["beyond every cut", "as others"],
)
def test_events_whose_row_names_a_transaction_of_another_time_are_said_to_be_unsettled(
    row: str, told: list[str]
) -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_most"),
        *((row, 2, 2), "window", ("trade", 2, 2), ("both_again", 0, 6)),
    )
    assert outstanding(played) == told
    assert ("partner_not_settled" in doubts(played, upto=2)[1]) == (not told)


@pytest.mark.parametrize(
    ("question", "told"),
    [(33, ["partner_not_settled", "log_rewritten"]), (0, ["partner_not_settled", "log_expired"])],
    ids=["while a run reads", "before it"],
)
def test_what_came_in_the_place_of_what_a_run_saw_cut_back_while_it_read_is_missed_by_nobody(
    question: int, told: list[str]
) -> None:
    """Retention has taken all of it before the next run: nothing is left to compare."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="parquet", producer_mode="plain", carrier_mode="at_least"),
        *("window", ("trade", 4, 10), ("pay", 2, 0), ("trade", 4, 0), ("commit_first", 1, 6)),
        *(("truncate", 4, 2, question), "window", ("carry", 5, 8), ("retain_all", 5, 8)),
    )
    assert outstanding(played) == []
    assert doubts(played, upto=2)[1] == told


@pytest.mark.parametrize(("step", "told"), [("rewrite_tail", True), ("wait", False)], ids=["cut back", "whole"])
def test_an_event_whose_marker_stood_above_what_a_run_could_read_is_not_matched_for_good_once_that_is_cut_away(
    step: str, told: bool
) -> None:
    """It was read as committed; an administrator aborts it then."""
    played = play(
        Config(direction="ledger_to_topic"),
        *("window", ("pay", 5, 4), ("half_trade", 5, 11), ("carry", 2, 4), ("carry", 1, 8), ("redeliver", 5)),
        *("window", (step, 4)),
    )
    assert ("log_rewritten" in doubts(played, upto=2)[1]) == told


@pytest.mark.parametrize("windows", [1, 2], ids=["grown again", "not yet"])
@pytest.mark.parametrize(("step", "told"), [("truncate", True), ("wait", False)], ids=["cut back", "whole"])
def test_an_input_whose_abort_is_cut_away_above_the_baseline_may_be_committed_and_the_first_run_says_so(
    windows: int, step: str, told: bool
) -> None:
    played = play(
        Config(direction="topic_to_topic", slice_by="topic", legs=2),
        *("trade", ("pay", 1, 5), ("pay", 5, 4), ("abort_first", 4, 2, 18), (step, 5, 1, 45)),
        *(windows * ["window"]),
        *(("trade", 0, 2), ("first_again", 3, 1), ("carry", 0, 2), ("first_again", 0, 2)),
    )
    assert ("log_rewritten" in doubts(played, upto=1)[0]) == told


@pytest.mark.parametrize("gone", ["retain_all", "wait"], ids=["expired", "all there"])
def test_no_transaction_is_torn_by_what_takes_a_copy_of_one_leg_back(gone: str) -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, carrier_mode="at_most"),
        *("window", ("trade", 3, 9), ("redeliver", 5, 7), "window", ("plan_and_act", 0, 2), "window", (gone, 5, 2)),
    )
    assert outstanding(played) == []


def test_no_event_is_missing_whose_topic_was_made_anew_while_a_run_read() -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="parquet", carrier_mode="at_most"),
        *("window", ("half_trade", 1, 3), "window", ("trade", 0, 4, 33), "window", ("recreate", 5, 0, 29), "window"),
    )
    assert "torn_cut" in doubts(played, upto=3)[2]
    assert outstanding(played) == []


def test_a_topic_that_is_made_anew_while_a_run_reads_is_told_by_each_contract() -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_most", contracts=2),
        *(("trade", 5, 4), "window", ("recreate", 3, 10, 29), "window"),
    )
    assert doubts(played, upto=2) == [["log_rewritten"], ["topic_recreated"]]


def test_a_row_that_was_given_up_stays_so_whatever_of_its_event_came_and_was_cut_away() -> None:
    played = play(
        Config(direction="ledger_to_topic", producer_mode="plain", carrier_mode="at_most"),
        *(("canary_key", 4, 5), "window", ("pay", 1, 8), ("touch", 1, 7), "window", ("canary_key", 1, 1)),
        *("window", "window", ("trade", 2, 8), ("trade", 4, 6), ("rewrite_tail", 2, 9)),
    )
    assert set(outstanding(played)) == {"phantom_in_topic"}


@pytest.mark.parametrize(("again", "told"), [("redeliver", ["duplicate_in_topic_new_session"]), ("wait", [])])
def test_an_output_repeats_one_of_before_the_books_though_its_input_was_held_behind_an_open_transaction(
    again: str, told: list[str]
) -> None:
    played = play(
        Config(direction="topic_to_topic", slice_by="topic", legs=2, carrier_mode="at_least"),
        *(("pay", 3, 2), ("trade", 4, 5), "window", (again, 5, 10)),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("slice_by", "again", "told"),
    [
        ("written_xid", "redeliver", {"duplicate_in_ledger"}),
        ("parquet", "redeliver", {"duplicate_in_ledger"}),
        ("written_xid", "wait", set()),
    ],
)
def test_an_event_that_too_few_replicas_had_is_none_too_many_where_its_row_was_beside_a_closed_cut(
    slice_by: str, again: str, told: set[str]
) -> None:
    played = play(
        Config(slice_by=slice_by, carrier_mode="at_most"),
        *("window", ("fall_behind", 4), ("trade", 2, 4), "window", (again, 0, 11), ("cluster_down", 0, 0, 26)),
        *("window", ("close_cut", 0, 3), ("cluster_down", 0, 0), "window"),
    )
    of_keys = played.oracle.reported.get("books", {}).values()
    assert {str(one.break_class) for some in of_keys for _, one in some} == told


_HELD_BACK = (("fall_behind", 3, 6), ("trade", 2, 5), ("cluster_down", 0, 0, 33))
_ITS_FILE_AGAIN = (("cluster_down", 0, 0, 35), "window", ("cluster_down", 0, 0), ("file_written_twice", 3, 3), "window")


@pytest.mark.parametrize(
    "steps",
    [
        ("window", *_HELD_BACK, "window", ("close_cut", 0, 2), ("cluster_down", 0, 0), *_ITS_FILE_AGAIN),
        (*_HELD_BACK, "window", ("cluster_down", 0, 0), *_ITS_FILE_AGAIN, ("archive", 3, 5)),
    ],
    ids=["its row is in a cut that was closed unread", "its row is older than the books, and was archived"],
)
def test_nor_one_whose_row_nobody_has_read_and_whose_file_came_again_with_its_row_ids(steps: Sequence[Any]) -> None:
    played = play(Config(slice_by="parquet", carrier_mode="at_most"), *steps)
    of_keys = played.oracle.reported.get("books", {}).values()
    assert {str(one.break_class) for some in of_keys for _, one in some} == {"duplicate_in_ledger"}


def test_a_log_that_a_run_sees_cut_back_is_told_though_it_grew_to_where_it_had_ended_and_expired() -> None:
    """What was kept of the batches above the place where it was cut back hid that."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(("trade", 0, 4), "window", ("truncate", 0, 5, 27), "window", ("trade", 2, 4), ("retain_all", 0, 3)),
        *("window", "window", ("plan_and_act", 0, 5)),
    )
    assert doubts(played, upto=2)[1] == ["log_rewritten", "vacuous_run"]
    assert not any("the executor publishes" in line for line in played.world.told)


@pytest.mark.parametrize(("first", "came", "published"), [("truncate", "trade", False), ("wait", "half_trade", True)])
def test_no_event_is_published_again_that_may_have_come_where_a_log_was_cut_back_and_expired_unseen(
    first: str, came: str, published: bool
) -> None:
    """All that was read has left the log, and it has another leader: nothing is left that a run could compare. That it
    is called missing is known.
    """
    played = known_to_play(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(("trade", 0, 4), (first, 0, 5, 27), "window", (came, 2, 4), ("retain_all", 0, 3), "window", "window"),
        ("plan_and_act", 0, 5),
    )
    assert any("the executor publishes ev-2-payout" in line for line in played.world.told) == published


def test_a_row_is_no_duplicate_of_one_whose_reversal_was_updated_and_lies_beyond_the_cut() -> None:
    played = play(
        Config(carrier_mode="at_least", posts="negated"),
        *(("half_trade", 0, 3), "window", ("trade", 2, 5), ("both_again", 1, 5), "window", ("plan_and_act", 2)),
        *(("touch", 4, 2, 22), "window", ("touch", 4, 3, 19), "window"),
    )
    assert played.world.store.of("books").verdicts[3].result.breaks == ()


def test_nor_is_its_reversal_a_duplicate_that_was_updated_while_the_row_that_is_left_lies_beyond_the_cut() -> None:
    play(
        Config(carrier_mode="at_most", partitions=2, producer_mode="plain", posts="negated"),
        *("window", ("pay", 4, 8), ("half_trade", 5, 4), ("pay", 4, 10), "window", ("carry", 1, 2)),
        *(("commit_second", 1, 3), "window", ("plan_and_act", 1, 7), ("by_hand", 0, 8), ("by_hand", 3, 1), "window"),
        *(("plan_and_act", 0, 5), ("touch", 4, 1, 26), "window", ("touch", 4, 3, 23), "window"),
    )


@pytest.mark.parametrize(("acts", "told"), [("plan_and_act", []), ("wait", ["duplicate_in_topic_no_idempotence"])])
def test_what_one_contract_takes_back_is_none_too_many_to_another_that_reads_both_in_one_cut(
    acts: str, told: list[str]
) -> None:
    played = play(
        Config(
            direction="ledger_to_topic",
            slice_by="written_xid",
            legs=2,
            producer_mode="plain",
            carrier_mode="at_most",
            contracts=2,
        ),
        *("window", ("trade", 0, 2), ("redeliver", 3, 0, 27), "window", (acts, 2, 9)),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(
    ("first", "then", "posted"),
    [
        ("pay", "correct_by_hand", 0),
        ("pay", "wait", 0),
        ("wait", "correct_by_hand", 0),
        ("wait", "wait", 1),
    ],
)
def test_nothing_is_posted_while_what_cancels_the_event_may_stand_behind_an_open_transaction(
    first: str, then: str, posted: int
) -> None:
    played = play(
        Config(legs=2, carrier_mode="exactly", posts="negated"),
        *("window", ("half_trade", 5, 9), "window", (first, 2, 6), "window", (then, 0, 8), ("plan_and_act", 0, 8)),
    )
    fee = [row for row in played.world.truth.rows_of("ev-1-fee") if row.by == "repair"]
    assert len(fee) == posted


@pytest.mark.parametrize(("acts", "read"), [("plan_and_act", 1), ("wait", 0)])
def test_a_row_that_nobody_could_judge_is_taken_back_by_another_contract_and_its_reversal_is_none_too_many(
    acts: str, read: int
) -> None:
    played = play(
        Config(carrier_mode="at_least", contracts=2, posts="column"),
        *(("trade", 3, 6), ("touch", 4, 1, 29), "window", ("redeliver", 5, 10), ("retain_all", 3, 2), "window"),
        *("window", (acts, 4, 7)),
    )
    result = played.world.store.of("books").verdicts[3].result
    assert (result.breaks, result.figures.ledger_rows) == ((), read)


def test_an_output_repeats_one_of_before_the_books_though_its_input_waited_for_it_since_an_earlier_cut() -> None:
    played = play(
        Config(direction="topic_to_topic", slice_by="topic", legs=2, carrier_mode="at_least"),
        *(("pay", 3, 2), ("trade", 4, 5), "window", "commit_first", "window", ("redeliver", 5, 10), "window"),
    )
    assert outstanding(played) == ["duplicate_in_topic_new_session"]


def test_a_payment_made_again_is_told_though_its_first_row_is_gone_and_another_was_one_too_many() -> None:
    """The row that is left was called a duplicate since its key had been paired: it proves that it was."""
    played = play(
        Config(slice_by="xmin", carrier_mode="at_least", posts="negated"),
        *(("trade", 0, 2), "window", ("redeliver", 3, 0), "window", ("delete", 0, 0), "window"),
        *(("retain_all", 0, 0), ("both_again", 0, 0), "window", "window"),
    )
    found = [str(one.break_class) for one in played.world.store.of("books").verdicts[3].result.breaks]
    assert found == ["duplicate_in_topic_cause_unknown"]


@pytest.mark.parametrize(("step", "told"), [("rewrite_tail", True), ("wait", False)])
def test_a_log_that_was_cut_back_and_grew_again_while_the_baseline_was_made_is_told_by_the_first_run(
    step: str, told: bool
) -> None:
    """What the baseline keeps to compare was read behind that, and the log ends where it had ended."""
    played = play(
        Config(carrier_mode="exactly", posts="negated"),
        *(("trade", 2, 10), ("half_trade", 4, 8), (step, 4, 8, 23), "window", ("first_again", 0, 4)),
    )
    assert ("log_rewritten" in doubts(played, upto=1)[0]) == told


def test_a_cut_reads_otherwise_once_an_event_has_come_where_another_one_was_cut_away() -> None:
    played = play(
        Config(producer_mode="transactional", carrier_mode="exactly"),
        *("window", ("trade", 5, 0), ("truncate", 5, 3, 32), "window", ("first_again", 2, 8), "window"),
        *(("first_again", 0, 3), ("reread", 4, 2)),
    )
    assert any("read again" in said for said in played.world.told)


def test_a_transaction_is_torn_whose_leg_came_when_it_was_due_and_that_too_few_replicas_have() -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="parquet", legs=2, carrier_mode="exactly"),
        *(("pay", 0, 3), "window", ("commit_first", 2, 0), ("carry_out_of_turn", 3, 10), ("trade", 4, 9), "window"),
        *(("fall_behind", 3, 10), "window", ("trade", 0, 9), "window"),
    )
    runs = played.world.store.of("books").verdicts.values()
    told = [str(one.break_class) for row in runs for one in row.result.breaks]
    assert (told, outstanding(played)) == (["missing_in_topic_never_produced", "torn_transaction"], [])


def test_an_event_that_readers_saw_is_due_though_its_marker_was_cut_away_and_came_again_late() -> None:
    played = play(
        Config(legs=2, carrier_mode="at_most", posts="column"),
        *("window", ("half_trade", 5, 3), ("trade", 0, 5), ("rewrite_tail", 1, 2, 42), "window"),
        *(("trade", 3, 6, 38), "window"),
    )
    found = [str(one.break_class) for one in played.world.store.of("books").verdicts[2].result.breaks]
    assert found == ["missing_in_ledger", "missing_in_ledger"]


def test_a_duplicate_told_stands_for_a_row_that_came_once_the_first_one_was_archived() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, carrier_mode="exactly"),
        *("window", ("pay", 4, 9), ("trade", 2, 11), ("first_again", 0, 5), "window", ("archive", 5, 4), "window"),
        ("first_again", 2, 9),
    )
    assert outstanding(played) == ["duplicate_in_ledger"]


def test_a_reversal_of_another_contract_is_no_duplicate_of_events_in_a_cut_closed_unread() -> None:
    played = play(
        Config(direction="ledger_to_topic", legs=2, carrier_mode="at_most", contracts=2),
        *("window", ("trade", 1, 5), ("redeliver", 2, 11), ("cluster_down", 0, 0, 27), "window", "cluster_down"),
        *(("close_cut", 4, 7, 9), "window", ("plan_and_act", 5, 1)),
    )
    assert any("the executor publishes ev-1-payout: -105" in said for said in played.world.told)
    assert outstanding(played) == []


@pytest.mark.parametrize("times", [1, 2, 3])
def test_nothing_is_missing_whose_file_was_written_anew_whenever_it_was_listed_and_whose_event_has_expired(
    times: int,
) -> None:
    touches = (("touch", 4, 0, 18), ("touch", 4, 3, 14), ("touch", 4, 0, 18))[:times]
    played = play(
        Config(direction="ledger_to_topic", slice_by="parquet", legs=2, carrier_mode="at_most"),
        *(("trade", 0, 7), *(step for touch in touches for step in (touch, "window")), "retain_all"),
    )
    assert outstanding(played) == []
    verdicts = played.world.store.of("books").verdicts
    assert [str(verdicts[times + n].result.verdict) for n in (1, 2)] == ["INCONCLUSIVE", "MATCHED"]


def test_a_leg_was_read_that_followed_a_replaced_row_before_the_log_forgot_it_and_the_other_leg_came() -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", legs=2, producer_mode="plain"),
        *("window", ("half_trade", 3, 1), "window", ("fall_behind", 3, 7), ("replace_row", 0, 10), ("trade", 4, 9)),
        *("window", ("write_off", 5, 10), ("retain_all", 1)),
    )
    told = [
        str(one.break_class) for row in played.world.store.of("books").verdicts.values() for one in row.result.breaks
    ]
    assert told == ["duplicate_in_ledger"]


def test_a_missing_row_stands_that_was_posted_into_a_cut_closed_unread_whatever_corrects_it_later() -> None:
    played = play(
        Config(slice_by="parquet", legs=2, carrier_mode="at_most"),
        *("window", ("trade", 4, 1), ("rewrite_tail", 2, 9, 8), "window", ("pay", 3, 11), "window", ("by_hand", 2, 8)),
        *(("cluster_down", 0, 0, 43), "window", ("close_cut", 5, 3), ("correct_by_hand", 4, 2)),
    )
    assert "missing_in_ledger" in outstanding(played)


@pytest.mark.parametrize("unread", [True, False], ids=["closed", "judged"])
def test_of_a_repair_in_a_cut_closed_unread_nobody_says_that_it_had_no_effect_and_its_break_stands(
    unread: bool,
) -> None:
    played = play(
        Config(legs=2, key_is_unique=False, posts="negated"),
        *("window", ("half_trade", 4, 7), "window", "window", *[("by_hand", 1)] * 3, "window", ("plan_and_act", 3, 3)),
        *((("cluster_down", 0, 0, 24), "window", ("close_cut", 2, 3), "cluster_down") if unread else ("window",)),
    )
    assert sum(", taking back" in said for said in played.world.told) == 2
    repaired = ["duplicate_in_ledger", "missing_in_ledger"] if unread else []
    assert sorted(outstanding(played)) == sorted(["duplicate_in_ledger", *repaired])


def test_a_duplicate_stands_whose_reversal_is_unread_whatever_takes_another_row_of_its_key_back_later() -> None:
    played = play(
        Config(legs=2, key_is_unique=False, posts="negated", contracts=2),
        *("cluster_down", "cluster_down", "window", ("half_trade", 2, 3), "window", ("trade", 5, 5)),
        *(("half_trade", 2), ("half_trade", 4, 7), ("cluster_down", 0, 0, 21), "window", "cluster_down", "window"),
        *("carry", ("carry", 1, 10), ("trade", 5, 7), ("trade", 1), ("by_hand", 4, 5), ("by_hand", 3, 11), "window"),
        *(("plan_and_act", 3, 3), ("cluster_down", 0, 0, 24), "window", ("close_cut", 2, 3), ("plan_and_act", 4, 7)),
    )
    assert sum(", taking back" in said for said in played.world.told) == 2
    assert outstanding(played) == ["duplicate_in_ledger"]


@pytest.mark.parametrize(
    ("befalls", "told"),
    [(("touch", 4, 3, 15), []), (("archive", 1, 11), ["compensation_not_effective"]), (("wait", 1), [])],
    ids=["updated before it was read", "deleted before it was read", "read"],
)
def test_a_repair_had_an_effect_whose_row_was_updated_while_a_run_read_the_ledger(
    befalls: tuple[object, ...], told: list[str]
) -> None:
    played = play(
        Config(legs=2, posts="column", key_is_unique=False),
        *("window", ("half_trade", 1, 2), "window", "window", "plan_and_act", befalls, "window"),
    )
    assert [str(one.break_class) for one in played.world.store.of("books").verdicts[3].result.breaks] == told


@pytest.mark.parametrize(("befalls", "told"), [("retain_all", False), (("truncate", 4, 9, 1), True)])
def test_a_repair_whose_event_nobody_has_read_had_no_effect_only_where_it_is_known_to_be_gone(
    befalls: object, told: bool
) -> None:
    played = play(
        Config(
            direction="ledger_to_topic", slice_by="written_xid", legs=2, producer_mode="plain", carrier_mode="at_least"
        ),
        *(("trade", 5, 8), ("trade", 2, 8), ("trade", 2, 2), "window", ("trade", 0, 5), ("redeliver", 3, 6), "window"),
        *(("plan_and_act", 1, 7), befalls, *["window"] * 4),
    )
    said = {
        str(one.break_class) for row in played.world.store.of("books").verdicts.values() for one in row.result.breaks
    }
    assert ("compensation_not_effective" in said) is told


@pytest.mark.parametrize("kill", [(("kill", 24),), ()], ids=["killed before it said so", "said"])
def test_a_repair_that_a_later_start_found_may_have_expired_unread_before_that(kill: tuple[object, ...]) -> None:
    played = play(
        Config(direction="ledger_to_topic", key_is_unique=True, contracts=2),
        *("window", ("half_trade", 0, 10), "window", "window", *kill, ("plan_and_act", 3, 4), ("retain_all", 3, 4)),
        *("window", *(["act"] if kill else [])),
    )
    found = "already_published" if kill else "published"
    assert any(f"acted on: ['{found} ev-1-payout" in said for said in played.world.told)
    said = [
        str(one.break_class) for row in played.world.store.of("books").verdicts.values() for one in row.result.breaks
    ]
    assert said == ["missing_in_topic_never_produced"]


def test_a_row_with_the_number_of_one_that_went_when_a_backup_was_put_back_is_not_that_one_written_anew() -> None:
    played = play(
        Config(slice_by="written_xid", legs=2, key_is_unique=False, carrier_mode="at_least", posts="column"),
        *(
            "back_up",
            ("trade", 4, 5),
            "window",
            ("redeliver", 5, 8),
            "window",
            ("half_trade", 4, 6),
            ("touch", 4, 1, 5),
        ),
        *(("restore", 4, 10), ("trade", 4, 10), "window"),
    )
    books = played.world.store.of("books")
    told = [(n, str(one.break_class)) for n, row in books.verdicts.items() for one in row.result.breaks]
    assert told == [(1, "duplicate_in_ledger")]
    assert {"ledger_failed_over"} <= set(doubts(played, upto=2)[1])


@pytest.mark.parametrize(
    ("befalls", "told"),
    [(("compact", "rewrite_tail"), True), (("rewrite_tail",), True), (("compact",), False)],
    ids=["compacts", "does not compact", "only the cleaner wrote"],
)
def test_a_log_that_compacts_is_known_to_be_rewritten_by_its_leader_epochs(
    befalls: tuple[str, ...], told: bool
) -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="xmin", producer_mode="plain", partitions=1),
        *("window", ("trade", 0), ("trade", 1), "window", *((name, 0, 0) for name in befalls), "window"),
    )
    assert ("log_rewritten" in {one for found in doubts(played, upto=3) for one in found}) is told


@pytest.mark.parametrize(("step", "told"), [("compact", False), ("lead", True)])
def test_a_late_row_is_no_phantom_whose_event_may_be_older_than_the_books_on_a_topic_that_compacts(
    step: str, told: bool
) -> None:
    played = play(
        Config(producer_mode="transactional"),
        *(("pay", 0, 0), ("commit_first", 0), "window", step, ("phantom", 0), "window", ("wait", 3), "window"),
    )
    found = {
        str(one.break_class) for row in played.world.store.of("books").verdicts.values() for one in row.result.breaks
    }
    assert ("phantom_in_ledger" in found) is told


@pytest.mark.parametrize(
    ("before", "behind", "told"),
    [
        ((("pay", 4, 2), ("trade", 5, 11), ("retain_all", 1, 2)), (), []),
        ((("trade", 5, 11), ("retain_all", 1, 2)), (("half_trade", 4, 2),), ["missing_in_topic_never_produced"]),
        (
            (("pay", 4, 2), ("trade", 5, 11), ("retain_all", 1, 2)),
            (("half_trade", 5, 2),),
            ["missing_in_topic_never_produced"],
        ),
    ],
    ids=["older than the books", "written since", "written since, in a cut that has older ones"],
)
def test_nothing_is_paid_again_whose_row_a_held_horizon_left_behind_the_baseline_and_whose_event_had_expired_by_then(
    before: tuple[object, ...], behind: tuple[object, ...], told: list[str]
) -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", producer_mode="plain", carrier_mode="at_least"),
        *(*before, "window", *behind, ("commit_first", 1, 0), "window", "window", ("plan_and_act", 2, 0)),
    )
    runs = list(played.world.store.of("books").verdicts.values())[:3]
    assert [str(one.break_class) for row in runs for one in row.result.breaks] == told
    assert any("a plan is drawn" in said for said in played.world.told) is bool(told)


@pytest.mark.parametrize(
    ("written_since", "told"), [((), []), ((("half_trade", 2, 4),), ["missing_in_topic_never_produced"])]
)
def test_by_xmin_nothing_is_paid_again_whose_row_moved_on_from_where_a_held_horizon_had_left_it(
    written_since: tuple[object, ...], told: list[str]
) -> None:
    """It is updated between the first cut and its scan: the next one reads it, all of whose other rows are younger."""
    before = (("pay_one_leg", 5, 1), ("trade", 4, 1), ("trade", 4, 9), ("retain_all", 5, 10))
    played = play(
        Config(direction="ledger_to_topic", slice_by="xmin", legs=2, key_is_unique=False, carrier_mode="exactly"),
        *(*before, "window", ("touch", 4, 3, 9), ("commit_first", 0, 6), "window", "window", *written_since),
        *("window", "window", ("plan_and_act", 0, 4)),
    )
    runs = list(played.world.store.of("books").verdicts.values())[:6]
    assert sorted({str(one.break_class) for row in runs for one in row.result.breaks}) == told
    assert any("is touched" in said for said in played.world.told)
    assert any("a plan is drawn" in said for said in played.world.told) is bool(told)


@pytest.mark.parametrize("torn_since", [False, True])
def test_no_transaction_is_torn_whose_leg_came_again_by_an_input_that_was_held_when_the_books_began(
    torn_since: bool,
) -> None:
    """The other leg had expired by then. What was one too many is told as before."""
    since = (("pay_one_leg", 0, 0), "commit_first", ("carry", 0, 0), "commit_second") if torn_since else ()
    played = play(
        Config(direction="topic_to_topic", slice_by="topic", legs=2, key_is_unique=False, carrier_mode="at_least"),
        *(("trade", 4, 5), ("cluster_down", 2, 5), ("both_again", 1, 7), ("pay", 2, 0), ("hang", 2, 3)),
        *(("retain_all", 0, 1), ("carry", 1, 8), ("both_again", 5, 4), ("cluster_down", 1, 10), "window"),
        *since,
    )
    assert outstanding(played).count("duplicate_in_topic_new_session") == 2
    assert outstanding(played).count("torn_transaction") == torn_since


def test_a_row_that_corrects_an_event_of_before_the_books_has_none_of_its_own() -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="xmin", carrier_mode="at_least", contracts=2),
        *(("trade", 3, 6), ("phantom", 5, 7, 26), "window", "window", ("trade", 1, 4), ("first_again", 3, 7)),
        *(("redeliver", 5, 8), "window", ("correct_by_hand", 5, 8), "window", ("retain_all", 5, 8), "window"),
    )
    told = [str(one.break_class) for one in played.world.store.of("audit").verdicts[4].result.breaks]
    assert told == ["missing_in_topic_never_produced"]


def test_a_row_updated_beyond_the_index_of_keys_is_not_missing_whose_event_was_compacted() -> None:
    """A plan would pay it again."""
    beyond_the_index = ["window"] * 169
    played = play(
        Config(direction="ledger_to_topic", slice_by="xmin", producer_mode="plain", partitions=1),
        *(
            "window",
            *(("trade", n) for n in range(6)),
            "window",
            *beyond_the_index,
            "compact",
            ("touch", 0, 0),
            "window",
        ),
    )
    assert any("compaction takes" in said for said in played.world.told)
    assert outstanding(played) == []
    verdicts = played.world.store.of("books").verdicts
    at = next(n for n, row in verdicts.items() if "ledger_rewritten" in {str(one.doubt) for one in row.result.doubts})
    assert [str(one.doubt) for one in verdicts[at + 1].result.doubts] == ["partner_not_settled"]


@pytest.mark.parametrize(("step", "told"), [("truncate", True), ("wait", False)], ids=["cut back", "whole"])
def test_a_log_that_is_cut_back_while_a_run_looks_at_it_is_told_of_once_it_has_grown_again(
    step: str, told: bool
) -> None:
    """The run that finds it says so; what is written there behind that run, no later one reads."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="jdbc", carrier_mode="at_least"),
        *(("pay", 4), ("pay", 2), "window", ("pay", 1, 11), ("half_trade", 2, 7), ("carry", 1, 3), "window"),
        *(("half_trade", 5, 7), ("trade", 4, 2), "window", ("carry", 2, 11), ("carry", 5), ("redeliver", 5), "window"),
        *((step, 0, 5, 43), "window", ("trade", 0, 6)),
    )
    assert ("log_rewritten" in doubts(played, upto=5)[4]) == told


@pytest.mark.parametrize(("step", "told"), [("truncate", True), ("wait", False)], ids=["cut back", "whole"])
def test_a_log_that_is_cut_back_while_its_baseline_looks_at_it_is_told_of_once_it_has_grown_again(
    step: str, told: bool
) -> None:
    played = play(
        Config(slice_by="written_xid", producer_mode="plain", carrier_mode="at_least", partitions=1),
        *(("trade", 0, 4), ("trade", 1, 4), ("trade", 0, 5), (step, 0, 4, 17), "window"),
        *(("trade", 0, 6), ("trade", 1, 6), ("trade", 0, 6), "window"),
    )
    assert ("log_rewritten" in doubts(played, upto=1)[0]) == told


@pytest.mark.parametrize(("step", "told"), [("restore", True), ("wait", False)], ids=["put back", "as it was"])
def test_a_row_that_gets_an_id_of_before_once_its_server_was_put_back_is_told_of_and_its_event_stays_missing(
    step: str, told: bool
) -> None:
    played = play(
        Config(slice_by="written_xid", legs=2, producer_mode="plain", carrier_mode="at_least"),
        *("window", ("back_up", 2, 3), ("canary_key", 4, 9), ("trade", 0, 5), "window", (step, 0, 5)),
        *(("cluster_down", 0, 0, 19), "window", "cluster_down", "window", ("carry", 4, 5), ("correct_by_hand", 4, 4)),
        *("window", ("lose", 3, 7)),
    )
    assert ("ledger_ids_reused" in doubts(played, upto=4)[3]) == told
    assert ("missing_in_ledger" in outstanding(played)) == told


@pytest.mark.parametrize(("step", "told"), [("restore", True), ("wait", False)], ids=["put back", "as it was"])
def test_a_phantom_that_gets_an_id_of_before_is_told_of_by_its_id_alone(step: str, told: bool) -> None:
    """By written_xid nobody sees that it is touched later, behind the run that said so."""
    played = play(
        Config(slice_by="written_xid", legs=2),
        *(("trade", 0, 6), ("cluster_down", 0, 0, 20), "window", "cluster_down", ("back_up", 0, 3), ("phantom", 1, 10)),
        *(("touch", 1, 2), "touch", "change", "window", (step, 0, 4), ("touch", 4, 3, 33), ("touch", 4, 3, 34)),
        *(("touch", 4, 2, 35), "window", ("phantom", 1, 9), "window", ("touch", 4, 0, 30), "window"),
    )
    assert ("ledger_ids_reused" in doubts(played, upto=3)[2]) == told
    assert outstanding(played) == ["phantom_in_ledger"] * (1 if told else 2)


@pytest.mark.parametrize(("step", "told"), [("restore", True), ("wait", False)], ids=["put back", "as it was"])
def test_by_a_column_that_grows_an_event_is_no_second_one_whose_row_got_a_number_of_before(
    step: str, told: bool
) -> None:
    """As many rows with the same numbers as were read: that they have other keys, the newest ones show."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="jdbc", legs=2, carrier_mode="at_most"),
        *("window", ("trade", 0, 1), ("back_up", 2, 2), ("first_again", 3, 4), ("trade", 1, 3), ("first_again", 2, 9)),
        *("window", (step, 5, 5)),
    )
    assert [one for one in doubts(played, upto=2)[1] if one == "ledger_ids_reused"] == ["ledger_ids_reused"] * told
    assert "duplicate_in_topic_cause_unknown" not in outstanding(played)


@pytest.mark.parametrize(
    ("befalls", "told"), [("compact", []), ("phantom", ["phantom_in_ledger"])], ids=["cleaned", "a phantom"]
)
def test_a_row_is_no_phantom_whose_event_a_cleaner_may_have_taken_out_of_a_closed_cut(
    befalls: str, told: list[str]
) -> None:
    """Nobody has read the event there, and no run sees it go."""
    played = play(
        Config(slice_by="jdbc", producer_mode="plain"),
        *("window", ("pay_one_leg", 2, 11), ("canary_key", 0, 7), ("pay_one_leg", 3, 7), ("cluster_down", 0, 0, 23)),
        *("window", ("close_cut", 0, 9), "cluster_down", "window", ("trade", 0, 5), (befalls, 4, 5)),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize("step", ["rewrite_tail", "wait"])
def test_a_marker_that_was_cut_away_above_a_held_end_is_told_of_by_the_next_run(step: str) -> None:
    """It had ended what was read; what is written in its place lies above an open transaction, so that no cut reads it
    for a while.
    """
    played = play(
        Config(direction="ledger_to_topic", carrier_mode="at_least", contracts=2),
        *("window", ("half_trade", 4, 7), ("carry_out_of_turn", 5, 7), ("trade", 3, 1), ("rewrite_tail", 3, 2)),
        *(("redeliver", 5, 2), "window", (step, 5, 8), "window"),
    )
    assert ("log_rewritten" in doubts(played, upto=2)[1]) == (step == "rewrite_tail")


def test_a_second_event_that_another_contract_takes_back_while_a_run_reads_it_was_one_too_many_then() -> None:
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", legs=2, carrier_mode="at_most", contracts=2),
        *(("trade", 4, 2), "window", ("redeliver", 5, 2, 4), "window", ("plan_and_act", 3, 11, 36), "window"),
    )
    run = played.world.store.of("books").verdicts[2]
    assert [str(one.break_class) for one in run.result.breaks] == ["duplicate_in_topic_new_session"]
    assert outstanding(played) == []


@pytest.mark.parametrize(
    ("befell", "told"),
    [
        ([("trade", 2, 11), ("retain_all", 1, 5, 29)], []),
        (
            [("half_trade", 2, 11), "lose"],
            ["missing_in_topic_never_produced", "torn_transaction"],
        ),
    ],
    ids=["its output expired", "it was never made"],
)
def test_an_input_that_was_held_is_not_missing_whose_output_may_have_expired_when_a_cut_had_seen_it(
    befell: list[object], told: list[str]
) -> None:
    """The cut that found the output gone has said so (log_expired); the input was read cuts later."""
    played = play(
        Config(direction="topic_to_topic", slice_by="topic", legs=2, producer_mode="plain", carrier_mode="at_most"),
        *(("fall_behind", 4, 7), "window", *befell, "window", "window"),
    )
    assert outstanding(played) == told


@pytest.mark.parametrize(("step", "told"), [("restore", True), ("wait", False)], ids=["put back", "as it was"])
def test_a_disk_that_was_put_back_and_has_caught_up_is_told_by_the_newest_row_ids(step: str, told: bool) -> None:
    """As many transactions as before: neither the horizon nor the log fell back."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", producer_mode="plain"),
        *("window", ("back_up", 1, 1), ("trade", 0, 3), "window", (step, 5, 5), ("trade", 1, 8)),
    )
    assert ("ledger_ids_reused" in doubts(played, upto=2)[1]) == told
    assert outstanding(played) == []


SOLD = ("trade", 0, 1)
CARRIED_AGAIN = 12 * [("carry", 0, 0), ("commit_second", 0, 0)]


@pytest.mark.parametrize("slice_by", ["jdbc", "written_xid", "xmin"])
@pytest.mark.parametrize(("step", "told"), [("restore", True), ("wait", False)], ids=["put back", "as it was"])
def test_a_backup_that_is_put_back_between_a_cut_and_its_reading_makes_no_second_event(
    slice_by: str, step: str, told: bool
) -> None:
    """The cut knew nothing of it: what rows stand where is asked once the ledger was read."""
    played = play(
        Config(slice_by=slice_by, carrier_mode="at_least"),
        *("window", *3 * [SOLD], "back_up", *4 * [SOLD], "window", *3 * [SOLD], "window"),
        *(("half_trade", 0, 1), ("half_trade", 1, 1), ("half_trade", 2, 1), ("cluster_down", 0, 0, 30), "window", step),
        *(*CARRIED_AGAIN, "cluster_down", "window", "window"),
    )
    assert ("ledger_ids_reused" in doubts(played, upto=3)[2]) == told
    assert not [one for one in outstanding(played) if one.startswith("duplicate_in_topic")]


@pytest.mark.parametrize("slice_by", ["jdbc", "written_xid", "xmin"])
@pytest.mark.parametrize(("step", "told"), [("restore", True), ("wait", False)], ids=["put back", "as it was"])
def test_a_backup_that_was_put_back_before_a_cut_that_is_closed_is_told_of_by_the_next_run(
    slice_by: str, step: str, told: bool
) -> None:
    played = play(
        Config(slice_by=slice_by, carrier_mode="at_least"),
        *(
            "window",
            *6 * [SOLD],
            "window",
            "back_up",
            *5 * [SOLD],
            "window",
            step,
            ("phantom", 0, 1),
            ("phantom", 0, 1),
        ),
        *(*9 * [SOLD], ("cluster_down", 0, 0, 30), "window", "close_cut", "cluster_down", *5 * [SOLD], "window"),
    )
    assert [one for one in doubts(played, upto=4)[3] if one == "ledger_ids_reused"] == ["ledger_ids_reused"] * told
    assert "cut_closed" in doubts(played, upto=3)[2]


@pytest.mark.parametrize("step", ["rewrite", "wait"])
def test_by_xmin_a_reversal_that_is_read_again_is_none_whose_row_lies_behind_the_horizon(step: str) -> None:
    """The table was rewritten, and the row that was taken back was touched behind an open transaction."""
    played = play(
        Config(posts="negated", carrier_mode="at_most"),
        *(("trade", 1, 4), ("redeliver", 3, 9), "window", ("trade", 2, 8), ("redeliver", 1, 9), "window"),
        *(("plan_and_act", 3, 11), ("first_again", 0, 10), "window", (step, 3, 7), ("carry", 1, 2), ("touch", 0, 3)),
        "window",
    )
    items = [one.item_break for one in outstanding_breaks(played.world.store, "books")]
    assert not [one for one in items if one.match_key.startswith("ev-2")]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [("wait", "rewrite_tail", set()), ("half_trade", "wait", {"missing_in_ledger"})],
    ids=["where others were cut away", "before the sample"],
)
def test_an_event_that_came_where_an_election_had_cut_others_away_may_be_younger_than_the_sample(
    before: str, after: str, told: set[str]
) -> None:
    """Its row came within its grace."""
    played = play(
        Config(slice_by="parquet", legs=2, partitions=2, carrier_mode="at_least", contracts=2),
        *(("trade", 2, 2), ("pay", 1, 7), "window", (before, 4, 4), ("wait", 5, 7, 15), (after, 4, 4, 15)),
        *("window", "window"),
    )
    assert ("log_rewritten" in doubts(played, upto=1)[0]) == (after == "rewrite_tail")
    breaks = played.world.store.of("books").verdicts[2].result.breaks
    assert {str(one.break_class) for one in breaks} == told


CUT_BACK_WHILE_READ = (
    *(("trade", 4, 2), "window", ("trade", 0, 4), ("trade", 5, 4), ("rewrite_tail", 4, 1, 33), "window"),
)


def test_a_log_that_is_cut_back_again_behind_a_slice_that_was_left_out_is_told_again() -> None:
    config = Config(direction="ledger_to_topic", slice_by="jdbc", producer_mode="plain", carrier_mode="at_least")
    again = (("truncate", 4), ("trade", 3), ("cluster_down", 0, 0, 35), "window", "cluster_down", "window")
    later = (("retain_all", 5), ("pay", 1, 9), ("trade", 4, 2), "window")
    told = doubts(play(config, *CUT_BACK_WHILE_READ, *again, *later), upto=2)
    assert ["log_rewritten" in one for one in told] == [True, True]
    told = doubts(play(config, *CUT_BACK_WHILE_READ, ("trade", 3), "window"), upto=2)
    assert ["log_rewritten" in one for one in told] == [True, False]


@pytest.mark.parametrize(("topic", "told"), [("compact", []), ("wait", ["torn_transaction"])])
def test_beside_a_row_whose_file_was_written_anew_nobody_can_tell_whether_a_compacting_topic_had_the_absent_leg(
    topic: str, told: list[str]
) -> None:
    """A run says of that transaction that it cannot be told."""
    played = play(
        Config(direction="ledger_to_topic", slice_by="parquet", legs=2, key_is_unique=False, carrier_mode="at_most"),
        *((topic, 3, 5), "window", ("canary_key", 2, 2), "window", ("carry", 0, 4), ("touch", 1, 7)),
        *(("canary_key", 2, 4), "window", ("lose", 3, 1)),
    )
    assert [one for one in outstanding(played) if one.startswith("torn")] == told


@pytest.mark.parametrize("step", ["truncate", "wait"], ids=["cut back", "whole"])
def test_what_stood_open_while_it_was_read_and_was_read_as_settled_before_is_told_as_unread(step: str) -> None:
    """Its marker is cut off once the run has made its slices: what is left of the log is a transaction that is open
    again, so that the slice has nothing. A later marker ends it, behind what has been read.
    """
    played = play(
        Config(direction="ledger_to_topic", slice_by="written_xid", legs=2, partitions=2, carrier_mode="at_least"),
        *("window", ("trade", 0, 5), ("both_again", 2, 8), ("half_trade", 3, 2), ("trade", 4, 1), ("trade", 0, 4)),
        *(("carry", 2), (step, 2, 5, 30), "window", ("trade", 3, 10), "window", ("redeliver", 1, 4)),
    )
    assert [one for told in doubts(played, upto=3) for one in told if one == "unexplained_gap"] == (
        ["unexplained_gap"] if step == "truncate" else []
    )


@pytest.mark.parametrize(
    ("step", "told"), [("retain_all", ["missing_in_topic_never_produced"]), ("wait", [])], ids=["expired", "kept"]
)
def test_an_event_that_was_closed_away_is_not_that_of_an_input_that_came_later_once_nobody_can_read_it(
    step: str, told: list[str]
) -> None:
    """It was sent twice, and a person closed the cut of the second one unread. An event follows its input: where it can
    be read it is counted all the same, as one too many that a later input makes good.
    """
    down = "cluster_down"
    played = play(
        Config(
            direction="topic_to_topic", slice_by="topic", partitions=2, producer_mode="plain", carrier_mode="at_least"
        ),
        *(("trade", 5, 6), ("both_again", 3, 1), "window", (down, 0, 0, 26), down, ("trade", 2, 7), (down, 0, 0, 27)),
        *(down, (down, 0, 0, 24), "window", ("close_cut", 3, 11), down, "window", ("first_again", 1, 3), "window"),
        *((step, 4, 3), "window"),
    )
    run = played.world.store.of("books").verdicts[4]
    assert [str(one.break_class) for one in run.result.breaks] == told


@pytest.mark.parametrize(
    ("closed", "told"), [(True, ["missing_in_topic_never_produced"]), (False, [])], ids=["closed", "judged"]
)
def test_a_missing_event_stands_that_came_once_the_log_was_cut_back_into_a_cut_that_was_closed_unread(
    closed: bool, told: list[str]
) -> None:
    """Nobody has read what stood there, so that nothing says that it is another one by now."""
    down = "cluster_down"
    played = play(
        Config(direction="topic_to_topic", slice_by="topic", partitions=2, producer_mode="plain"),
        *(("phantom", 1, 9), "window", (down, 0, 0, 25), "window", ("close_cut", 1, 2), down, (down, 0, 0, 30)),
        *("window", down, ("pay", 4, 6), ("phantom", 5, 2), "window", "window", ("by_hand", 3)),
        *([(down, 0, 0, 34), "window", ("close_cut", 3, 6)] if closed else ["window"]),
        ("truncate", 0, 2),
    )
    assert [one for one in outstanding(played) if one.startswith("missing")] == told
