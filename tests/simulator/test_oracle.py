"""The oracle contradicts what is not so: a break or a doubt that is put into a run's mouth, beside one that holds."""

from dataclasses import replace
from uuid import UUID

import pytest

from tallystick.compensation.plan import OffsetsUnread
from tallystick.executor import draw_plan, prove_repairs
from tallystick.matching.scan_result import topic_item_id
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound
from tallystick.model.open_item import ItemSide
from tests.simulator.known import known_as
from tests.simulator.oracle.causes import WITH_A_CAUSE, has_its_cause
from tests.simulator.oracle.money_of_keys import MadeWorse
from tests.simulator.oracle.reports import why_not_so
from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.world.config import Config
from tests.simulator.world.truth import EventFact

pytestmark = pytest.mark.usefixtures("in_the_world")


def played(config: Config, *steps: object) -> Play:
    play = Play(Schedule(config, tuple(steps_of(*steps))))  # type: ignore[arg-type]
    for step in play.schedule.steps:
        play.do(step)
    return play


def is_contradicted(play: Play, break_class: BreakClass, event: EventFact) -> bool:
    money = event.money
    found = Break(
        break_id=UUID(int=1),
        break_class=break_class,
        match_key=money.match_key,
        transaction_key=money.transaction_key,
        leg=money.leg,
        amount_minor=money.amount_minor,
        currency=money.currency,
        copies=1,
        story="",
        evidence={"at": topic_item_id(event.place.topic, event.place.partition, event.offset)},
    )
    world, grace = play.world, play.world.contract.partner_grace
    return why_not_so(found, world.truth, world.config, run_began=world.clock.now, grace=grace) is not None


@pytest.mark.parametrize("repaired", [True, False])
def test_a_repair_whose_row_stands_had_its_effect(repaired: bool) -> None:
    play = played(
        Config(legs=2, posts="column", key_is_unique=False),
        *("window", ("half_trade", 1, 2), "window", "window", *(["plan_and_act", "wait"] if repaired else [])),
    )
    assert is_contradicted(play, BreakClass.COMPENSATION_NOT_EFFECTIVE, play.world.truth.events[0]) is repaired


@pytest.mark.parametrize("marker_gone", [True, False])
def test_an_event_whose_marker_stands_has_not_bled(marker_gone: bool) -> None:
    play = played(Config(producer_mode="transactional"), "window", "trade")
    truth = play.world.truth
    event = truth.events[0]
    truth.losses.append((play.world.clock.now, "truncated", event.place, event.offset + marker_gone))
    assert is_contradicted(play, BreakClass.BLED_INTO_TRANSACTION, event) is not marker_gone


@pytest.mark.parametrize(
    ("is_reversal_aborted", "names_it", "contradicted"),
    [
        pytest.param(True, True, False, id="its reversal was aborted once its marker had gone"),
        pytest.param(False, True, True, id="its reversal stands"),
        pytest.param(True, False, True, id="another one's reversal was aborted"),
    ],
)
def test_an_event_too_many_whose_reversal_stands_is_none(
    is_reversal_aborted: bool, names_it: bool, contradicted: bool
) -> None:
    play = played(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least", partitions=1),
        *("window", ("trade", 1, 5), "window", ("redeliver", 1, 5), "window", "plan_and_act", "wait"),
    )
    _, copy, reversal = play.world.truth.events
    assert copy.taken_back_at == reversal.visible_at
    if is_reversal_aborted:
        reversal.outcome = "aborted"
    if not names_it:
        reversal.reverses = "topic:billing.payouts:0:99"
    assert is_contradicted(play, BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION, copy) is contradicted


@pytest.mark.parametrize("aborted", [True, False])
def test_no_transaction_is_torn_by_the_protocol_of_which_nothing_was_aborted(aborted: bool) -> None:
    play = played(Config(legs=2, producer_mode="transactional"), "window", "pay", *(["abort_first"] if aborted else []))
    assert is_contradicted(play, BreakClass.TORN_BY_PROTOCOL, play.world.truth.events[0]) is not aborted


