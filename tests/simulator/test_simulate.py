"""The command: what it writes, when it fails, and that broken lines are where the table says."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.simulator import broken_again, reached
from tests.simulator.known import KNOWN, known_as
from tests.simulator.oracle.clauses import Violation
from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.simulate import main
from tests.simulator.standins.seams import stand_ins
from tests.simulator.world.config import Config


def test_a_few_schedules_violate_nothing_and_are_written_down(tmp_path: Path) -> None:
    to = tmp_path / "simulate.json"
    assert main(["--schedules", "12", "--seed", "40", "--processes", "1", "--to", str(to)]) == 0
    figures = json.loads(to.read_text())
    assert (figures["schedules"], figures["seed"], figures["violations"]) == (12, 40, [])
    assert figures["windows"] > 12 * 20 and figures["reached"]["verdict MATCHED"] > 12


def test_what_is_reached_too_seldom_is_named() -> None:
    enough = Counter(dict.fromkeys(reached.expected(), reached.AT_LEAST))
    assert reached.missed(enough) == {}
    enough["doubt log_expired"] -= 1
    assert reached.missed(enough) == {"doubt log_expired": 9}


def test_each_line_of_what_is_out_of_reach_names_something_and_is_struck_off_once_it_is_reached() -> None:
    every = {name for name in reached.NOT_YET if name not in reached.expected()}
    assert every == set(reached.NOT_YET)
    assert reached.reached_all_the_same(Counter({"doubt torn_cut": 1})) == (
        ["doubt torn_cut"] if "doubt torn_cut" in reached.NOT_YET else []
    )


def test_a_known_violation_is_no_other_one() -> None:
    torn = Violation("nothing is reported that is not so", "books/3: torn_transaction of pay-1: all legs stand")
    for why in ("", ", and a row of it was archived or written anew; a row of it is undecidable"):
        assert known_as(torn._replace(sentence=f"{torn.sentence}; some older than the books{why}")) is None
    assert known_as(Violation("each wrong is told", "books: ev-1: missing, and nobody said so")) is None
    assert len({one.name for one in KNOWN}) == len(KNOWN)


OUTPUT_ONLY = Config(direction="ledger_to_topic", producer_mode="plain")
UNSEEN = "expired before a run looked there"


@pytest.mark.parametrize(
    ("config", "steps", "told"),
    [
        pytest.param(
            Config(direction="ledger_to_topic"),
            (
                *(("trade", 0, 4), ("trade", 3, 0), ("archive", 2, 11), ("trade", 0, 7), "window"),
                *("retain_all", ("first_again", 5, 3), "window", "window", "plan_and_act"),
            ),
            "older than the books, and expired",
            id="published again",
        ),
        pytest.param(
            OUTPUT_ONLY._replace(slice_by="written_xid", legs=2, carrier_mode="at_least"),
            (
                *(("trade", 0, 5), "window", "retain_all", ("trade", 1, 5), "window", ("archive", 0, 0)),
                *(("redeliver", 0, 8), ("trade", 1, 5), "window"),
            ),
            "a row of it was archived or written anew",
            id="torn",
        ),
        pytest.param(
            Config(slice_by="jdbc", legs=2, key_is_unique=False, carrier_mode="at_least"),
            (
                *(("trade", 3, 0), ("trade", 1, 5), ("pay", 0, 10), ("pay", 3, 5), "commit_first", ("carry", 1, 7)),
                *(("retain_all", 1, 7), "window", ("first_again", 2, 4), "window", "window", ("carry", 4, 5)),
                *(("trade", 3, 11), "window"),
            ),
            "no row of it has come into sight",
            id="torn, its row open for longer than the overlap",
        ),
        pytest.param(
            OUTPUT_ONLY._replace(slice_by="parquet", carrier_mode="at_least"),
            (
                *("window", ("trade", 4, 10), ("pay", 2, 0), ("trade", 4, 0), ("commit_first", 1, 6)),
                *(("truncate", 4, 2, 50), "window", ("carry", 5, 8), ("retain_all", 5, 8)),
            ),
            UNSEEN,
            id="cut back behind the last look of a run",
        ),
        pytest.param(
            OUTPUT_ONLY._replace(slice_by="jdbc", carrier_mode="at_least"),
            (
                *("window", ("trade", 0, 4), ("trade", 5, 4), "window", ("truncate", 4), ("trade", 3)),
                *(("cluster_down", 0, 0, 35), "window", ("retain_all", 5)),
            ),
            UNSEEN,
            id="cut back before a cut whose run could not look",
        ),
        pytest.param(
            OUTPUT_ONLY._replace(slice_by="written_xid", carrier_mode="at_most"),
            (
                *(("pay", 5, 9), ("trade", 5, 2), ("carry", 3, 10), ("truncate", 4, 8, 21), "window"),
                *(("trade", 3, 4), ("retain", 4, 3)),
            ),
            UNSEEN,
            id="cut back behind what the baseline keeps",
        ),
        pytest.param(
            Config(direction="ledger_to_topic", slice_by="written_xid", key_is_unique=False, carrier_mode="at_least"),
            (
                *(("trade", 0, 4), ("truncate", 0, 5, 27), "window", ("trade", 2, 4), ("retain_all", 0, 3)),
                *("window", "window", ("plan_and_act", 0, 5)),
            ),
            UNSEEN,
            id="cut back behind the baseline, and left to people",
        ),
        pytest.param(
            Config(direction="topic_to_topic", slice_by="topic", carrier_mode="at_most"),
            (
                *(("trade", 5, 1), "window", ("both_again", 0, 7), ("both_again", 4, 7), ("truncate", 3, 7, 37)),
                *("window", ("both_again", 5, 3), ("carry", 0, 7), ("carry_out_of_turn", 4, 1), ("trade", 3, 2, 22)),
                *("window", ("wait", 2, 11, 12), "window"),
            ),
            "its input stands where others had been read",
            id="an input in the place of another",
        ),
        pytest.param(
            Config(direction="topic_to_topic", slice_by="topic", carrier_mode="at_most"),
            (
                *(("trade", 0, 3), ("trade", 0, 5), ("truncate", 2, 6, 23), "window", ("trade", 4, 3), ("pay", 1, 6)),
                *("window", ("half_trade", 1, 7), ("carry_wrong", 0, 9)),
            ),
            "its input stands where others had been read",
            id="an input in the place of another, whose output is wrong",
        ),
        pytest.param(
            Config(slice_by="xmin", partitions=2, carrier_mode="at_most", contracts=2, posts="negated"),
            (
                *("window", ("half_trade", 3, 1), "window", "window", ("trade", 0, 2), ("by_hand", 3, 6)),
                *(("touch", 4, 1, 15), ("cluster_down", 0, 0, 37), "window", "cluster_down", "window"),
                ("plan_and_act", 4, 2),
            ),
            "another contract took another row of it back",
            id="the other of two equal rows is taken back by another contract",
        ),
    ],
)
def test_what_is_known_is_violated_still_and_told_from_any_other(
    config: Config, steps: tuple[str | tuple[object, ...], ...], told: str
) -> None:
    with stand_ins():
        violated = Play(Schedule(config, tuple(steps_of(*steps)))).all()
    assert violated
    for one in violated:
        assert told in one.sentence
        assert known_as(one) is not None
        assert known_as(one._replace(sentence=one.sentence.partition(";")[0])) is None


@pytest.mark.parametrize("broken", broken_again.BROKEN, ids=[str(one.finding) for one in broken_again.BROKEN])
def test_the_lines_that_are_broken_again_stand_in_their_files_once(broken: broken_again.Broken) -> None:
    for edit in broken.edits:
        assert (broken_again.ROOT / edit.file).read_text().count(edit.old) == 1, edit


@pytest.mark.parametrize(("as_it_is", "schedules"), [([[3, "clause", "sentence"]], 9), ([], 3)])
def test_what_the_product_as_it_is_violates_too_counts_for_no_broken_line(
    as_it_is: list[object], schedules: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(folder: Path, count: int, seed: int, seconds: float) -> dict[str, object]:
        if folder == broken_again.ROOT:
            return {"schedules": 1, "violations": as_it_is}
        until_first = [[3, "clause", "sentence"]] if seed == 1 else []
        return {"schedules": 3 if until_first else count, "violations": until_first}

    monkeypatch.setattr(broken_again, "_play", play)
    told = broken_again.play_broken(broken_again.BROKEN[0], schedules=9, seed=1, seconds=60)
    assert (told["schedules"], told["found"]) == (schedules, None if as_it_is else [3, "clause", "sentence"])


def test_every_finding_is_broken_again_or_is_said_to_be_out_of_reach() -> None:
    numbers = {one.finding for one in broken_again.BROKEN} | set(broken_again.UNREACHABLE)
    assert numbers >= set(range(1, 19))
