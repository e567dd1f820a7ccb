"""What of a schedule real servers are told, and which schedules they cannot be told."""

import pytest

from tests.simulator.replay.record import BETWEEN_QUESTIONS, KILLED, NotReplayable, RecordedPlay
from tests.simulator.replay.replay import recorded
from tests.simulator.replay.tape import LogsStand, PersonDid, Published, RowIn, Said, SetAside, WindowDue
from tests.simulator.replay.told import ToldRun
from tests.simulator.schedule.play import Do, Schedule, steps_of
from tests.simulator.world.config import Config


def played(*steps: object, **config: object) -> RecordedPlay:
    return recorded(Schedule(Config(**config), tuple(steps_of(*steps))))  # type: ignore[arg-type]


def entries(play: RecordedPlay, *kinds: type) -> list[object]:
    return [one.entry for one in play.tape.moments if isinstance(one.entry, kinds)]


def test_a_trade_is_a_record_its_marker_and_a_row() -> None:
    play = played("window", "trade", "window")
    told = [type(one.entry).__name__ for one in play.tape.moments][:8]
    assert told == ["WindowDue", "Opened", "Published", "Ended", "LogsStand", "RowIn", "Said", "WindowDue"]
    (record,), (row,) = entries(play, Published), entries(play, RowIn)
    assert isinstance(record, Published)
    assert isinstance(row, RowIn)
    assert (record.producer, record.offset, row.row.match_key) == ("app-0", 0, "ev-1-payout")
    (logs,) = entries(play, LogsStand)
    assert isinstance(logs, LogsStand)
    assert [tuple(ends) for ends in logs.logs.values()] == [(0, 2, 2), (0, 0, 0)]


def test_a_window_says_what_was_judged_in_it() -> None:
    play = played("window", "trade", "half_trade", "window")
    runs = [one for due in entries(play, WindowDue) for one in due.told if isinstance(one, ToldRun)]  # type: ignore[attr-defined]
    assert [(run.cut, run.verdict) for run in runs][:2] == [(0, "INCONCLUSIVE"), (1, "MATCHED")]
    assert [item[1:7] for item in runs[1].items] == [("ev-2-payout", "payout", 100, "EUR", "open", "WITHIN_GRACE")]


def test_what_an_executor_publishes_is_not_told_to_the_servers_but_done_again() -> None:
    play = played("window", "half_trade", "window", "wait", "window", "plan_and_act", direction="ledger_to_topic")
    acted = [did.told for did in entries(play, PersonDid)]  # type: ignore[attr-defined]
    assert "published" in str(acted)
    assert [fact.by for fact in play.world.truth.events] == ["repair"]
    assert entries(play, Published) == []


def test_a_prepared_transaction_takes_no_further_row() -> None:
    """Its session is free; what it writes next is in another transaction, as in PostgreSQL."""
    play = played("window", "half_trade", "half_trade", "carry", "prepare", "carry", "commit_second", "window")
    words = entries(play, Said, SetAside)
    assert [one.word if isinstance(one, Said) else "set aside" for one in words] == [  # type: ignore[attr-defined]
        *("prepare", "set aside", "commit", "commit"),
    ]


def test_a_run_that_is_killed_at_a_question_is_left_out() -> None:
    with pytest.raises(NotReplayable, match=KILLED):
        played("window", "trade", "kill", "window")


def test_a_step_between_two_questions_is_left_out() -> None:
    with pytest.raises(NotReplayable, match=BETWEEN_QUESTIONS):
        played("window", Do("trade", 0, 0, 5), "window")


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((("pay", 0, 0), "hang"), "a coordinator forgets a transaction"),
        ((("pay", 0, 0), ("commit_first_slowly", 0, 0)), "markers that come one at a time"),
        ((("pay", 0, 0), "end_on_one_partition"), "a marker on one partition alone"),
        (("cluster_down",), "the cluster does not answer"),
        ((("host_clock", 0, 0),), "a host's clock that is off"),
        (("fall_behind",), "replicas that fall behind"),
        (("trade", "truncate"), "a log is cut back"),
        (("compact",), "a topic that compacts"),
        (("back_up", "trade", "restore"), "a backup that is put back"),
    ],
)
def test_what_befalls_a_log_by_itself_is_left_out_where_it_does(steps: tuple[object, ...], why: str) -> None:
    with pytest.raises(NotReplayable, match=why):
        played("window", *steps, "window", legs=2)


@pytest.mark.parametrize(
    "steps",
    [("hang",), ("end_on_one_partition",), (("pay", 0, 0), ("commit_first_slowly", 0, 1)), ("truncate",), ("restore",)],
)
def test_the_same_step_without_an_effect_leaves_nothing_out(steps: tuple[object, ...]) -> None:
    assert played("window", *steps, "window").windows > 2
