"""Samples, cuts and runs: what goes in comes out, cuts tile, a commit is whole or nothing.

One file, since what is stored is read back over one database, a table after the other.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import psycopg
import pytest
from sqlalchemy import Engine, insert, text
from sqlalchemy.exc import DatabaseError, IntegrityError, StatementError

from tallystick.alerting.alert import Alert, AlertAction, Outstanding
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.model.cut import Sample, TopicSlice
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.item_reason import ReasonCode, read_reason
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, WriteOff
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.alert_store import firing_names, pending_alerts
from tallystick.store.breaks.break_store import keys_whose_copies_differ, transactions_with_lonely_copies
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.runs.contract_store import (
    StoredContractRefused,
    contract_begun_under,
    contract_of_fingerprint,
    keep_contract,
    newest_contract,
    newest_readable_contract,
)
from tallystick.store.runs.cut_store import (
    CutAlreadyOpen,
    CutNotFound,
    CutOutOfOrder,
    claim_attempt,
    find_cut,
    first_cuts_read_whole,
    last_cut,
    last_cuts_read_whole,
    open_cut,
    read_cursor_positions,
    read_cut,
)
from tallystick.store.runs.loss_store import (
    last_cuts_before_rows,
    last_torn_cut,
    ledger_starts_of,
)
from tallystick.store.runs.open_item_store import (
    judged_items_as_of,
    left_rows_as_of,
    open_items_as_of,
    rows_beside_unread_as_of,
    undecided_items_as_of,
)
from tallystick.store.runs.outstanding_store import outstanding_breaks, outstanding_classes
from tallystick.store.runs.run_history_store import ledger_rows_before
from tallystick.store.runs.run_store import AttemptFenced, VerdictDiffers, commit_run, list_runs, read_run
from tallystick.store.runs.sample_store import append_sample, read_samples
from tallystick.store.runs.unread_store import OFFSETS_LOST, last_cuts_with_offsets_unread
from tallystick.store.schema import APPEND_ONLY, contract_version

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEVER_PRODUCED = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED


def test_a_sample_comes_back_as_it_was_and_in_order(store: Engine) -> None:
    part = TopicPartition(topic="billing.payouts", partition=1)
    late = Sample(at_utc=NOON, high_watermarks=((part, 2**40),), ledger_low_mark=7, ledger_high_mark=2**33)
    early = replace(late, at_utc=NOON - timedelta(microseconds=1))
    for sample in (late, early, late):
        append_sample(store, "payouts", sample)
    append_sample(store, "another", late)
    assert read_samples(store, "payouts", since_utc=NOON - timedelta(days=1)) == (early, late)
    assert read_samples(store, "payouts", since_utc=NOON) == (late,)


def test_a_naive_time_is_refused(store: Engine) -> None:
    naive = Sample(at_utc=NOON.replace(tzinfo=None), high_watermarks=(), ledger_low_mark=1, ledger_high_mark=1)
    with pytest.raises(StatementError, match="expected an aware time"):
        append_sample(store, "payouts", naive)


def test_a_time_comes_back_in_utc(store: Engine) -> None:
    tokyo = NOON.astimezone(ZoneInfo("Asia/Tokyo"))
    append_sample(store, "payouts", Sample(at_utc=tokyo, high_watermarks=(), ledger_low_mark=1, ledger_high_mark=1))
    (sample,) = read_samples(store, "payouts", since_utc=NOON)
    assert sample.at_utc.isoformat() == NOON.isoformat()


def test_a_cut_comes_back_as_it_was(store: Engine, books: Any) -> None:
    cut = books.save(store, books.cut(0))
    assert read_cut(store, "payouts", 0) == last_cut(store, "payouts") == open_cut(store, "payouts") == cut
    window = {"window_start_utc": cut.window_start_utc, "window_end_utc": cut.window_end_utc}
    assert find_cut(store, "payouts", **window) == cut
    assert find_cut(store, "payouts", **window | {"window_end_utc": NOON + timedelta(days=1)}) is None
    assert read_cut(store, "payouts", 1) is None
    assert last_cut(store, "another") is None


def test_a_contract_is_kept_by_its_fingerprint_whether_or_not_a_cut_is_made_under_it(
    store: Engine, new_contract: Any
) -> None:
    contract = new_contract()
    assert contract_of_fingerprint(store, contract.name, contract.fingerprint) is None
    for _ in range(2):
        keep_contract(store, contract)
    assert contract_of_fingerprint(store, contract.name, contract.fingerprint) == contract
    assert newest_contract(store, contract.name) is None


def keep_refused(store: Engine, contract: Any) -> None:
    """As another release may have kept it."""
    body = {name: value for name, value in contract.model_dump(mode="json").items() if name != "direction"}
    row = {"contract": contract.name, "fingerprint": contract.fingerprint, "version": 1, "body": body}
    with store.begin() as connection:
        connection.execute(insert(contract_version), row)


def test_a_kept_contract_that_this_release_refuses_is_as_one_that_is_not_kept(
    store: Engine, books: Any, new_contract: Any
) -> None:
    kept, refused = (new_contract(partner_grace_seconds=seconds) for seconds in (7, 8))
    keep_contract(store, kept)
    keep_refused(store, refused)
    books.save(store, books.cut(0))

    def found(contract: Any, cut_n: int) -> tuple[Any, Any]:
        asked = store, contract.name, contract.fingerprint
        return contract_of_fingerprint(*asked), contract_begun_under(*asked, cut_n=cut_n)

    assert newest_readable_contract(store, kept.name) == books.contract
    assert found(kept, 0) == (kept, kept)
    assert (found(refused, 0), found(refused, 9)) == ((None, books.contract), (None, None))


def test_a_cut_whose_contract_this_release_refuses_says_so(store: Engine, books: Any, new_contract: Any) -> None:
    keep_refused(store, books.contract)
    books.save(store, books.cut(0))
    other = new_contract(partner_grace_seconds=7)
    assert contract_begun_under(store, other.name, other.fingerprint, cut_n=0) is None
    with pytest.raises(StoredContractRefused, match="by its direction: Field required; install the release"):
        newest_contract(store, other.name)
    assert newest_readable_contract(store, other.name) is None


def test_an_open_cut_is_the_lock_of_its_contract(store: Engine, books: Any, new_contract: Any) -> None:
    books.save(store, books.cut(0))
    with pytest.raises(CutAlreadyOpen, match="payouts: cut 1"):
        books.save(store, books.cut(1))
    another = type(books)(new_contract(contract="another"))
    another.save(store, another.cut(0))


def test_of_two_runs_that_store_a_cut_at_once_one_is_refused(store: Engine, books: Any) -> None:
    start = threading.Barrier(2)

    def save() -> bool:
        start.wait()
        try:
            books.save(store, books.cut(0))
        except CutAlreadyOpen:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(future.result() for future in [pool.submit(save), pool.submit(save)]) == [False, True]


def test_a_cut_out_of_order_is_refused(store: Engine, books: Any) -> None:
    with pytest.raises(CutOutOfOrder, match="expected cut 0, got 1"):
        books.save(store, books.cut(1))
    assert last_cut(store, "payouts") is None


def test_slices_tile(store: Engine, books: Any) -> None:
    for n in range(3):
        books.commit(store, books.result(n))
    with store.connect() as connection:
        rows = connection.execute(text("select side, starts_at, ends_at from tallystick.cut_slice order by 1, slice_n"))
        slices = [tuple(row) for row in rows]
    assert slices == [
        ("ledger", 0, 0),
        ("ledger", 0, 100),
        ("ledger", 100, 200),
        ("topic:billing.payouts:0", 0, 0),
        ("topic:billing.payouts:0", 0, 10),
        ("topic:billing.payouts:0", 10, 20),
    ]


@pytest.mark.parametrize("topic_end", [9, 11], ids=["a gap", "an overlap"])
def test_a_cut_that_does_not_start_where_the_last_one_ended_is_refused(
    store: Engine, books: Any, topic_end: int
) -> None:
    books.commit(store, books.result(0))
    books.save(store, books.cut(1, topic_end=topic_end))
    commit_run(store, books.result(1), attempt=claim_attempt(store, "payouts", 1), alerts=())
    with pytest.raises(IntegrityError, match="cut_slice_follows"):
        books.save(store, books.cut(2))
    assert open_cut(store, "payouts") is None


def test_an_inner_end_cannot_be_moved(store: Engine, owned_store: Engine, books: Any) -> None:
    for n in range(3):
        books.commit(store, books.result(n))
    move = "update tallystick.cut_slice set ends_at = ends_at + 1 where side = 'ledger' and slice_n = :n"
    with pytest.raises(IntegrityError, match="cut_slice_follows"), owned_store.begin() as connection:
        connection.execute(text(move), {"n": 1})
    with owned_store.begin() as connection:
        connection.execute(text(move), {"n": 2})


def test_a_run_comes_back_as_it_was(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0))
    found = tuple(books.missing(key) for key in ("a", "b"))
    items = tuple(books.item(item_break, n=1) for item_break in found)
    result = books.result(1, verdict=Verdict.BROKEN, doubts=(Doubt.VACUOUS_RUN,), breaks=found, items=items)
    books.commit(store, result)
    run = read_run(store, "payouts", 1)
    assert run is not None
    assert run.result == result
    assert run.cut == books.cut(1)
    assert (run.window_start_utc, run.window_end_utc) == (NOON, NOON + timedelta(hours=1))
    assert (run.scheduler_run_id, run.attempt) == ("run-1", 1)
    assert run.recorded_at.tzinfo is UTC
    assert open_cut(store, "payouts") is None
    assert read_run(store, "payouts", 2) is None


def test_the_list_of_runs_shows_what_each_found(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0, verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.BASELINE,)))
    found = (books.missing("a"), books.missing("b"), books.missing("c", currency="JPY"))
    items = tuple(books.item(item_break, n=1) for item_break in found)
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=found, items=items))
    runs = list_runs(store, "payouts", limit=5)
    assert [(run.cut_n, run.verdict, run.breaks, run.money_minor) for run in runs] == [
        (1, Verdict.BROKEN, 3, {"EUR": 2500, "JPY": 1250}),
        (0, Verdict.INCONCLUSIVE, 0, {}),
    ]
    assert [run.cut_n for run in list_runs(store, limit=1)] == [1]
    assert list_runs(store, "another", limit=5) == ()


def test_a_held_window_names_the_cut_that_read_it_whole_and_that_cut_names_it(store: Engine, books: Any) -> None:
    def commit(n: int, *, mark: int) -> None:
        cut = books.cut(n)
        (part,) = cut.topic_slices
        books.save(store, replace(cut, topic_slices=(replace(part, mark=mark),)))
        commit_run(store, books.result(n), attempt=claim_attempt(store, "payouts", n), alerts=())

    def history() -> list[int | None]:
        return [run.completed_by_cut for run in reversed(list_runs(store, "payouts", limit=9))]

    commit(0, mark=0)
    commit(1, mark=25)  # ends at 10: held
    commit(2, mark=25)  # ends at 20: held by the same
    assert history() == [None, None, None]
    commit(3, mark=30)
    commit(4, mark=40)
    assert history() == [None, 3, 3, None, None]
    completes = [run.completes for n in range(5) if (run := read_run(store, "payouts", n))]
    assert completes == [(), (), (), (1, 2), ()]


def test_a_window_is_held_by_a_mark_that_32_bits_do_not_hold(store: Engine, books: Any) -> None:
    cut = books.cut(0)
    books.save(store, replace(cut, ledger_slice=replace(cut.ledger_slice, mark=2**40)))
    commit_run(store, books.result(0), attempt=claim_attempt(store, "payouts", 0), alerts=())
    assert [run.completed_by_cut for run in list_runs(store, "payouts", limit=9)] == [None]


def test_committing_the_same_result_again_changes_nothing(store: Engine, books: Any) -> None:
    found = books.missing("a")
    result = books.result(0, verdict=Verdict.BROKEN, breaks=(found,), items=(books.item(found, n=0),))
    books.commit(store, result)
    before = read_run(store, "payouts", 0)
    attempt = claim_attempt(store, "payouts", 0)
    assert commit_run(store, result, attempt=attempt, alerts=()) is Verdict.BROKEN
    assert commit_run(store, result, attempt=attempt - 1, alerts=()) is Verdict.BROKEN
    assert read_run(store, "payouts", 0) == before


def test_another_outcome_of_a_closed_cut_is_refused(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0))
    attempt = claim_attempt(store, "payouts", 0)
    with pytest.raises(VerdictDiffers, match="the stored digest is digest-0, this run's is other"):
        commit_run(store, books.result(0, digest="other"), attempt=attempt, alerts=())


def test_an_older_attempt_is_fenced(store: Engine, books: Any) -> None:
    books.save(store, books.cut(0))
    first, second = (claim_attempt(store, "payouts", 0) for _ in range(2))
    with pytest.raises(AttemptFenced, match="this is attempt 1, the newest is 2"):
        commit_run(store, books.result(0), attempt=first, alerts=())
    assert read_run(store, "payouts", 0) is None
    commit_run(store, books.result(0), attempt=second, alerts=())


def test_a_cut_that_was_never_stored_cannot_be_claimed_or_committed(store: Engine, books: Any) -> None:
    with pytest.raises(CutNotFound):
        claim_attempt(store, "payouts", 0)
    with pytest.raises(CutNotFound):
        commit_run(store, books.result(0), attempt=1, alerts=())


def test_a_commit_that_fails_half_way_leaves_nothing(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0))
    books.save(store, books.cut(1))
    found = books.missing("a")
    broken_twice = books.result(1, breaks=(found,), items=(books.item(found, n=1),) * 2)
    attempt = claim_attempt(store, "payouts", 1)
    with pytest.raises(psycopg.errors.UniqueViolation):
        commit_run(store, broken_twice, attempt=attempt, alerts=())
    assert read_run(store, "payouts", 1) is None
    assert outstanding_breaks(store, "payouts") == ()
    commit_run(store, books.result(1), attempt=attempt, alerts=())


def test_positions_of_the_cuts_before_are_read_side_by_side_and_not_further_back_than_asked(
    store: Engine, books: Any
) -> None:
    for n in range(5):
        books.commit(store, books.result(n))
    part = books.cut(1).topic_slices[0].offsets.topic_partition
    found = read_cursor_positions(store, "payouts", [part, None], before=4, cuts=2)
    assert [(one.cut_n, one.topic_partition, one.cursor, one.mark) for one in found] == [
        (2, None, 200, 200),
        (2, part, 20, 20),
        (3, None, 300, 300),
        (3, part, 30, 30),
    ]
    assert found[0].window_start_utc == books.cut(2).window_start_utc
    assert [one.cut_n for one in read_cursor_positions(store, "payouts", [None], before=4, cuts=9)] == [0, 1, 2, 3]


def test_alerts_are_committed_with_the_run(store: Engine, books: Any) -> None:
    alert = Alert(
        contract="payouts",
        cut_n=0,
        name=NEVER_PRODUCED,
        action=AlertAction.TRIGGER,
        severity=Severity.CRITICAL,
        summary="one is missing",
        details={"new": 1},
        sinks=("file:alerts.jsonl",),
    )
    books.commit(store, books.result(0), alerts=(alert,))
    (pending,) = pending_alerts(store, "payouts")
    stored = pending.alert
    assert (stored.outbox_id, stored.began_utc) == (1, stored.at_utc)
    assert replace(stored, outbox_id=None, at_utc=None, began_utc=None) == alert
    assert pending.owed_to == ("file:alerts.jsonl",)
    assert firing_names(store, "payouts") == {NEVER_PRODUCED}
    books.commit(store, books.result(1), alerts=(replace(alert, cut_n=1, action=AlertAction.RESOLVE),))
    assert firing_names(store, "payouts") == frozenset()


def test_50_000_rows_are_one_commit(store: Engine, books: Any) -> None:
    found = tuple(books.missing(f"{n:06}") for n in range(25_000))
    items = tuple(books.item(item_break, n=0) for item_break in found)
    books.save(store, books.cut(0))
    attempt = claim_attempt(store, "payouts", 0)
    commit_run(store, books.result(0, breaks=found, items=items), attempt=attempt, alerts=())
    assert outstanding_classes(store, "payouts")[NEVER_PRODUCED].count == 25_000


@pytest.mark.parametrize("table", [table.name for table in APPEND_ONLY])
@pytest.mark.parametrize("statement", ["delete from {}", "truncate {} cascade", "update {} set {} = {}"])
def test_what_was_written_cannot_be_changed_by_its_owner_either(
    store: Engine, owned_store: Engine, books: Any, table: str, statement: str
) -> None:
    found = books.missing("a")
    books.commit(store, books.result(0, breaks=(found,), items=(books.item(found, n=0),)))
    column = "contract" if table != "alert_delivery" else "detail"
    with pytest.raises(DatabaseError, match="is append-only"), owned_store.begin() as connection:
        connection.execute(text(statement.format(f"tallystick.{table}", column, column)))


def test_items_are_carried_as_the_cuts_before_left_them(store: Engine, books: Any) -> None:
    late, cleared, odd = (books.missing(key) for key in ("late", "cleared", "odd"))
    books.commit(store, books.result(0))
    waiting = replace(books.item(late, n=1), state=ItemState.OPEN, break_id=None, found_as=None)
    first = (waiting, books.item(cleared, n=1), books.item(odd, n=1, pairable=False))
    books.commit(store, books.result(1, breaks=(cleared, odd), items=first))
    second = (books.item(late, n=2), books.item(cleared, n=2, state=ItemState.CLEARED))
    books.commit(store, books.result(2, breaks=(late,), items=second))

    assert open_items_as_of(store, "payouts", 1) == ()
    assert open_items_as_of(store, "payouts", 2) == (first[1], waiting)
    assert open_items_as_of(store, "payouts", 3) == (second[0],)


@pytest.mark.parametrize(
    ("stored", "code"),
    [
        ("its partner lies beyond the cut of the input topic", ReasonCode.BEYOND_CUT),
        ("waits for fee, payout", ReasonCode.LEGS_AWAITED),
        ("what a release of {old} said", ReasonCode.UNKNOWN),
    ],
)
def test_a_stored_reason_is_read_as_its_code_and_stays_what_it_was(
    store: Engine, books: Any, stored: str, code: ReasonCode
) -> None:
    waiting = replace(books.item(books.missing("a"), n=0), state=ItemState.OPEN, break_id=None, found_as=None)
    books.commit(store, books.result(0, items=(replace(waiting, reason=read_reason(stored)),)))
    with store.connect() as connection:
        assert connection.scalar(text("select reason from tallystick.open_item")) == stored
    (carried,) = open_items_as_of(store, "payouts", 1)
    assert (carried.reason.code, carried.reason.stored) == (code, stored)


def test_a_break_is_outstanding_until_its_item_is_cleared_or_written_off(store: Engine, books: Any) -> None:
    found = [books.missing(key) for key in ("a", "b", "c")]
    books.commit(store, books.result(0, breaks=tuple(found), items=tuple(books.item(one, n=0) for one in found)))
    assert [one.item_break for one in outstanding_breaks(store, "payouts")] == found
    three = Outstanding(count=3, money={"EUR": 3750}, first_seen_utc=NOON)
    assert outstanding_classes(store, "payouts") == {NEVER_PRODUCED: three}

    changes = (
        books.item(found[0], n=1, state=ItemState.CLEARED),
        books.item(found[1], n=1, state=ItemState.WRITTEN_OFF),
    )
    result = books.result(1, items=changes)
    one = Outstanding(count=1, money={"EUR": 1250}, first_seen_utc=NOON)
    assert outstanding_classes(store, "payouts", after=result) == {NEVER_PRODUCED: one}
    books.commit(store, result)
    assert outstanding_classes(store, "payouts") == {NEVER_PRODUCED: one}
    assert [one.item_break for one in outstanding_breaks(store, "payouts")] == [found[2]]
    assert outstanding_breaks(store, "payouts")[0].cut_n == 0


def test_what_will_be_outstanding_counts_the_breaks_of_the_run_itself(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0))
    found = books.missing("a")
    result = books.result(1, breaks=(found,), items=(books.item(found, n=1),))
    after = outstanding_classes(store, "payouts", after=result)
    assert after == {NEVER_PRODUCED: Outstanding(count=1, money={"EUR": 1250}, first_seen_utc=NOON)}
    books.commit(store, result)
    assert outstanding_classes(store, "payouts") == after


def test_a_broken_item_names_its_break(store: Engine, books: Any) -> None:
    books.save(store, books.cut(0))
    item = replace(books.item(books.missing("a"), n=0), break_id=None)
    attempt = claim_attempt(store, "payouts", 0)
    with pytest.raises(psycopg.errors.CheckViolation, match="open_item_broken_by_ck"):
        commit_run(store, books.result(0, items=(item,)), attempt=attempt, alerts=())


def test_a_break_that_an_item_names_is_there(store: Engine, books: Any) -> None:
    kept, none = books.missing("a"), books.missing("b")
    books.save(store, books.cut(0))
    items = tuple(books.item(found, n=0) for found in (kept, none))
    attempt = claim_attempt(store, "payouts", 0)
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match=f"names break {none.break_id}, which is none"):
        commit_run(store, books.result(0, breaks=(kept,), items=items), attempt=attempt, alerts=())
    commit_run(store, books.result(0, breaks=(kept, none), items=items), attempt=attempt, alerts=())


@pytest.mark.parametrize("table", ["item_break", "open_item"])
@pytest.mark.parametrize("of_a_run", [True, False])
def test_breaks_and_items_are_of_a_run_that_has_its_verdict(
    store: Engine, books: Any, table: str, of_a_run: bool
) -> None:
    found = books.missing("a")
    books.commit(store, books.result(0, breaks=(found,), items=(books.item(found, n=0),)))
    again = (
        f"create temp table again on commit drop as select * from tallystick.{table};"
        f"update again set contract = '{'payouts' if of_a_run else 'nobody'}',"
        f"{'break_id' if table == 'item_break' else 'item_id'} = gen_random_uuid();"
        f"insert into tallystick.{table} select * from again"
    )
    refused = pytest.raises(IntegrityError, match=f"tallystick.{table}: nobody/0 has no verdict")
    with nullcontext() if of_a_run else refused, store.begin() as connection:
        connection.execute(text(again))


def test_the_ledger_must_still_show_what_the_cut_before_counted(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0, ledger_older_rows=40))
    books.commit(store, books.result(1, ledger_rows=5, ledger_older_rows=40))
    books.commit(store, books.result(2, ledger_rows=7, ledger_older_rows=45))
    assert [ledger_rows_before(store, "payouts", n) for n in (0, 1, 2, 3)] == [None, 40, 45, 52]


def test_the_newest_torn_cut_is_known_to_the_cuts_after_it(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0))
    for n, doubts in ((1, (Doubt.TORN_CUT,)), (2, (Doubt.LOG_EXPIRED,))):
        books.commit(store, books.result(n, verdict=Verdict.INCONCLUSIVE, doubts=doubts))
    assert [last_torn_cut(store, "payouts", before=n) for n in (1, 2, 3)] == [-1, 1, 1]


def test_the_newest_cut_that_left_offsets_unread_is_told_of_each_topic(store: Engine, books: Any) -> None:
    """A cut that was closed counts where its slice of the topic is not empty, an older document that does not say
    where for all.
    """
    fees, payouts, topics = "billing.fees", "billing.payouts", ("billing.fees", "billing.payouts")

    def told(n: int, doubt: Doubt, **details: Any) -> tuple[int, int, int]:
        found = (DoubtFound(doubt=doubt, sentence="", details=details),)
        books.commit(store, replace(books.result(n, verdict=Verdict.INCONCLUSIVE), doubts=found))
        unread = last_cuts_with_offsets_unread(store, "payouts", topics)
        assert unread.of_topic("billing.others") == unread.at
        return unread.at, unread.of_topic(fees), unread.of_topic(payouts)

    books.commit(store, books.result(0))
    assert told(1, Doubt.HELD_BY_OPEN_TRANSACTION, topic=payouts) == (-1, -1, -1)
    for n, doubt in enumerate(sorted(OFFSETS_LOST), start=2):
        assert told(n, doubt, topic=fees) == (n, n, -1)
    assert told(7, Doubt.LOG_EXPIRED, topic=payouts) == (7, 6, 7)
    assert told(8, Doubt.CUT_CLOSED, offsets=[]) == (7, 6, 7)
    assert told(9, Doubt.CUT_CLOSED, offsets=[{"topic": fees, "partition": 0, "start": 1, "end": 2}]) == (9, 9, 7)
    assert told(10, Doubt.CUT_CLOSED) == (10, 10, 10)
    assert told(11, Doubt.LOG_EXPIRED) == (11, 11, 11)
    nothing = last_cuts_with_offsets_unread(store, "another", topics)
    assert (nothing.at, nothing.at_topic) == (-1, dict.fromkeys(topics, -1))


def test_what_a_cut_could_not_read_counts_once_its_log_begins_behind_that_slices_start(
    store: Engine, books: Any
) -> None:
    """Cut n reads offsets 10n - 10 to 10n. Places that are not all named may be on any partition."""
    topic = books.contract.topics[0]
    books.commit(store, books.result(0))
    for n, details in (
        (1, {"records": 1, "places": [f"{topic}[0] at 3, where it is no JSON"]}),
        (2, {"records": 1, "places": [f"{topic}[10] at 13"]}),
        (3, {"records": 2, "places": [f"{topic}[10] at 23"]}),
        (4, {"records": 0, "places": []}),
    ):
        doubt = Doubt.UNREADABLE_PAYLOAD if n < 4 else Doubt.VACUOUS_RUN
        found = (DoubtFound(doubt=doubt, sentence="", details=details),)
        books.commit(store, replace(books.result(n, verdict=Verdict.INCONCLUSIVE), doubts=found))

    def told(log_start: int, planned_at: int | None = None, partition: int = 0) -> int:
        starts = {TopicPartition(topic=topic, partition=partition): log_start}
        unread = last_cuts_with_offsets_unread(store, "payouts", [topic], log_starts=starts, planned_at=planned_at)
        return unread.unreadable_of(topic)

    assert [told(log_start) for log_start in (0, 1, 10, 11, 20, 21, 99)] == [-1, 1, 1, 1, 1, 3, 3]
    assert (told(99, partition=1), told(99, planned_at=4)) == (-1, 3)
    assert last_cuts_with_offsets_unread(store, "payouts", [topic]).unreadable_of(topic) == -1


def test_a_cut_counts_too_that_saw_a_partition_go_unseen(store: Engine, books: Any) -> None:
    topic = books.contract.topics[0]

    def told(n: int, *gone: str, planned_at: int | None = None) -> int:
        seen = [{"topic": one, "partition": 0} for one in gone]
        books.commit(store, replace(books.result(n), look_ups={"surroundings": {"gone_unseen": seen}}))
        return last_cuts_with_offsets_unread(store, "payouts", [topic], planned_at=planned_at).unreadable_of(topic)

    books.commit(store, books.result(0))
    assert [told(1), told(2, "billing.others"), told(3, "billing.others", topic), told(4)] == [-1, -1, 3, 3]
    unread = [last_cuts_with_offsets_unread(store, "payouts", [topic], planned_at=n) for n in (2, 3)]
    assert [one.unreadable_of(topic) for one in unread] == [3, -1]


def test_the_newest_cut_that_had_read_a_partition_up_to_its_mark_is_told(store: Engine, books: Any) -> None:
    part, unknown = TopicPartition(topic="billing.payouts", partition=0), TopicPartition(topic="others", partition=0)
    for n in range(5):
        cut = books.cut(n)
        if n == 2:
            held = replace(cut.topic_slices[0], mark=cut.topic_slices[0].mark + 1)
            cut = replace(cut, topic_slices=(held,))
        if n >= 2:
            added = replace(cut.topic_slices[0].snapshot, partition=1)
            offsets = OffsetRange(
                topic="billing.payouts", partition=1, kafka_offset_start=n - 2, kafka_offset_end=n - 1
            )
            cut = replace(cut, topic_slices=(*cut.topic_slices, TopicSlice(offsets=offsets, snapshot=added, mark=9)))
        books.save(store, replace(cut, by_time=n == 3))
        commit_run(store, books.result(n), attempt=claim_attempt(store, "payouts", n), alerts=())
    asked = [(part, n) for n in range(6)]
    came_later = replace(part, partition=1)  # held since it came
    found = last_cuts_read_whole(store, "payouts", [*asked, (unknown, 3), (came_later, 2), (came_later, 4)])
    assert [found[one] for one in asked] == [-1, 0, 1, 1, 1, 4]
    assert (found[unknown, 3], found[came_later, 2], found[came_later, 4]) == (-1, 1, 1)


def test_the_first_cut_behind_another_that_read_all_of_a_side_is_told(store: Engine, books: Any) -> None:
    part, unknown = TopicPartition(topic="billing.payouts", partition=0), TopicPartition(topic="others", partition=0)
    for n in range(6):
        cut = books.cut(n)
        ledger = cut.ledger_slice
        if n == 2:
            held = replace(cut.topic_slices[0], mark=cut.topic_slices[0].mark + 1)
            cut = replace(cut, topic_slices=(held,), ledger_slice=replace(ledger, mark=ledger.mark + 1))
        if n == 3:
            cut = replace(cut, topic_slices=(replace(cut.topic_slices[0], expired=len(cut.topic_slices[0].offsets)),))
        books.save(store, cut)
        commit_run(store, books.result(n), attempt=claim_attempt(store, "payouts", n), alerts=())
    found = [first_cuts_read_whole(store, "payouts", [part, None, unknown], behind=n) for n in range(6)]
    assert [one.get(part) for one in found] == [1, 4, 4, 4, 5, None]
    assert [one.get(None) for one in found] == [1, 3, 3, 4, 5, None]
    assert all(unknown not in one for one in found)


@pytest.mark.parametrize(("slice_by", "before"), [("xmin", [-1, 0, 0, 0, 2]), ("written_xid", [-1, 0, 0, 2, 3])])
def test_the_newest_cut_before_a_slice_of_rows_was_begun_is_told(
    store: Engine, books: Any, new_contract: Callable[..., Contract], slice_by: str, before: list[int]
) -> None:
    """Cut n reads from 100n - 100, by xmin maybe rows of the cut before, which were touched; cut 1 saw all of them."""
    for n in range(5):
        cut = books.cut(n)
        snapshot = replace(cut.ledger_slice.snapshot, high_mark=2**40 if n == 1 else 100 * n)
        books.save(store, replace(cut, ledger_slice=replace(cut.ledger_slice, snapshot=snapshot)))
        commit_run(store, books.result(n), attempt=claim_attempt(store, "payouts", n), alerts=())
    ledger = {"connection": "ledger_billing", "table": "billing.payout", "slice_by": slice_by}
    contract = new_contract(ledger=ledger)
    found = last_cuts_before_rows(store, contract, range(5))
    assert [found[n] for n in range(5)] == before
    moved_from = ledger_starts_of(store, "payouts", range(5), rows_move=contract.ledger.rows_move).moved_from
    assert moved_from == ({1: 0, 2: 0, 3: 100, 4: 200} if slice_by == "xmin" else {})


def test_a_rewritten_row_is_missed_by_one_cut_only(store: Engine, books: Any) -> None:
    books.commit(store, books.result(0, ledger_older_rows=40))
    books.commit(store, books.result(1, ledger_rows=5, ledger_older_rows=39))
    assert ledger_rows_before(store, "payouts", 2) == 44


def test_a_break_that_is_found_again_is_stored_once_and_stops_nothing(store: Engine, books: Any) -> None:
    known, new = books.missing("a"), books.missing("b")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(known,), items=(books.item(known, n=1),)))
    cleared = (books.item(known, n=2, state=ItemState.CLEARED),)
    books.commit(store, books.result(2, items=cleared))
    again = (books.item(known, n=3), books.item(new, n=3))
    books.commit(store, books.result(3, verdict=Verdict.BROKEN, breaks=(known, new), items=again))
    found = outstanding_breaks(store, "payouts")
    assert [(one.item_break, one.cut_n) for one in found] == [(known, 1), (new, 3)]


def test_of_rows_read_again_the_store_tells_which_were_judged_before_that_cut(store: Engine, books: Any) -> None:
    broken, cleared = books.missing("a"), books.missing("b")
    items = (books.item(broken, n=1, pairable=False), books.item(cleared, n=1))
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(broken, cleared), items=items))
    books.commit(store, books.result(2, items=(books.item(cleared, n=2, state=ItemState.CLEARED),)))
    asked = {"ledger:a", "ledger:b", "ledger:c"}
    assert judged_items_as_of(store, "payouts", 3, asked) == items[:1]
    assert judged_items_as_of(store, "payouts", 2, asked) == items
    assert judged_items_as_of(store, "payouts", 1, asked) == judged_items_as_of(store, "payouts", 3, set()) == ()


def test_of_rows_one_too_many_the_store_tells_which_were_so_beside_one_that_nobody_had_read(
    store: Engine, books: Any
) -> None:
    places = {"a": ("ledger", "unread"), "b": ("ledger", "before_baseline"), "c": ("ledger", "earlier_slice")}
    places["d"] = ("topic", "unread")
    repeats = [
        replace(
            books.missing(key),
            break_class=BreakClass.DUPLICATE_IN_LEDGER,
            evidence={"found_elsewhere": [{"at": f"{side}:9", "place": place}]},
        )
        for key, (side, place) in places.items()
    ]
    items = tuple(books.item(one, n=1, pairable=False) for one in repeats)
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=tuple(repeats), items=items))
    asked = {f"ledger:{key}" for key in (*places, "e")}
    assert rows_beside_unread_as_of(store, "payouts", 2, asked) == {"ledger:a", "ledger:b"}
    assert rows_beside_unread_as_of(store, "payouts", 2, {"ledger:a", "ledger:c"}) == {"ledger:a"}
    assert rows_beside_unread_as_of(store, "payouts", 1, asked) == rows_beside_unread_as_of(store, "payouts", 2, ())
    write_off_break(store, "payouts", repeats[0].break_id.hex, WriteOff(by="Ada", reason="a file twice", at_utc=NOON))
    assert rows_beside_unread_as_of(store, "payouts", 9, asked) == {"ledger:a", "ledger:b"}


def test_of_copies_that_nobody_could_judge_the_store_tells(store: Engine, books: Any) -> None:
    undecided, broken = books.missing("a"), books.missing("b")
    items = (books.item(undecided, n=1, state=ItemState.UNDECIDABLE), books.item(broken, n=1))
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(undecided, broken), items=items))
    asked = {"ledger:a", "ledger:b", "ledger:c"}
    assert undecided_items_as_of(store, "payouts", 2, asked) == {"ledger:a"}
    assert (
        undecided_items_as_of(store, "payouts", 1, asked) == undecided_items_as_of(store, "payouts", 2, set()) == set()
    )


def test_of_business_transactions_the_store_tells_which_rows_were_written_off(store: Engine, books: Any) -> None:
    given_up, broken = books.missing("a"), books.missing("b")
    items = (books.item(given_up, n=1), books.item(broken, n=1))
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(given_up, broken), items=items))
    books.commit(store, books.result(2, items=(books.item(given_up, n=2, state=ItemState.WRITTEN_OFF),)))
    found = left_rows_as_of(store, "payouts", 3, [given_up.transaction_key, broken.transaction_key])
    assert [(one.item_id, one.state) for one in found] == [("ledger:a", ItemState.WRITTEN_OFF)]


def test_of_business_transactions_the_store_tells_which_rows_no_run_could_judge_until_one_can(
    store: Engine, books: Any
) -> None:
    """An event that nobody could judge is none of them, nor a row of another transaction."""
    ended, decided, of_event, other = (books.missing(key) for key in ("a", "b", "c", "d"))
    items = {
        one.match_key: books.item(one, n=1, state=ItemState.UNDECIDABLE, pairable=one is decided)
        for one in (ended, decided, of_event, other)
    }
    items["c"] = replace(items["c"], item_id="topic:payouts:0:7", side=ItemSide.TOPIC)
    books.commit(store, books.result(0))
    breaks = (ended, decided, of_event, other)
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=breaks, items=tuple(items.values())))
    books.commit(store, books.result(2, items=(books.item(decided, n=2, state=ItemState.CLEARED),)))
    asked = {one.transaction_key for one in (ended, decided, of_event)}
    assert left_rows_as_of(store, "payouts", 3, asked) == (items["a"],)
    assert left_rows_as_of(store, "payouts", 2, asked) == (items["a"], items["b"])
    assert left_rows_as_of(store, "payouts", 1, asked) == left_rows_as_of(store, "payouts", 3, set()) == ()


def test_keys_with_breaks_of_other_money_differ_and_transactions_with_a_copy_alone_are_named_until_that_is_cleared(
    store: Engine, books: Any
) -> None:
    a, b, c = (books.missing(key) for key in "abc")
    alone = replace(b, break_class=BreakClass.PHANTOM_IN_LEDGER)
    more = replace(a, break_id=uuid4(), amount_minor=a.amount_minor + 1)
    items = (books.item(a, n=1), books.item(alone, n=1), books.item(c, n=1))
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(a, alone, c, more), items=items))
    assert keys_whose_copies_differ(store, "payouts", {"a", "b", "c"}) == {"a": a.break_class}
    lonely = {alone.transaction_key: BreakClass.PHANTOM_IN_LEDGER}
    asked = {a.transaction_key, b.transaction_key}
    assert transactions_with_lonely_copies(store, "payouts", asked) == lonely
    assert transactions_with_lonely_copies(store, "payouts", {"another"}) == {}
    books.commit(store, books.result(2, items=(books.item(alone, n=2, state=ItemState.WRITTEN_OFF),)))
    assert transactions_with_lonely_copies(store, "payouts", asked) == lonely
    books.commit(store, books.result(3, items=(books.item(alone, n=3, state=ItemState.CLEARED),)))
    assert transactions_with_lonely_copies(store, "payouts", asked) == {}
