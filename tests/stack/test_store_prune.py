"""What is old, closed and needed by nobody is deleted; everything else stays, and says the same as before.

Each rule has a row that goes and a twin, one fact away, that stays.

One file, since all read the same few books.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, text, update
from sqlalchemy.exc import DatabaseError

from tallystick.alerting.alert import AlertAction
from tallystick.compensation.plan import action_id_of
from tallystick.contract.contract import Contract
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState, OpenItem, WriteOff, legs_item_id
from tallystick.model.stored_run import ExpectationsOutcome
from tallystick.model.verdict import Verdict
from tallystick.pipeline.run_history import read_history
from tallystick.store.alerts.alert_store import firing_alerts, pending_alerts
from tallystick.store.breaks.break_store import BreakNotFound, find_break
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.plans.claim_store import claim_actions
from tallystick.store.plans.plan_store import executed_actions, open_actions, read_audit, save_plan
from tallystick.store.retention.prune_store import (
    PRUNED,
    PRUNING,
    Pruned,
    PruneRefused,
    contracts_to_prune,
    prune,
    require_owner,
    what_would_go,
)
from tallystick.store.runs.cut_store import claim_attempt
from tallystick.store.runs.expectations_store import newest_outcome, store_outcome
from tallystick.store.runs.loss_store import transactions_judged_before
from tallystick.store.runs.open_item_store import judged_items_as_of, left_rows_as_of, open_items_as_of
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tallystick.store.runs.prune_mark import RunPruned, read_mark
from tallystick.store.runs.run_store import commit_run, list_runs, read_run, read_run_head
from tallystick.store.runs.sample_store import append_sample, read_samples
from tallystick.store.schema import served_revision
from tallystick.store.views.metric_store import read_figures
from tallystick.store.views.overview_store import read_overview, stakes_of_run
from tallystick.store.views.trend_store import read_trend
from tests import stored_books

from .aged_books import ADA, alert, date_back, deliver_all, sample
from .conftest import NOON, Books

KEPT_FROM = 5
OLDER_THAN = NOON + timedelta(hours=KEPT_FROM)
"""The window of cut n ends at NOON and n hours, so cut 5 is the first that is not older."""


def prune_all(owned: Engine, contract_name: str = "payouts", *, older_than_utc: datetime = OLDER_THAN) -> Pruned:
    return prune(owned, contract_name, older_than_utc=older_than_utc, terminal=ADA, on_batch=lambda *_: None)


def judge_more(store: Engine, books: Books, *, first: int, last: int = 7) -> None:
    """Commit clean cuts up to `last`."""
    for n in range(first, last + 1):
        books.commit(store, books.result(n))


def life(books: Books, key: str, state: ItemState, *, pairable: bool = True, item_id: str = "") -> tuple[Any, Any]:
    """The item of a break as cut 1 found it, and as cut 2 left it."""
    found = books.missing(key)
    broken = books.item(found, n=1)
    then = books.item(found, n=2, state=state, pairable=pairable)
    if item_id:
        broken, then = replace(broken, item_id=item_id), replace(then, item_id=item_id)
    return broken, then


def ids_left(store: Engine, table: str, column: str) -> set[str]:
    with store.connect() as connection:
        return set(connection.scalars(text(f"select distinct {column}::text from tallystick.{table}")))


# --- items and breaks


def test_an_ended_item_goes_with_its_break_and_one_that_may_matter_stays(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    lives = {
        "cleared": life(books, "cleared", ItemState.CLEARED),
        "gone-for-good": _of_no_transaction(life(books, "gone-for-good", ItemState.UNDECIDABLE, pairable=False)),
        "undecided": life(books, "undecided", ItemState.UNDECIDABLE, pairable=False),
        "broken": life(books, "broken", ItemState.BROKEN, pairable=False),
        "carried": life(books, "carried", ItemState.UNDECIDABLE),
        "given-up": life(books, "given-up", ItemState.WRITTEN_OFF, pairable=False),
        "legs": life(books, "legs", ItemState.CLEARED, item_id=legs_item_id("transaction-legs")),
    }
    stay = {"undecided", "broken", "carried", "given-up", "legs"}
    books.commit(store, books.result(0))
    found = tuple(books.missing(key) for key in lives)
    books.commit(store, books.result(1, breaks=found, items=tuple(before for before, _ in lives.values())))
    books.commit(store, books.result(2, items=tuple(after for _, after in lives.values())))
    judge_more(store, books, first=3)
    date_back(owned_store)
    pruned = prune_all(owned_store)
    assert (pruned.first_cut_n, pruned.kept_from_cut_n) == (0, KEPT_FROM)
    assert (pruned.gone["items"], pruned.gone["breaks"]) == (2, 2)
    assert pruned.stays == {"standing": 2, "person": 1, "leg": 2}
    assert ids_left(store, "item_break", "match_key") == stay
    assert ids_left(store, "open_item", "match_key") == stay
    assert ids_left(store, "item_life", "item_id") == {lives[key][0].item_id for key in stay}
    undecided = lives["undecided"][1]
    assert left_rows_as_of(store, "payouts", 8, [undecided.transaction_key]) == (undecided,)


def _of_no_transaction(lived: tuple[OpenItem, OpenItem]) -> tuple[OpenItem, OpenItem]:
    before, after = lived
    return replace(before, transaction_key=""), replace(after, transaction_key="")


def test_an_item_that_a_kept_run_ended_stays_with_all_its_rows(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    late, early = books.missing("late"), books.missing("early")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, breaks=(late, early), items=(books.item(late, n=1), books.item(early, n=1))))
    for n in range(2, 8):
        ended = {KEPT_FROM - 1: early, KEPT_FROM: late}.get(n)
        items = (books.item(ended, n=n, state=ItemState.CLEARED),) if ended else ()
        books.commit(store, books.result(n, items=items))
    date_back(owned_store)
    kept = read_run(store, "payouts", KEPT_FROM)
    assert prune_all(owned_store).gone["items"] == 1
    assert ids_left(store, "open_item", "match_key") == {"late"}
    assert read_run(store, "payouts", KEPT_FROM) == kept


def test_a_break_that_a_repair_names_stays_with_its_items(store: Engine, owned_store: Engine) -> None:
    contract = stored_books.payouts()
    stored_books.fill(store, contract)
    date_back(owned_store)
    end = stored_books.LAST_HOUR - timedelta(minutes=30)
    before = executed_actions(store, contract.name), open_actions(store, contract.name)
    prune_all(owned_store, contract.name, older_than_utc=end)
    repaired = stored_books.missing(contract, "pay-2", 99)
    assert find_break(store, str(repaired.break_id)).life
    assert (executed_actions(store, contract.name), open_actions(store, contract.name)) == before
    assert str(action_id_of(contract.name, repaired.break_id)) in ids_left(store, "compensation_action", "action_id")


def test_what_a_person_wrote_off_is_known_when_its_row_is_read_again(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    found = books.missing("given-up")
    item = books.item(found, n=1, pairable=False)
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, breaks=(found,), items=(item,)))
    write_off_break(store, "payouts", found.break_id.hex, WriteOff(by="Ada", reason="by hand", at_utc=NOON))
    judge_more(store, books, first=2)
    date_back(owned_store)
    before = judged_items_as_of(store, "payouts", 7, [item.item_id])
    assert [one.state for one in before] == [ItemState.WRITTEN_OFF]
    prune_all(owned_store)
    assert judged_items_as_of(store, "payouts", 7, [item.item_id]) == before


def test_legs_that_were_judged_are_known_to_later_cuts(store: Engine, owned_store: Engine, books: Books) -> None:
    before, after = life(books, "legs", ItemState.CLEARED, item_id=legs_item_id("transaction-legs"))
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, breaks=(books.missing("legs"),), items=(before,)))
    books.commit(store, books.result(2, items=(after,)))
    judge_more(store, books, first=3)
    date_back(owned_store)
    prune_all(owned_store)
    assert transactions_judged_before(store, "payouts", 7, ["transaction-legs"]) == {"transaction-legs"}


# --- which runs


def test_a_young_verdict_of_an_old_window_keeps_its_run_and_all_after_it(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    judge_more(store, books, first=0)
    date_back(owned_store)
    with owned_store.begin() as connection:
        connection.execute(text("alter table tallystick.verdict disable trigger append_only"))
        connection.execute(text("update tallystick.verdict set recorded_at = now() where cut_n = 3"))
        connection.execute(text("alter table tallystick.verdict enable trigger append_only"))
    assert prune_all(owned_store).kept_from_cut_n == 3


def test_the_newest_run_stays_however_old_and_so_does_an_open_cut(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    long_after = NOON + timedelta(days=900)
    books.save(store, books.cut(0))
    assert prune_all(owned_store, older_than_utc=long_after).kept_from_cut_n == 0
    commit_run(store, books.result(0), attempt=claim_attempt(store, "payouts", 0), alerts=())
    judge_more(store, books, first=1, last=3)
    books.save(store, books.cut(4))
    date_back(owned_store)
    assert prune_all(owned_store, older_than_utc=long_after).kept_from_cut_n == 3
    assert read_run(store, "payouts", 3) is not None


@pytest.mark.parametrize("state", ["executing", "waiting", "done", "refused"])
def test_a_plan_that_may_still_act_keeps_its_run(store: Engine, owned_store: Engine, books: Books, state: str) -> None:
    found = books.missing("a")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, breaks=(found,), items=(books.item(found, n=1),)))
    books.commit(store, books.result(2))
    plan = stored_books.plan_of(books.contract, 2, found)
    save_plan(store, plan, requested_by="Ada")
    claim_actions(store, plan, plan.items, executor="e", outcome={}, allow=lambda actions, spent: None)
    judge_more(store, books, first=3)
    date_back(owned_store)
    with store.begin() as connection:
        connection.execute(text("update tallystick.compensation_action set state = :state"), {"state": state})
    kept_from = 2 if state in ("executing", "waiting") else KEPT_FROM
    assert prune_all(owned_store).kept_from_cut_n == kept_from


@pytest.mark.parametrize("is_old", [True, False])
def test_a_plan_of_today_keeps_its_run(store: Engine, owned_store: Engine, books: Books, is_old: bool) -> None:
    found = books.missing("a")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, breaks=(found,), items=(books.item(found, n=1),)))
    judge_more(store, books, first=2)
    save_plan(store, stored_books.plan_of(books.contract, 1, found), requested_by="Ada")
    date_back(owned_store, but_plans=not is_old)
    assert prune_all(owned_store).kept_from_cut_n == (KEPT_FROM if is_old else 1)


# --- alerts, samples, expectations


def test_an_incident_that_is_over_goes_and_the_newest_of_a_class_stays(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    firing = BreakClass.AMOUNT_MISMATCH
    told = {
        1: (alert(1, AlertAction.TRIGGER), alert(1, AlertAction.TRIGGER, name=firing)),
        2: (alert(2, AlertAction.RESOLVE),),
        3: (alert(3, AlertAction.TRIGGER),),
        4: (alert(4, AlertAction.RESOLVE),),
    }
    for n in range(8):
        books.commit(store, books.result(n), told.get(n, ()))
    deliver_all(store, fail_first=True)
    date_back(owned_store)
    before = firing_alerts(store, "payouts"), read_figures(store)
    assert before[1][0].sinks[0].failures == 5
    assert prune_all(owned_store).gone["alerts"] == 2
    assert (firing_alerts(store, "payouts"), read_figures(store)) == before
    assert ids_left(store, "alert", "cut_n") == {"1", "3", "4"}
    assert prune_all(owned_store).gone["alerts"] == 0


@pytest.mark.parametrize("delivered", [True, False])
def test_an_alert_that_a_sink_has_not_got_stays_and_so_does_all_after_it(
    store: Engine, owned_store: Engine, books: Books, delivered: bool
) -> None:
    told = {1: AlertAction.TRIGGER, 2: AlertAction.RESOLVE, 3: AlertAction.TRIGGER}
    for n in range(8):
        books.commit(store, books.result(n), (alert(n, told[n]),) if n in told else ())
    if delivered:
        deliver_all(store)
    date_back(owned_store)
    before = pending_alerts(store, "payouts")
    assert len(before) == (0 if delivered else 3)
    assert prune_all(owned_store).gone["alerts"] == (2 if delivered else 0)
    assert pending_alerts(store, "payouts") == before


@pytest.mark.parametrize("has_open_item", [True, False])
def test_samples_of_pruned_windows_go_but_none_that_an_open_item_is_due_by(
    store: Engine, owned_store: Engine, books: Books, has_open_item: bool
) -> None:
    for hours in (0, 1, 2, 3.5, 4, 4.5, 6):
        append_sample(store, "payouts", sample(hours))
    waits = replace(
        books.item(books.missing("waits"), n=1),
        state=ItemState.OPEN,
        break_id=None,
        found_as=None,
        due_utc=NOON + timedelta(hours=2),
    )
    for n in range(8):
        books.commit(store, books.result(n, items=(waits,) if has_open_item and n == 1 else ()))
    date_back(owned_store)
    assert prune_all(owned_store).gone["samples"] == (2 if has_open_item else 4)
    left = [one.at_utc for one in read_samples(store, "payouts", since_utc=NOON)]
    assert left[0] == NOON + timedelta(hours=2 if has_open_item else 4)


def test_the_newest_outcome_of_expectations_stays(
    store: Engine, owned_store: Engine, books: Books, new_contract: Callable[..., Contract]
) -> None:
    contract = new_contract(expectations="shop.suites")
    judge_more(store, books, first=0)
    for n in (1, 2):
        run = read_run(store, "payouts", n)
        assert run is not None
        store_outcome(store, contract, run, ExpectationsOutcome(module="shop.suites", met=3))
    date_back(owned_store)
    assert prune_all(owned_store).gone["outcomes of expectations"] == 1
    with store.connect() as connection:
        assert newest_outcome(connection, "payouts", 1) is None
        assert newest_outcome(connection, "payouts", 2) is not None


# --- what the rest says afterwards


def told_of_the_rest(store: Engine, contract: Contract, kept: range) -> dict[str, Any]:
    """All that later runs, reports, pages and metrics ask of runs that are kept, and sums of those that are not."""
    name, newest = contract.name, kept[-1]
    runs = {n: read_run(store, name, n) for n in kept}
    last = runs[newest]
    assert last is not None
    after = replace(last.cut, n=newest + 1)
    return {
        "runs": runs,
        "carried": {n: open_items_as_of(store, name, n) for n in (*kept, newest + 1)},
        "history": read_history(store, contract, after, open_items_as_of(store, name, newest + 1)),
        "outstanding": outstanding_breaks(store, name),
        "listed": list_runs(store, name, limit=1000),
        "stakes": [stakes_of_run(store, name, n) for n in range(newest + 1)],
        "overview": read_overview(store, name, windows=100),
        "trend": read_trend(store, name, windows=100),
        "figures": read_figures(store),
        "firing": firing_alerts(store, name),
        "owed": pending_alerts(store, name),
    }


def test_whatever_reads_kept_runs_reads_the_same_as_before(store: Engine, owned_store: Engine, books: Books) -> None:
    """Each cut finds two: the next one clears the first, and the third is left to a person or stands."""
    for n in range(12):
        found = (books.missing(f"{n}-a", amount_minor=n + 1), books.missing(f"{n}-b"))
        cleared = (books.item(books.missing(f"{n - 1}-a"), n=n, state=ItemState.CLEARED),) if n else ()
        told = (alert(n, AlertAction.RESOLVE if n % 3 == 2 else AlertAction.TRIGGER),)
        items = (*(books.item(one, n=n) for one in found), *cleared)
        books.commit(store, books.result(n, verdict=Verdict.BROKEN, breaks=found, items=items), told)
        deliver_all(store, fail_first=n == 1)
    date_back(owned_store)
    would = what_would_go(store, "payouts", older_than_utc=OLDER_THAN)
    kept = range(would.kept_from_cut_n, 12)
    before = told_of_the_rest(store, books.contract, kept)
    assert (kept[0], would.gone["items"], would.gone["breaks"], would.gone["alerts"]) == (KEPT_FROM, 4, 4, 3)
    assert prune_all(owned_store) == would
    after = told_of_the_rest(store, books.contract, kept)
    assert [name for name in before if before[name] != after[name]] == []


def test_a_pruned_run_is_refused_whole_and_its_head_and_sums_stay(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    found = books.missing("a")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(found,), items=(books.item(found, n=1),)))
    books.commit(store, books.result(2, items=(books.item(found, n=2, state=ItemState.CLEARED),)))
    judge_more(store, books, first=3)
    date_back(owned_store)
    listed = list_runs(store, "payouts", limit=10)
    prune_all(owned_store)
    for n in range(KEPT_FROM):
        with pytest.raises(RunPruned, match=rf"payouts/{n}: .*pruned.*expected a run from cut {KEPT_FROM} on"):
            read_run(store, "payouts", n)
    assert read_run(store, "payouts", KEPT_FROM) is not None
    head = read_run_head(store, "payouts", 1)
    assert head is not None
    assert head.result.verdict is Verdict.BROKEN
    assert list_runs(store, "payouts", limit=10) == listed
    with pytest.raises(BreakNotFound, match="it may have been pruned"):
        find_break(store, str(found.break_id))


def test_a_run_whose_rows_go_while_it_is_read_is_refused_too(store: Engine, owned_store: Engine, books: Books) -> None:
    many(store, owned_store, books)

    def prune_first(*asked: Any) -> None:
        if "FROM tallystick.item_break" in asked[2]:
            prune_all(owned_store)

    assert read_run(store, "payouts", 1) is not None
    event.listen(store, "before_cursor_execute", prune_first)
    with pytest.raises(RunPruned, match="payouts/1"):
        read_run(store, "payouts", 1)
    assert read_run(store, "payouts", KEPT_FROM) is not None


def test_a_dry_run_counts_the_same_and_changes_nothing(store: Engine, owned_store: Engine) -> None:
    contract = stored_books.payouts()
    stored_books.fill(store, contract)
    date_back(owned_store)
    end = stored_books.LAST_HOUR - timedelta(minutes=30)
    would = what_would_go(store, contract.name, older_than_utc=end)
    assert read_mark(store, contract.name) is None
    assert not would.is_empty
    assert would == what_would_go(store, contract.name, older_than_utc=end)
    assert prune_all(owned_store, contract.name, older_than_utc=end) == would
    assert prune_all(owned_store, contract.name, older_than_utc=end).is_empty


def test_another_contract_is_not_touched(
    store: Engine, owned_store: Engine, new_contract: Callable[..., Contract]
) -> None:
    ours, theirs = (Books(new_contract(contract=name)) for name in ("payouts", "refunds"))
    for books in (ours, theirs):
        found = books.missing("a")
        books.commit(store, books.result(0, breaks=(found,), items=(books.item(found, n=0),)))
        books.commit(store, books.result(1, items=(books.item(found, n=1, state=ItemState.CLEARED),)))
        judge_more(store, books, first=2)
    date_back(owned_store)
    assert contracts_to_prune(store, None) == ("payouts", "refunds")
    assert contracts_to_prune(store, "payouts") == ("payouts",)
    with pytest.raises(PruneRefused, match=r"nobody: the store has no books of it; expected one of: payouts, refunds"):
        contracts_to_prune(store, "nobody")
    assert prune_all(owned_store).gone["breaks"] == 1
    assert ids_left(store, "item_break", "contract") == {"refunds"}
    assert read_mark(store, "refunds") is None


# --- safety


def many(store: Engine, owned: Engine, books: Books) -> None:
    """Six items that cut 1 found and cut 2 cleared."""
    found = tuple(books.missing(f"k{n}") for n in range(6))
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, breaks=found, items=tuple(books.item(one, n=1) for one in found)))
    cleared = tuple(books.item(one, n=2, state=ItemState.CLEARED) for one in found)
    books.commit(store, books.result(2, items=cleared))
    judge_more(store, books, first=3)
    date_back(owned)


def test_a_pruning_that_is_stopped_is_gone_on_with(store: Engine, owned_store: Engine, books: Books) -> None:
    many(store, owned_store, books)
    seen: list[tuple[str, int]] = []

    def stop(contract: str, kind: str, gone: int) -> None:
        seen.append((kind, gone))
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(owned_store, "payouts", older_than_utc=OLDER_THAN, terminal=ADA, on_batch=stop, batch=2)
    assert seen == [("items", 2), ("items", 4)]
    assert len(ids_left(store, "open_item", "item_id")) == 2
    with pytest.raises(RunPruned):  # the mark stands before the first row goes
        read_run(store, "payouts", 1)
    rest = prune_all(owned_store)
    assert (rest.gone["items"], rest.gone["breaks"]) == (2, 6)
    assert ids_left(store, "item_break", "break_id") == set()
    assert [line.event for line in read_audit(store, "payouts")] == [PRUNING, PRUNED]


def test_a_verdict_is_stored_between_two_batches(store: Engine, owned_store: Engine, books: Books) -> None:
    many(store, owned_store, books)
    n = iter(range(8, 100))

    def judge_one(contract: str, kind: str, gone: int) -> None:
        again = books.missing(f"new-{next(fresh)}")
        cut = next(n)
        books.commit(store, books.result(cut, breaks=(again,), items=(books.item(again, n=cut),)))

    fresh = iter(range(100))
    prune(owned_store, "payouts", older_than_utc=OLDER_THAN, terminal=ADA, on_batch=judge_one, batch=2)
    assert len(outstanding_breaks(store, "payouts")) == 6
    assert len(ids_left(store, "item_break", "break_id")) == 6


def test_the_trail_says_who_pruned_what(store: Engine, owned_store: Engine, books: Books) -> None:
    many(store, owned_store, books)
    pruned = prune_all(owned_store)
    begun, through = read_audit(store, "payouts")
    assert (begun.event, through.event, begun.actor) == (PRUNING, PRUNED, "ada")
    assert through.detail["gone"] == pruned.gone
    assert through.detail["kept_from_cut_n"] == KEPT_FROM
    assert through.detail["terminal"] == {"os_user": "ada", "host": "ops-1"}
    prune_all(owned_store)
    assert len(read_audit(store, "payouts")) == 2


def test_nobody_but_the_owner_deletes_and_the_owner_only_by_pruning(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    many(store, owned_store, books)
    require_owner(owned_store)
    with pytest.raises(PruneRefused, match="role tallystick may delete nothing from the store; expected the role that"):
        require_owner(store)
    on = "set local tallystick.pruning = 'on'"
    prunable = ("item_break", "open_item", "alert", "alert_delivery", "expectations_outcome")
    never = ("verdict", "compensation_plan", "acting_switch", "audit")
    for table in (*prunable, *never):
        assert "permission denied" in answer_to(store, on, f"delete from tallystick.{table}")
        assert "append-only: DELETE refused" in answer_to(owned_store, f"delete from tallystick.{table}")
        assert "append-only: TRUNCATE refused" in answer_to(owned_store, on, f"truncate tallystick.{table} cascade")
    for table in prunable:
        assert answer_to(owned_store, on, f"delete from tallystick.{table}") == "done"
        column = {"alert_delivery": "detail"}.get(table, "contract")
        assert "append-only: UPDATE" in answer_to(owned_store, on, f"update tallystick.{table} set {column} = ''")
    for table in never:
        assert "append-only: DELETE refused" in answer_to(owned_store, on, f"delete from tallystick.{table}")


def answer_to(engine: Engine, *statements: str) -> str:
    """What the server said to the last; all is taken back."""
    with engine.connect() as connection:
        try:
            for statement in statements:
                connection.exec_driver_sql(statement)
        except DatabaseError as error:
            return str(error.orig)
        finally:
            connection.rollback()
    return "done"


def test_the_first_pruning_ends_that_an_older_version_is_served(
    store: Engine, owned_store: Engine, books: Books
) -> None:
    judge_more(store, books, first=0)
    date_back(owned_store)

    def oldest() -> str:
        with store.connect() as connection:
            return str(connection.scalar(select(served_revision.c.oldest)))

    what_would_go(store, "payouts", older_than_utc=OLDER_THAN)
    prune_all(owned_store, older_than_utc=NOON - timedelta(days=1))
    assert oldest() == "0020"
    prune_all(owned_store)
    assert oldest() == "0021"
    with owned_store.begin() as connection:
        connection.execute(update(served_revision).values(oldest="0022"))
    prune_all(owned_store, older_than_utc=OLDER_THAN + timedelta(hours=1))
    assert oldest() == "0022"
