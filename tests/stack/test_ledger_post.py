"""What the ledger lacks is posted once, in one database transaction with its action's id, whatever was lost before.

One file, since each test posts to the same kind of table and shares its world.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from lab.servers.process import wait_until
from tallystick.cli.app import app
from tallystick.compensation.kill_switch import ActingStopped, SwitchSetting
from tallystick.compensation.plan import Plan, PlanRefused, RepairKind
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.compensation.write_off import BreakWrittenOff, WriteOffRefused, write_off_of
from tallystick.executor import post_repairs, prove_repairs
from tallystick.executor.effects import post_to_ledger
from tallystick.executor.effects.action_log import LOOK, ActionResult
from tallystick.executor.effects.post_to_ledger import post_once
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.execute_plan import Execution
from tallystick.ledger.protocol import LedgerRefused
from tallystick.matching.closed_cut import closing_of
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import ExitCode, Verdict
from tallystick.store.breaks.break_store import find_break
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.plans.claim_store import NOT_OUTSTANDING
from tallystick.store.plans.plan_store import read_audit
from tallystick.store.plans.reopen_store import reopen_action
from tallystick.store.plans.switch_store import set_switch
from tallystick.store.runs.close_store import close_cut
from tallystick.store.runs.cut_store import claim_attempt
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tests.stack.live_books import Event, LiveBooks, payment

from . import repairs
from .live import NewBooks
from .repairs import action_states, effects, executed, planned, posted, posting_books
from .store_owner import as_owner

LOST = payment("lost", 700)
ALSO_LOST = payment("also lost", 300)


@pytest.fixture
def books(new_books: NewBooks, spark: object) -> Iterator[LiveBooks]:
    """Books begun, whose contract posts two rows an event; the owner has made the table of actions."""
    with new_books(direction="topic_to_ledger") as opened:
        books = posting_books(opened, classes=["missing_in_ledger"])
        books.take_cut()
        yield books


def missing(books: LiveBooks, *lost: Event) -> tuple[StoredRun, Plan]:
    """A run that found these events without their rows, and its plan."""
    books.produce(*lost)
    books.both(payment("w1"))
    run = books.next_run()
    plan = planned(books, run.cut.n)
    assert [item.kind for item in plan.items] == [RepairKind.POST] * len(lost)
    return run, plan


def test_what_was_posted_is_not_given_up_before_a_run_has_read_the_ledger_as_far_as_it_was_written(
    books: LiveBooks,
) -> None:
    """The cut after the repair ended before it: a transaction of before was still open."""
    _, plan = missing(books, LOST)
    off = write_off_of(by="eve", reason="paid by hand", at_utc=datetime(2026, 3, 1, 12, tzinfo=UTC))

    def give_up() -> BreakWrittenOff:
        (found,) = outstanding_breaks(books.store, books.contract.name)
        return write_off_break(books.store, books.contract.name, str(found.item_break.break_id), off)

    unread = "repaired it at .*, and no cut made since has read all of what that changes"
    with books.connect() as holder:
        holder.autocommit = False
        holder.execute("SELECT pg_current_xact_id()")
        assert posted(books, plan).count(ActionResult.PUBLISHED) == 1
        with pytest.raises(WriteOffRefused, match=unread):
            give_up()
        books.both(payment("w2"))
        held = books.next_run(settled=False)
        assert held.cut.ledger_slice.held
        with pytest.raises(WriteOffRefused, match=unread):
            give_up()
        holder.rollback()
    archive(books, LOST)
    books.both(payment("w3"))
    assert not books.next_run().cut.ledger_slice.held
    assert give_up().outstanding == 0


def test_what_was_posted_is_given_up_where_one_transaction_or_another_is_open_across_every_cut(
    books: LiveBooks,
) -> None:
    """No slice ever reaches its mark, and each one passes that of the cut before."""
    _, plan = missing(books, LOST)
    off = write_off_of(by="eve", reason="paid by hand", at_utc=datetime(2026, 3, 1, 12, tzinfo=UTC))
    (found,) = outstanding_breaks(books.store, books.contract.name)
    break_id = str(found.item_break.break_id)
    with ExitStack() as opened:

        def open_one() -> psycopg.Connection[Any]:
            holder = opened.enter_context(books.connect())
            holder.autocommit = False
            holder.execute("SELECT pg_current_xact_id()")
            return holder

        holder = open_one()
        assert posted(books, plan).count(ActionResult.PUBLISHED) == 1
        archive(books, LOST)
        for n in (2, 3):
            following = open_one()
            holder.rollback()
            holder = following
            books.both(payment(f"w{n}"))
            assert books.next_run(settled=False).cut.ledger_slice.held
            if n == 2:
                with pytest.raises(WriteOffRefused, match="no cut made since has read all of what that changes"):
                    write_off_break(books.store, books.contract.name, break_id, off)
        assert write_off_break(books.store, books.contract.name, break_id, off).outstanding == 0
        holder.rollback()


def rows_of(books: LiveBooks) -> list[tuple[str, int]]:
    """Side and amount of every row of the event, by plain SQL."""
    asked = f"SELECT side, amount_minor FROM {books.table} WHERE event_id = %s ORDER BY side"
    return books.ledger.execute(asked, (LOST.event_id,)).fetchall()


def test_a_missing_row_is_posted_once_also_when_its_outcome_was_lost_and_the_next_run_is_clean(
    books: LiveBooks,
) -> None:
    _, plan = missing(books, LOST)
    assert effects(books, plan) == [RepairEffect.NOT_CLEARED]
    with pytest.raises(PlanRefused, match=r"expected the connection of compensation\.post, got none"):
        executed(books, plan)
    assert posted(books, plan).count(ActionResult.PUBLISHED) == 1
    with as_owner(books.stack, books.store).begin() as connection:
        forget = text("delete from tallystick.compensation_action where plan_id = :plan")
        connection.execute(forget, {"plan": plan.plan_id})
    books.ledger.execute(f"DELETE FROM {books.table} WHERE event_id = %s AND side = 'debit'", (LOST.event_id,))
    with pytest.raises(PlanRefused, match="ask for a new plan"):
        posted(books, plan)
    with books.store.begin() as connection:
        begun = text(
            "insert into tallystick.compensation_action (action_id, break_id, plan_id, state) "
            "values (:action, :break, :plan, 'executing')"
        )
        item = plan.items[0]
        connection.execute(begun, {"action": item.action_id, "break": item.break_id, "plan": plan.plan_id})
    end = books.snapshot()[LOST.partition].high_watermark
    books.delete_records("payment", LOST.partition, before=end)
    assert posted(books, plan).count(ActionResult.ALREADY_PUBLISHED) == 1
    assert rows_of(books) == [("credit", 700)]
    assert effects(books, plan) == [RepairEffect.CLEARED]
    books.both(payment("w2"))
    clean = books.next_run()
    assert (clean.result.verdict, clean.result.breaks) == (Verdict.MATCHED, ())
    (told,) = (one for one in clean.result.notices if one.notice is Notice.LATE_PARTNER)
    assert set(told.details) == {"late_seconds_max"}  # this ledger has no column by which a row is known as ours
    (item_after,) = (one for one in clean.result.items if one.match_key == LOST.event_id)
    assert item_after.state is ItemState.CLEARED
    assert outstanding_breaks(books.store, books.contract.name) == ()

    books.post(LOST)  # its consumer, late
    assert effects(books, plan) == [RepairEffect.CHANGED]
    books.both(payment("w3"))
    (late,) = books.next_run().result.breaks
    assert (late.break_class, late.match_key) == (BreakClass.DUPLICATE_IN_LEDGER, LOST.event_id)
    (repair,) = find_break(books.store, str(late.break_id)).repairs
    assert (repair.action_id, repair.break_class) == (plan.items[0].action_id, BreakClass.MISSING_IN_LEDGER)
    assert find_break(books.store, str(plan.items[0].break_id)).repairs == ()


def test_a_condition_with_a_percent_sign_holds_up_no_repair(new_books: NewBooks, spark: object) -> None:
    with new_books(direction="topic_to_ledger", ledger={"where": "side LIKE 'cr%' AND leg <> '100%s'"}) as opened:
        books = posting_books(opened, classes=["missing_in_ledger"])
        books.take_cut()
        _, plan = missing(books, LOST)
        assert posted(books, plan).count(ActionResult.PUBLISHED) == 1
        assert effects(books, plan) == [RepairEffect.CLEARED]
        assert rows_of(books) == [("credit", 700), ("debit", 700)]


def test_rows_that_came_meanwhile_or_that_the_contract_would_not_read_are_not_doubled(books: LiveBooks) -> None:
    _, plan = missing(books, LOST)
    books.ledger.execute(f"ALTER TABLE {books.table} ADD CONSTRAINT no_debit CHECK (side <> 'debit') NOT VALID")
    (refused,) = posted(books, plan).outcomes
    assert (refused.fate, refused.reason) == (
        ActionResult.REFUSED,
        "the ledger refused its rows: CheckViolation of no_debit",
    )
    assert rows_of(books) == []
    books.ledger.execute(f"ALTER TABLE {books.table} DROP CONSTRAINT no_debit")
    books.ledger.execute(f"ALTER TABLE {books.contract.name}.posted_action RENAME TO kept")
    with pytest.raises(LedgerRefused, match="action_id uuid PRIMARY KEY"):
        posted(books, plan)
    assert rows_of(books) == []
    books.ledger.execute(f"ALTER TABLE {books.contract.name}.kept RENAME TO posted_action")
    (stopped,) = action_states(books, plan)
    assert (stopped[0], "action_id uuid PRIMARY KEY" in stopped[1]) == ("refused", True)

    def its_consumer(step: str, figures: object) -> None:
        if step == ExecutorStep.PROVED:
            books.post(LOST)

    (refused,) = posted(books, plan, on_progress=its_consumer).outcomes
    assert (refused.fate, refused.reason) == (ActionResult.REFUSED, "the ledger has a row of it")
    assert rows_of(books) == [("credit", 700), ("debit", 700)]
    asked = f"SELECT count(*) FROM {books.contract.name}.posted_action"
    assert books.ledger.execute(asked).fetchone() == (0,)
    assert "stopped" in [entry.event for entry in read_audit(books.store, books.contract.name)]


def test_nothing_is_posted_beside_a_row_of_the_key_that_the_contract_does_not_read(books: LiveBooks) -> None:
    """Its consumer booked it elsewhere, to be moved later."""
    _, plan = missing(books, LOST)
    books.post(LOST)
    books.ledger.execute(f"UPDATE {books.table} SET side = 'suspense' WHERE side = 'credit'")
    (refused,) = posted(books, plan).outcomes
    assert refused.fate == ActionResult.REFUSED
    assert refused.reason.startswith("a row of its key stands in the table, outside of the contract's where")
    assert rows_of(books) == [("debit", 700), ("suspense", 700)]


def test_a_row_that_a_trigger_of_the_ledgers_owner_refuses_holds_up_no_other(books: LiveBooks) -> None:
    _, plan = missing(books, LOST, ALSO_LOST)
    books.ledger.execute(
        f"""
        CREATE FUNCTION {books.contract.name}.closed() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'this account is closed'; END $$;
        CREATE TRIGGER closed BEFORE INSERT ON {books.table} FOR EACH ROW
            WHEN (NEW.event_id = '{LOST.event_id}') EXECUTE FUNCTION {books.contract.name}.closed();
        """
    )
    told = {one.match_key: (one.fate, one.reason) for one in posted(books, plan).outcomes}
    assert told == {
        LOST.event_id: (ActionResult.REFUSED, f"the ledger refused its rows: RaiseException of {books.table}"),
        ALSO_LOST.event_id: (ActionResult.PUBLISHED, ""),
    }
    assert sorted(state for state, _ in action_states(books, plan)) == ["done", "refused"]


def test_a_number_is_posted_digit_by_digit_and_one_that_nobody_can_read_holds_up_no_other(
    new_books: NewBooks, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a field that is not copied it holds up nothing at all."""
    monkeypatch.setattr(repairs, "COPIED", (*repairs.COPIED, "rate"))
    endless, exponent = b"9" * 5_000, b"1e99999999999999999999"
    rates = {
        LOST: b"12345678901234567.890",
        payment("unread digits", 300): b'1,"note":%b' % endless,
        payment("unread exponent", 301): b'2,"note":[%b]' % exponent,
        payment("digits", 302): endless,
        payment("exponent", 303): exponent,
    }
    with new_books(direction="topic_to_ledger") as opened:
        books = posting_books(opened, classes=["missing_in_ledger"])
        books.ledger.execute(f"ALTER TABLE {books.table} ADD rate numeric")
        books.take_cut()
        for event, rate in rates.items():
            books.produce_raw(event.value[:-1] + b',"rate":%b}' % rate, partition=event.partition)
        books.both(payment("w1"))
        plan = planned(books, books.next_run().cut.n)
        told = {one.match_key: (one.fate, one.reason) for one in posted(books, plan).outcomes}
        why = "a number of its event has too many digits to be read, or too large an exponent"
        unread = {"digits", "exponent"}
        assert told == {
            event.event_id: (ActionResult.REFUSED, why) if event.payment in unread else (ActionResult.PUBLISHED, "")
            for event in rates
        }
        asked = f"SELECT DISTINCT event_id, rate::text FROM {books.table} WHERE rate IS NOT NULL"
        assert sorted(rate for _, rate in books.ledger.execute(asked)) == ["1", "12345678901234567.890", "2"]