@pytest.mark.parametrize(
    ("befalls", "may_cause"),
    [
        ("retain_all", {Doubt.LOG_EXPIRED, Doubt.READERS_DISAGREE}),
        ("compact", {Doubt.LOG_COMPACTED, Doubt.UNEXPLAINED_GAP, Doubt.READERS_DISAGREE}),
        (
            "truncate",
            {Doubt.LOG_TRUNCATED, Doubt.LOG_REWRITTEN, Doubt.UNEXPLAINED_GAP, Doubt.READERS_DISAGREE},
        ),
        (
            "recreate",
            {Doubt.TOPIC_RECREATED, Doubt.LOG_REWRITTEN, Doubt.UNEXPLAINED_GAP, Doubt.READERS_DISAGREE},
        ),
        ("poison", {Doubt.UNREADABLE_PAYLOAD}),
        ("touch", {Doubt.LEDGER_REWRITTEN}),
        ("wait", set()),
    ],
)
def test_a_doubt_has_its_cause_in_what_befell_since_a_run_looked(befalls: str, may_cause: set[Doubt]) -> None:
    play = played(
        Config(partitions=1, producer_mode="transactional"),
        *("window", "pay", "abort_first", "trade", ("trade", 1), "window", befalls),
    )
    caused = {
        doubt for doubt in WITH_A_CAUSE if has_its_cause(play.world, "books", 2, DoubtFound(doubt=doubt, sentence=""))
    }
    assert caused == may_cause


def test_what_expired_before_the_run_before_looked_is_no_cause() -> None:
    play = played(Config(partitions=1, producer_mode="plain"), "window", "trade", "retain_all", "window", "wait")
    expired = DoubtFound(doubt=Doubt.LOG_EXPIRED, sentence="")
    assert has_its_cause(play.world, "books", 1, expired)
    assert not has_its_cause(play.world, "books", 2, expired)


@pytest.mark.parametrize("kept", ["all", "no item of the legs", "no item of the row", "no doubt", "no row came again"])
def test_a_torn_transaction_is_told_where_a_run_leaves_it_undecided_beside_a_row_that_may_have_been_written_anew(
    kept: str,
) -> None:
    """And by nothing less: its legs and a row of the absent one are undecidable, a run says so, after rows had gone."""
    play = Play(
        Schedule(
            Config(direction="ledger_to_topic", legs=2),
            tuple(
                steps_of(
                    *("window", ("trade", 1, 10), "window", ("half_trade", 2, 6), ("archive", 1, 0)),
                    *(("retain_all", 4, 5), "window", ("archive", 4, 2), "window", ("wait", 1, 2)),
                )
            ),
        )
    )
    assert play.all() == []
    oracle, contract = play.oracle, play.world.contract
    dropped = {"no item of the legs": ItemSide.LEGS, "no item of the row": ItemSide.LEDGER}.get(kept)
    unsaid = {"no doubt": Doubt.PARTNER_NOT_SETTLED, "no row came again": Doubt.LEDGER_REWRITTEN}.get(kept)
    for run in play.world.store.of(contract.name).verdicts.values():
        run.result = replace(run.result, items=tuple(one for one in run.result.items if one.side is not dropped))
        run.doubts -= {unsaid}
    doubted = oracle.doubted[contract.name]
    oracle.doubted[contract.name] = [(at, one) for at, one in doubted if one is not unsaid]
    assert (list(oracle._torn_and_not_told(contract)) == []) is (kept == "all")


CLOSED_UNREAD = (
    *(("cluster_down", 0, 0, 26), "cluster_down", ("trade", 2, 7), ("cluster_down", 0, 0, 27), "cluster_down"),
    *(("cluster_down", 0, 0, 24), "window", ("close_cut", 3, 11), "cluster_down", "window"),
)


def test_an_oracle_lets_a_row_be_missing_for_an_event_that_was_closed_away_where_it_has_no_event_of_its_own() -> None:
    """The one key's newest row came behind its event that a person had closed away, the other's with an event."""
    config = Config(
        direction="topic_to_topic", slice_by="topic", partitions=2, producer_mode="plain", carrier_mode="at_least"
    )
    twice, expired = (("trade", 5, 6), ("both_again", 3, 1), "window"), (("retain_all", 4, 3), "window")
    alone = played(config, *twice, *CLOSED_UNREAD, ("first_again", 1, 3), "window", *expired)
    (found,) = alone.world.store.of("books").verdicts[4].result.breaks
    assert (str(found.break_class), found.match_key) == ("missing_in_topic_never_produced", "ev-1-payout")
    assert alone.oracle.violations == []

    other = played(config, "window", ("trade", 5, 6), *CLOSED_UNREAD, ("both_again", 0, 3), "window", *expired)
    (key,) = {one.money.match_key for one in other.world.truth.events if one.money.match_key != "ev-1-payout"}
    run = other.world.store.of("books").verdicts[4].result
    other.oracle.judged(other.world.contract, replace(run, breaks=(replace(found, match_key=key),)))
    assert {one.clause for one in other.oracle.violations} == {"nothing is reported that is not so"}