@pytest.mark.parametrize("for_machines", [False, True])
def test_no_name_in_the_ledger_drives_the_terminal_of_whoever_repairs(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch, for_machines: bool
) -> None:
    """Its owner names constraints as they like, and the reason of a refusal quotes them."""
    _, plan = missing(books, LOST)
    odd = "no\x1b[31m\x9bdebit\u202e"
    books.ledger.execute(f"ALTER TABLE {books.table} ADD CONSTRAINT \"{odd}\" CHECK (side <> 'debit') NOT VALID")
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", books.store.url.render_as_string(hide_password=False))
    monkeypatch.setenv("TALLYSTICK_CONN_LEDGER_POSTER", books.stack.ledger_owner_dsn)
    asked = ["execute", str(books.contract_file), plan.plan_hash, "--by", "bob", *(["--json"] if for_machines else [])]
    done = CliRunner().invoke(app, ["compensation", *asked])
    assert done.exit_code == ExitCode.BROKEN, done.stderr
    written_out = "no\\u001b[31m\\u009bdebit\\u202e"
    assert for_machines or f"the ledger refused its rows: CheckViolation of {written_out}" in done.stdout
    assert set(done.stdout + done.stderr) & {"\x1b", "\x9b", "\u202e"} == set()


def test_a_row_of_its_action_that_no_plan_of_ours_has_written_makes_a_person_look_and_posts_nothing(
    books: LiveBooks,
) -> None:
    run, plan = missing(books, LOST, ALSO_LOST)
    forged = next(item for item in plan.items if item.match_key == LOST.event_id)
    table = f"{books.contract.name}.posted_action"
    books.ledger.execute(f"INSERT INTO {table} VALUES (%s, 'anything')", (forged.action_id,))
    for also in (ActionResult.PUBLISHED, ActionResult.ALREADY_PUBLISHED):
        done = posted(books, plan)
        assert fates(done) == {LOST: ActionResult.REFUSED, ALSO_LOST: also}
        (reason,) = (one.reason for one in done.outcomes if one.match_key == LOST.event_id)
        assert reason.startswith(f"{LOOK}: {table} has a row of action {forged.action_id} for plan hash 'anything'")
        assert rows_of(books) == []
    assert sorted(state for state, _ in action_states(books, plan)) == ["done", "waiting"]
    reopen = partial(
        reopen_action, books.store, books.contract.name, forged.action_id, by="eve", reason="it was forged"
    )
    reopen()
    (again,) = posted(books, planned(books, run.cut.n)).outcomes
    assert (again.fate, again.reason.startswith(LOOK)) == (ActionResult.REFUSED, True)
    books.ledger.execute(f"DELETE FROM {table} WHERE action_id = %s", (forged.action_id,))
    reopen()
    assert posted(books, planned(books, run.cut.n)).count(ActionResult.PUBLISHED) == 1
    assert rows_of(books) == [("credit", 700), ("debit", 700)]


def test_a_late_row_that_cleared_its_break_and_was_archived_is_not_posted_when_the_task_is_cleared(
    books: LiveBooks,
) -> None:
    _, plan = missing(books, LOST, ALSO_LOST)
    late = [LOST]

    def its_consumer(step: str, figures: object) -> None:
        if step == ExecutorStep.PROVED and late:
            books.post(late.pop())

    assert fates(posted(books, plan, on_progress=its_consumer)) == {
        LOST: ActionResult.REFUSED,
        ALSO_LOST: ActionResult.PUBLISHED,
    }
    books.both(payment("w2"))
    cleared = {one.match_key for one in books.next_run().result.items if one.state is ItemState.CLEARED}
    assert cleared == {LOST.event_id, ALSO_LOST.event_id}
    books.ledger.execute(f"DELETE FROM {books.table} WHERE event_id = %s", (LOST.event_id,))
    again = posted(books, plan)
    assert fates(again) == {LOST: ActionResult.REFUSED, ALSO_LOST: ActionResult.ALREADY_PUBLISHED}
    assert NOT_OUTSTANDING in [one.reason for one in again.outcomes]
    assert rows_of(books) == []


def close_unread(books: LiveBooks) -> int:
    """A person closes the next cut, which somebody has tried to judge."""
    name, cut = books.contract.name, books.take_cut()
    claim_attempt(books.store, name, cut.n)
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    close_cut(books.store, name, cut.n, closing_of(by="eve", reason="nobody can read it", at_utc=at))
    return cut.n