WRONG_MONEY_OF_WHAT_STANDS_WHERE_OTHERS_STOOD = {
    Doubt.LOG_REWRITTEN: (
        Config(producer_mode="transactional", carrier_mode="at_most", slice_by="xmin", partitions=2, posts="column"),
        (
            *(("half_trade", 0, 11), "window", ("truncate", 1, 0, 8), "window", ("pay", 2, 7), "window"),
            *(("commit_first", 5, 3), ("carry_wrong", 1, 1)),
        ),
    ),
    Doubt.PARTNER_NOT_SETTLED: (
        Config(producer_mode="transactional", carrier_mode="exactly", slice_by="jdbc", partitions=2, legs=2),
        (
            *(("trade", 0, 4), ("cluster_down", 0, 0, 16), "cluster_down", "window", ("rewrite_tail", 4, 5), "window"),
            *(("half_trade", 1, 1), ("trade", 1, 6), ("cluster_down", 0, 0, 36), "window", ("close_cut", 2, 6)),
            *(("rewrite_tail", 4, 2), ("carry_wrong", 1, 3), ("trade", 5, 2), ("carry_wrong", 0, 11)),
        ),
    ),
}


@pytest.mark.parametrize("said", WRONG_MONEY_OF_WHAT_STANDS_WHERE_OTHERS_STOOD, ids=["cut back", "closed unread"])
def test_wrong_money_of_an_event_that_stands_where_others_had_stood_may_be_left_untold_where_a_run_says_why(
    said: Doubt,
) -> None:
    """The event became visible, or was written, below all that a later run reads. Without those words it is a loss."""
    config, steps = WRONG_MONEY_OF_WHAT_STANDS_WHERE_OTHERS_STOOD[said]
    play = Play(Schedule(config._replace(direction="topic_to_ledger", key_is_unique=False), tuple(steps_of(*steps))))
    assert play.all() == []
    play.oracle.doubted["books"] = [(at, one) for at, one in play.oracle.doubted["books"] if one is not said]
    (untold,) = play.oracle._wrong_and_not_told(play.world.contract)
    assert "amount, and nobody said so" in untold


def published_again(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Of an event that came where a log was cut back, and expired unseen, by an executor that does not ask for that."""
    for asks in (draw_plan, prove_repairs):
        monkeypatch.setattr(asks, "last_cuts_with_offsets_unread", lambda *_, **__: OffsetsUnread())
    return played(
        Config(direction="ledger_to_topic", slice_by="written_xid", carrier_mode="at_least"),
        *(("trade", 0, 4), ("truncate", 0, 5, 27), "window", ("trade", 2, 4), ("retain_all", 0, 3)),
        *("window", "window", ("plan_and_act", 0, 5)),
    )


def test_what_is_published_again_is_told_though_its_first_event_had_gone_unseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = published_again(monkeypatch)
    play.oracle.violations.clear()
    play.oracle.over(play.product)
    play.oracle.repaired([*play.people.made_worse, MadeWorse("ev-9", "ev-9 lay 0 apart, and lies 9 apart")])
    found = [one for one in play.oracle.violations if one.clause in ("no effect twice", "no repair makes it worse")]
    assert [known_as(one) for one in found] == [None] * 3


@pytest.mark.parametrize("runs", [1, 2])
def test_by_xmin_what_was_published_again_is_known_only_where_its_row_moved_in_two_runs(
    runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = published_again(monkeypatch)
    world = play.world
    world.config = world.config._replace(slice_by="xmin")
    world.truth.losses = [one for one in world.truth.losses if one[1] != "truncated"]
    books = world.store.of("books")
    (row,) = world.truth.rows_of("ev-2-payout")
    row.touched = [books.cuts[n].cut.now_utc for n in range(1, 1 + runs)]
    play.oracle.violations.clear()
    play.oracle.repaired(play.people.made_worse)
    assert [known_as(one) is not None for one in play.oracle.violations] == [runs == 2]