def archive(books: LiveBooks, event: Event) -> None:
    books.ledger.execute(f"DELETE FROM {books.table} WHERE event_id = %s", (event.event_id,))


def test_a_late_row_in_a_cut_that_was_closed_unread_is_not_posted_again_once_it_is_archived(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plan = missing(books, LOST, ALSO_LOST)

    def dies(*arguments: object, **named: object) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(post_repairs, "post_once", dies)
        with pytest.raises(RuntimeError, match="killed here"):
            posted(books, plan)
    assert [state for state, _ in action_states(books, plan)] == ["executing", "executing"]
    books.post(LOST)  # its consumer, late
    n = close_unread(books)
    archive(books, LOST)
    told = f"its row may have come and been archived: nobody has read all rows up to cut {n}"

    books.both(payment("w3"))
    run = books.next_run()
    assert (run.result.breaks, run.result.doubts) == ((), ())
    again = posted(books, plan)
    assert [(one.fate, one.reason.split(";")[0]) for one in again.outcomes] == [(ActionResult.REFUSED, told)] * 2
    anew = planned(books, run.cut.n)
    assert (anew.items, {one.reason.split(";")[0] for one in anew.left_out}) == ((), {told})
    assert all_rows(books) == []

    later = payment("lost after it", 500)  # a cut that has its verdict lies between the closed one and this event
    books.produce(later)
    fresh = planned(books, books.next_run().cut.n)
    assert [item.match_key for item in fresh.items] == [later.event_id]
    assert posted(books, fresh).count(ActionResult.PUBLISHED) == 1


def test_a_cut_that_is_closed_after_the_proof_keeps_a_row_from_being_posted(books: LiveBooks) -> None:
    _, plan = missing(books, LOST)
    closed: list[int] = []

    def row_comes_and_goes(step: str, figures: object) -> None:
        if step == ExecutorStep.PROVED and not closed:
            books.post(LOST)
            closed.append(close_unread(books))
            archive(books, LOST)

    (outcome,) = posted(books, plan, on_progress=row_comes_and_goes).outcomes
    told = f"its row may have come and been archived: nobody has read all rows up to cut {closed[0]}"
    assert (outcome.fate, outcome.reason.split(";")[0]) == (ActionResult.REFUSED, told)
    assert rows_of(books) == []


def fates(execution: Execution) -> dict[Event, ActionResult]:
    by_key = {one.match_key: one.fate for one in execution.outcomes}
    return {event: by_key[event.event_id] for event in (LOST, ALSO_LOST)}


def test_an_executor_that_is_stopped_in_its_transaction_keeps_the_next_one_from_posting_too(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_to_ledger, "_PATIENCE", "SET lock_timeout = '300ms'")
    _, plan = missing(books, LOST)
    table = f"{books.contract.name}.posted_action"
    with psycopg.connect(books.stack.ledger_owner_dsn) as first:
        first.execute(f"INSERT INTO {table} VALUES (%s, %s)", (plan.items[0].action_id, plan.plan_hash))
        with pytest.raises(ConnectionError, match="lock"):
            posted(books, plan)
        first.rollback()
    assert posted(books, plan).count(ActionResult.PUBLISHED) == 1
    assert rows_of(books) == [("credit", 700), ("debit", 700)]


def test_a_row_that_an_open_transaction_of_its_consumer_holds_is_waited_for_and_not_posted_beside_it(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plan = missing(books, LOST)
    monkeypatch.setattr(prove_repairs, "SETTLE_SECONDS", 0.3)
    with books.connect() as consumer, consumer.transaction():
        books.post(LOST, connection=consumer)
        (waits,) = posted(books, plan).outcomes
    assert (waits.fate, waits.reason) == (
        ActionResult.REFUSED,
        "not provable now: a database transaction that is open in the ledger may hold a row of it",
    )
    with pytest.raises(PlanRefused, match="ask for a new plan"):
        posted(books, plan)
    assert planned(books, plan.cut_n).left_out[0].reason == "the ledger has 1 rows of its key, expected none"
    assert rows_of(books) == [("credit", 700), ("debit", 700)]


def test_an_open_transaction_that_writes_elsewhere_or_only_reads_keeps_nothing_from_being_posted(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plan = missing(books, LOST)
    monkeypatch.setattr(prove_repairs, "SETTLE_SECONDS", 0.3)
    books.ledger.execute(f"CREATE TABLE {books.contract.name}.elsewhere (n int)")
    with books.connect() as other, other.transaction():
        other.execute(f"INSERT INTO {books.contract.name}.elsewhere VALUES (1)")
        other.execute(f"SELECT count(*) FROM {books.table}")
        assert posted(books, plan).count(ActionResult.PUBLISHED) == 1


@pytest.fixture(params=["read committed", "repeatable read", "serializable"])
def isolation(books: LiveBooks, request: pytest.FixtureRequest) -> Iterator[str]:
    """What transactions of the role that posts begin as."""
    books.ledger.execute(f"ALTER ROLE CURRENT_USER SET default_transaction_isolation = '{request.param}'")
    yield request.param
    books.ledger.execute("ALTER ROLE CURRENT_USER RESET default_transaction_isolation")


def test_of_two_executors_that_post_one_event_the_second_sees_the_rows_of_the_first(
    books: LiveBooks, isolation: str
) -> None:
    """Of two contracts, or of two stores, so that their actions have other ids."""
    _, plan = missing(books, LOST)
    item, event = plan.items[0], json.loads(LOST.value)
    dsn, asked = books.stack.ledger_owner_dsn, {"plan_hash": plan.plan_hash, "may_write": lambda: None}
    with books.connect() as another:
        assert another.execute("SHOW default_transaction_isolation").fetchone() == (isolation,)
    post = partial(post_once, dsn, books.contract, event=event, **asked)
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as pool:
        others: list[Any] = []

        def start_the_other(step: str, figures: object) -> None:
            if step == ExecutorStep.INSERTED:
                others.append(pool.submit(post, replace(item, action_id=uuid4())))
                wait_until(lambda: books.ledger.execute(waiting).fetchone() == (1,), what="the other one to wait")

        assert post(item, on_progress=start_the_other).refused == ""
        assert others[0].result().refused == "the ledger has a row of it"
    assert rows_of(books) == [("credit", 700), ("debit", 700)]


def test_a_row_is_copied_from_inside_the_event_by_its_paths(books: LiveBooks) -> None:
    _, plan = missing(books, LOST)
    assert books.contract.compensation is not None and books.contract.compensation.post is not None
    post = books.contract.compensation.post
    inside = post.model_copy(update={"columns": {column: f"data.{path}" for column, path in post.columns.items()}})
    rules = books.contract.compensation.model_copy(update={"post": inside})
    contract = books.contract.model_copy(update={"compensation": rules})
    asked = {"plan_hash": plan.plan_hash, "may_write": lambda: None}
    told = [
        post_once(books.stack.ledger_owner_dsn, contract, plan.items[0], event, **asked).refused
        for event in (
            json.loads(LOST.value),
            {"data": {**json.loads(LOST.value), "leg": ["payment"]}},
            {"data": json.loads(LOST.value)},
        )
    ]
    assert told == ["the event has no data.amount_minor", "data.leg of the event is no single value", ""]
    assert rows_of(books) == [("credit", 700), ("debit", 700)]


def test_a_switch_thrown_between_two_posts_keeps_the_first_and_does_no_more(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turn(*, stopped: bool) -> None:
        at = datetime(2026, 3, 1, 12, tzinfo=UTC)
        set_switch(books.store, SwitchSetting(contract=name, stopped=stopped, by="eve", because="wait", at_utc=at))

    def post_then_stop(*arguments: Any, **named: Any) -> Any:
        done = post_once(*arguments, **named)
        turn(stopped=True)
        return done

    name = books.contract.name
    _, plan = missing(books, LOST, ALSO_LOST)
    post_once = post_repairs.post_once
    monkeypatch.setattr(post_repairs, "post_once", post_then_stop)
    with pytest.raises(ActingStopped):
        posted(books, plan)
    assert len(all_rows(books)) == 2
    assert [entry.event for entry in read_audit(books.store, name, plan_id=plan.plan_id)] == [
        "planned", "approved", "executing", "published", "refused", "stopped"
    ]  # fmt: skip
    turn(stopped=False)
    done = posted(books, plan)
    assert (done.count(ActionResult.ALREADY_PUBLISHED), done.count(ActionResult.PUBLISHED)) == (1, 1)
    assert sorted(all_rows(books)) == [("credit", 300), ("credit", 700), ("debit", 300), ("debit", 700)]


def all_rows(books: LiveBooks) -> list[tuple[str, int]]:
    """The same of both lost events."""
    asked = f"SELECT side, amount_minor FROM {books.table} WHERE event_id = ANY(%s)"
    return books.ledger.execute(asked, ([LOST.event_id, ALSO_LOST.event_id],)).fetchall()
