"""What the pages ask is what the runs stored: sums are those of the rows; pages of items repeat none and lose none.

One file, since all questions are asked of the one store that stored_books fills.
"""

import random
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from pydantic import TypeAdapter
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.dialects.postgresql import insert

from lab.servers.postgres import STORE_OWNER, PostgresServer
from tallystick.compensation.plan import ExcludedBreak, Plan, RepairKind
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import ExpectationsOutcome
from tallystick.model.verdict import Verdict
from tallystick.store.breaks import item_query_store
from tallystick.store.breaks.break_life_store import alerts_of_break, repairs_of_break
from tallystick.store.breaks.item_query_store import ItemOrder, ItemQuestion, list_items, read_breaks
from tallystick.store.engine import StoreUnreachable
from tallystick.store.plans.plan_life_store import PlanInShort, find_plan, list_plans
from tallystick.store.plans.plan_store import ActionState
from tallystick.store.runs.open_item_store import item_columns
from tallystick.store.runs.run_store import read_run, read_run_head
from tallystick.store.schema import expectations_outcome, open_item
from tallystick.store.views.overview_store import cut_of_scheduler_run, list_versions, read_overview, stakes_of_run
from tallystick.store.views.trend_store import read_trend
from tests.expectation_outcomes import MODULE, not_met
from tests.stored_books import (
    FIRST_BROKEN,
    HOUR,
    LAST_BROKEN,
    LAST_HOUR,
    WINDOWS,
    done_plan,
    item_of,
    mismatch,
    missing,
    payouts,
    plan_of,
    run_id_of,
    waiting_plan,
)
from tests.unit.compensation.abort_plans import planned

NAME = payouts().name
BELOW = "/tallystick"

_KEPT = ("break_total", "standing_item", "standing_total")
_SUMS_OF_THE_ROWS = """
with newest as (
    select distinct on (contract, item_id) * from tallystick.open_item order by contract, item_id, cut_n desc, step desc
)
select n.contract, n.state, coalesce(b.break_class, ''), n.currency, n.first_seen_utc, count(*), sum(n.amount_minor)
from newest as n join tallystick.item_life as life using (contract, item_id)
left join tallystick.item_break as b on b.break_id = n.break_id
where life.ended_cut_n is null group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
"""
_SUMS_THAT_ARE_KEPT = """
select contract, state, break_class, currency, first_seen_utc, items, amount_minor
from tallystick.standing_total order by 1, 2, 3, 4, 5
"""


def rows(store: Engine, statement: str) -> list[tuple[Any, ...]]:
    with store.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_the_sums_that_are_kept_are_those_of_the_rows(store: Engine) -> None:
    assert rows(store, _SUMS_THAT_ARE_KEPT) == rows(store, _SUMS_OF_THE_ROWS) != []
    of_breaks = "select contract, cut_n, break_class, currency, {} from tallystick.{} {} order by 1, 2, 3, 4"
    kept = rows(store, of_breaks.format("breaks, amount_minor", "break_total", ""))
    counted = rows(store, of_breaks.format("count(*), sum(amount_minor)", "item_break", "group by 1, 2, 3, 4"))
    assert kept == counted != []


def test_the_sums_stay_those_of_the_rows_whatever_becomes_of_the_items(store: Engine) -> None:
    """A hundred states at random; the transaction is taken back."""
    rng, fresh = random.Random(7), missing(payouts(), "pay-500", 1)
    with store.connect() as connection:
        found = connection.execute(text("select break_id from tallystick.item_break order by 1")).scalars().all()
        for _ in range(30):
            values = []
            for n in {rng.randrange(12) for _ in range(8)}:
                state = rng.choice([ItemState.OPEN, ItemState.CLEARED, ItemState.BROKEN, ItemState.UNDECIDABLE])
                item = item_of(fresh, FIRST_BROKEN, LAST_HOUR, state)
                values.append(
                    item_columns(
                        replace(
                            item, item_id=f"ledger:r{n}", amount_minor=rng.randrange(9), pairable=rng.random() < 0.5
                        )
                    )
                    | {"contract": NAME, "cut_n": rng.randrange(WINDOWS), "break_id": rng.choice(found)}
                )
            connection.execute(insert(open_item).on_conflict_do_nothing(), values)
        kept = [tuple(row) for row in connection.execute(text(_SUMS_THAT_ARE_KEPT))]
        standing = connection.execute(
            text(
                "select contract, state, break_class, currency, first_seen_utc, count(*), sum(amount_minor) "
                "from tallystick.standing_item group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5"
            )
        )
        assert kept == [tuple(row) for row in standing]
        stand, live = (
            connection.scalars(text(f'select item_id from tallystick.{which} order by item_id collate "C"')).all()
            for which in ("standing_item", "item_life where ended_cut_n is null")
        )
        assert stand == live != []
        connection.rollback()


@pytest.mark.parametrize("newer_first", [True, False])
def test_of_two_rows_of_an_item_in_one_statement_the_newer_stands(store: Engine, newer_first: bool) -> None:
    fresh = missing(payouts(), "pay-500", 1)
    values = [
        item_columns(replace(item_of(fresh, 3, LAST_HOUR, state), break_id=None)) | {"contract": NAME, "cut_n": n}
        for n, state in ((5, ItemState.UNDECIDABLE), (3, ItemState.OPEN))
    ]
    stands = text("select state from tallystick.standing_item where contract = :name and item_id = 'ledger:500'")
    with store.connect() as connection:
        connection.execute(insert(open_item).values(values if newer_first else values[::-1]))
        assert connection.scalars(stands, {"name": NAME}).all() == [ItemState.UNDECIDABLE]
        connection.rollback()


def test_breaks_that_are_stored_statement_by_statement_are_summed_as_if_at_once(store: Engine) -> None:
    """Each break of a run is stored anew, and anew again; the transaction is taken back."""
    again = text(
        "insert into tallystick.item_break select (jsonb_populate_record(b, jsonb_build_object('break_id', "
        "gen_random_uuid()))).* from tallystick.item_break as b where contract = :name and cut_n = :n"
    )
    sums = "select break_class, currency, {} from tallystick.{} where contract = :name and cut_n = :n {} order by 1, 2"
    of_run = {"name": NAME, "n": LAST_BROKEN}
    with store.connect() as connection:
        for _ in range(2):
            connection.execute(again, of_run)
        kept = connection.execute(text(sums.format("breaks, amount_minor", "break_total", "")), of_run).all()
        counted = sums.format("count(*), sum(amount_minor)", "item_break", "group by 1, 2")
        assert kept == connection.execute(text(counted), of_run).all()
        assert {row.breaks for row in kept} == {4}
        connection.rollback()


def test_a_store_that_had_books_before_there_were_sums_gets_the_same_sums(
    store_server: PostgresServer, store: Engine
) -> None:
    """What the migration to 0009 makes of stored rows; the transaction is taken back."""
    migration = import_module("tallystick.store.migrations.versions.m0009_what_pages_ask")
    everything = [f"select * from tallystick.{name} order by 1, 2, 3, 4, 5" for name in _KEPT]
    owned = create_engine(store.url.set(username=STORE_OWNER, password=store_server.passwords[STORE_OWNER]))
    with owned.connect() as connection:
        kept = [connection.execute(text(statement)).all() for statement in everything]
        connection.execute(text(f"truncate {', '.join(f'tallystick.{name}' for name in _KEPT)}"))
        connection.execute(text(migration._FROM_WHAT_IS_STORED))
        assert [connection.execute(text(statement)).all() for statement in everything] == kept
        assert all(kept)
        connection.rollback()


def test_the_book_stands_as_its_runs_left_it(store: Engine) -> None:
    book = read_overview(store, NAME, windows=48)
    assert book is not None
    assert [window.verdict for window in book.windows].count(Verdict.BROKEN) == 2
    assert book.windows[-1].window_end_utc == LAST_HOUR
    broken = sum(one.items.count for one in book.standing if one.items.state is ItemState.BROKEN)
    assert broken == 4  # of six one was cleared, and one given up
    assert book.expires_utc == LAST_HOUR + 22 * HOUR
    assert read_overview(store, "nobody", windows=48) is None


def test_a_runs_head_is_the_run_without_its_rows(store: Engine) -> None:
    whole, head = read_run(store, NAME, LAST_BROKEN), read_run_head(store, NAME, LAST_BROKEN)
    assert whole is not None and head is not None
    bare = replace(whole.result, breaks=(), items=(), look_ups={"surroundings": whole.result.look_ups["surroundings"]})
    assert head == replace(whole, result=bare, standing=())
    assert read_run_head(store, NAME, 999) is None


def test_what_a_run_found_is_summed_as_its_breaks_are(store: Engine) -> None:
    whole = read_run(store, NAME, LAST_BROKEN)
    assert whole is not None
    counted = {
        (one.break_class, one.currency): (one.count, one.amount_minor)
        for one in stakes_of_run(store, NAME, LAST_BROKEN)
    }
    assert counted == {(one.break_class, one.currency): (1, one.amount_minor) for one in whole.result.breaks}
    assert stakes_of_run(store, NAME, 1) == ()


def test_the_trend_has_a_figure_for_each_window(store: Engine) -> None:
    trend = read_trend(store, NAME, windows=10)
    assert [window.cut_n for window in trend] == list(range(WINDOWS - 10, WINDOWS))
    assert [window.topic_rows for window in trend] == [11 + n for n in range(WINDOWS - 10, WINDOWS)]
    (broken,) = [window for window in trend if window.breaks]
    assert (broken.cut_n, sum(broken.breaks.values()), broken.money) == (LAST_BROKEN, 3, {"EUR": 13_200, "USD": 1_500})
    assert read_trend(store, "nobody", windows=10) == ()
    assert [window.cut_n for window in read_trend(store, NAME, windows=WINDOWS) if window.read_nothing] == [0]


@pytest.mark.parametrize("order", ItemOrder)
def test_pages_of_items_follow_one_another_without_a_gap(
    store: Engine, monkeypatch: pytest.MonkeyPatch, order: ItemOrder
) -> None:
    whole = list_items(store, NAME, ItemQuestion(order=order)).rows
    assert len(whole) == 6
    monkeypatch.setattr(item_query_store, "LISTED_AT_ONCE", 2)
    seen, after = [], ""
    for _ in range(9):
        page = list_items(store, NAME, ItemQuestion(order=order, after=after))
        seen, after = [*seen, *page.rows], page.next_after
        if not after:
            break
    assert tuple(seen) == whole
    values = [row.amount_minor if order is ItemOrder.LARGEST else row.first_seen_utc for row in whole]
    assert values == sorted(values, reverse=order is not ItemOrder.OLDEST)  # type: ignore[type-var]


def test_items_are_filtered_by_state_and_class_and_searched_by_the_beginning_of_a_key(store: Engine) -> None:
    def keys(**question: Any) -> list[str]:
        return [row.match_key for row in list_items(store, NAME, ItemQuestion(**question)).rows]

    assert keys(kind=ItemState.OPEN) == ["pay-30"]
    assert keys(kind=ItemState.WRITTEN_OFF) == ["pay-15"]
    assert keys(kind=BreakClass.AMOUNT_MISMATCH) == ["pay-7"]
    assert keys(kind=BreakClass.PHANTOM_IN_TOPIC) == []
    assert sorted(keys(search="pay-1")) == ["pay-1", "pay-15"]
    assert keys(search="order-pay-8") == ["pay-8"]
    assert keys(search="ay-8") == keys(search="%") == []


@pytest.mark.parametrize("after", ["nonsense", "12~", "~", "2026-03-01~x", "9" * 40 + "~x"])
def test_what_is_no_place_asks_for_the_first_page(store: Engine, after: str) -> None:
    for order in ItemOrder:
        first = list_items(store, NAME, ItemQuestion(order=order))
        if order is ItemOrder.LARGEST and after == "12~":
            continue  # an amount and an empty id are a place
        assert list_items(store, NAME, ItemQuestion(order=order, after=after)) == first


def test_breaks_of_a_run_follow_one_another_the_largest_first(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_breaks(store, NAME, LAST_BROKEN, break_class=None, after="").breaks
    assert [one.amount_minor for one in whole] == [9_000, 4_200, 1_500]
    of_class = read_breaks(store, NAME, LAST_BROKEN, break_class=BreakClass.TORN_TRANSACTION, after="").breaks
    assert of_class == whole[2:]
    monkeypatch.setattr(item_query_store, "LISTED_AT_ONCE", 2)
    first = read_breaks(store, NAME, LAST_BROKEN, break_class=None, after="")
    rest = read_breaks(store, NAME, LAST_BROKEN, break_class=None, after=first.next_after)
    assert (*first.breaks, *rest.breaks) == whole
    assert rest.next_after == ""


def test_a_break_knows_who_was_told_of_it(store: Engine) -> None:
    found = mismatch(payouts(), "pay-7")
    told = alerts_of_break(store, NAME, LAST_BROKEN, found.break_class)
    assert [(alert.action.value, alert.acknowledged_by) for alert in told] == [("trigger", ""), ("acknowledge", "Ada")]
    assert list(told[0].delivered_at) == ["file:alerts.jsonl"]
    assert alerts_of_break(store, NAME, LAST_BROKEN, BreakClass.PHANTOM_IN_TOPIC) == ()
    assert repairs_of_break(store, found.break_id) == ()


def test_a_break_knows_the_plan_that_repaired_it(store: Engine) -> None:
    (repair,) = repairs_of_break(store, missing(payouts(), "pay-2", 99).break_id)
    assert (repair.plan_id, repair.requested_by, repair.dag_id) == (done_plan(payouts()).plan_id, "Ada", "")


def test_a_break_knows_the_dag_that_was_started_for_it(store: Engine) -> None:
    found, action = missing(payouts(), "pay-2", 99).break_id, done_plan(payouts()).items[0].action_id
    say = text("update tallystick.compensation_action set outcome = cast(:outcome as jsonb) where action_id = :action")
    was = f'{{"topic": "{payouts().topics[0]}", "partition": 0, "offset": 271}}'
    for outcome, dag_id in (('{"dag_id": "refund", "dag_run_id": "1"}', "refund"), (was, "")):
        with store.begin() as connection:
            connection.execute(say, {"outcome": outcome, "action": action})
        assert [repair.dag_id for repair in repairs_of_break(store, found)] == [dag_id]


def test_a_plan_in_short_is_what_was_planned_with_its_sums(store: Engine) -> None:
    plan = waiting_plan(payouts())
    told = find_plan(store, plan.plan_id)
    assert told is not None
    assert (told.in_short.items, told.plan_hash, told.cut_n) == (plan.items, plan.plan_hash, LAST_BROKEN)
    (total,) = told.in_short.sums
    assert (total.kind, total.currency, total.items, total.amount_minor) == (RepairKind.REPUBLISH, "EUR", 2, 129_200)
    assert {(one.reason, one.breaks, one.match_keys) for one in told.in_short.left_out} == {
        (one.reason, 1, (one.match_key,)) for one in plan.left_out
    }
    assert (told.actions, told.counts) == ({}, {})
    assert find_plan(store, UUID(int=1)) is None


def test_a_plan_that_was_carried_out_knows_what_became_of_it(store: Engine) -> None:
    plan = done_plan(payouts())
    told = find_plan(store, plan.plan_id)
    assert told is not None
    assert [(entry.actor, entry.event) for entry in told.trail] == [
        ("Ada", "planned"),
        ("Grace", "agreed"),
        ("Grace", "approved"),
        ("Grace", "finished"),
    ]
    assert told.counts == {ActionState.DONE: 1}
    assert told.actions[plan.items[0].action_id].outcome["offset"] == 271


def test_plans_are_listed_the_newest_first_with_how_they_stand(store: Engine) -> None:
    listed = [(one.plan_id, one.last, one.sums[0].amount_minor) for one in list_plans(store, NAME, limit=9)]
    waiting, done = waiting_plan(payouts()), done_plan(payouts())
    assert listed == [(waiting.plan_id, "planned", 129_200), (done.plan_id, "finished", 99)]
    assert [one.plan_id for one in list_plans(store, NAME, limit=1)] == [waiting.plan_id]


def test_the_plan_of_a_thousand_items_is_read_without_most_of_them(store: Engine) -> None:
    """Nothing of it is kept: the transaction is taken back."""
    many = plan_of(
        payouts(),
        LAST_BROKEN,
        *(missing(payouts(), f"pay-{n}", n) for n in range(1_000, 2_000)),
        left_out=tuple(
            ExcludedBreak(break_id=UUID(int=n), match_key=f"k{n}", reason="over the cap") for n in range(1_000)
        ),
    )
    in_short = text("select tallystick.plan_in_short(cast(:body as jsonb))")
    with store.connect() as connection:
        found = connection.scalar(in_short, {"body": TypeAdapter(Plan).dump_json(many).decode()})
    assert [item["match_key"] for item in found["items"]] == [f"pay-{n}" for n in range(1_000, 1_100)]
    assert found["sums"] == [{"kind": "republish", "items": 1_000, "currency": "EUR", "amount_minor": 1_499_500}]
    assert found["left_out"] == [{"reason": "over the cap", "breaks": 1_000, "match_keys": ["k0", "k1", "k2"]}]


def test_a_plan_in_short_has_its_sums_and_reasons_in_one_order_whatever_the_plans(store: Engine) -> None:
    keys = [f"pay-{n}" for n in range(3)]
    plan = plan_of(payouts(), LAST_BROKEN, *(missing(payouts(), key, 10) for key in keys))
    usd, eur, reversed_usd = plan.items
    items = (replace(usd, currency="USD"), eur, replace(reversed_usd, currency="AUD", kind=RepairKind.REVERSE))
    reasons = ("rare", "late", "often", "often")
    left_out = tuple(
        ExcludedBreak(break_id=UUID(int=n), match_key=f"k{n}", reason=reason) for n, reason in enumerate(reasons)
    )
    body = TypeAdapter(Plan).dump_json(replace(plan, items=items, left_out=left_out)).decode()
    in_short = text("select tallystick.plan_in_short(cast(:body as jsonb))")
    with store.connect() as connection:
        found = connection.scalar(in_short, {"body": body})
    assert [(one["kind"], one["currency"]) for one in found["sums"]] == [
        ("republish", "EUR"),
        ("republish", "USD"),
        ("reverse", "AUD"),
    ]
    assert [(one["reason"], one["match_keys"]) for one in found["left_out"]] == [
        ("often", ["k2", "k3"]),
        ("late", ["k1"]),
        ("rare", ["k0"]),
    ]


def test_a_plan_in_short_has_the_transactions_that_it_ends(store: Engine) -> None:
    ending = planned()
    in_short = text("select tallystick.plan_in_short(cast(:body as jsonb))")
    with store.connect() as connection:
        found = connection.scalar(in_short, {"body": TypeAdapter(Plan).dump_json(ending).decode()})
    assert TypeAdapter(PlanInShort).validate_python(found).aborts == ending.aborts != ()


def test_the_cut_of_a_scheduled_run_is_found_and_the_versions_are_listed(store: Engine) -> None:
    assert cut_of_scheduler_run(store, NAME, run_id_of(LAST_HOUR)) == WINDOWS - 1
    assert cut_of_scheduler_run(store, NAME, "nobody") is None
    assert [(one.version, one.first_cut_n) for one in list_versions(store, NAME, limit=9)] == [(1, 0)]


def test_the_pages_show_what_is_stored(viewer: Any) -> None:
    overview = viewer.get(f"{BELOW}/").text
    assert "4 broken, 1 waiting" in overview and "1,382.00 EUR, 15.00 USD" in overview
    run = viewer.get(f"{BELOW}/run/{NAME}/{LAST_BROKEN}").text
    assert "3 breaks in 3 classes" in run
    only = viewer.get(f"{BELOW}/run/{NAME}/{LAST_BROKEN}?class=torn_transaction").text
    assert "pay-7" not in only and "order-pay-9" in only
    contract = viewer.get(f"{BELOW}/contract/{NAME}?kind=amount_mismatch&order=largest").text
    assert f"{BELOW}/break/{mismatch(payouts(), 'pay-7').break_id}" in contract
    assert f"{BELOW}/break/{missing(payouts(), 'pay-8', 4_200).break_id}" not in contract
    broken = viewer.get(f"{BELOW}/break/{mismatch(payouts(), 'pay-15').break_id}").text
    assert "finance wrote row 15 off: refunded by hand." in broken


def test_a_run_of_airflow_leads_to_its_cut(viewer: Any) -> None:
    found = viewer.get(f"{BELOW}/dag-run/reconcile_{NAME}/{run_id_of(LAST_HOUR)}")
    assert found.headers["location"] == f"{BELOW}/run/{NAME}/{WINDOWS - 1}"
    assert "No verdict yet" in viewer.get(f"{BELOW}/dag-run/reconcile_{NAME}/manual__1").text
    assert "None of Tallystick" in viewer.get(f"{BELOW}/dag-run/other/manual__1").text
    assert viewer.get(f"{BELOW}/dag/reconcile_{NAME}").headers["location"] == f"{BELOW}/contract/{NAME}"


def test_a_run_that_repairs_leads_to_the_plan_that_it_asks_about_and_its_dag_to_the_plans(viewer: Any) -> None:
    below = f"{BELOW}/dag-run/compensate_{NAME}"
    waiting = viewer.get(f"{below}/triggered__2026-03-02T18:15:00+00:00")
    assert waiting.headers["location"] == f"{BELOW}/plan/{waiting_plan(payouts()).plan_id}"
    assert viewer.get(f"{below}/manual__1").headers["location"] == f"{BELOW}/plan/{done_plan(payouts()).plan_id}"
    assert "has asked for no plan" in viewer.get(f"{below}/manual__2").text
    assert "has asked for no plan" in viewer.get(f"{BELOW}/dag-run/compensate_billing_payments/manual__1").text
    dag = viewer.get(f"{BELOW}/dag/compensate_{NAME}")
    assert dag.headers["location"] == f"{BELOW}/contract/{NAME}#plans"


@pytest.mark.parametrize("address", [f"/dag/compensate_{NAME}", f"/dag-run/compensate_{NAME}/manual__1"])
def test_who_may_not_read_the_books_is_not_led_to_their_plans(stranger: Any, address: str) -> None:
    assert stranger.get(BELOW + address).status_code == 403


def test_a_report_is_served_as_it_was_written_and_may_run_nothing(viewer: Any, store: Engine, home: Any) -> None:
    from tallystick.report.write_report import write_report

    run = read_run(store, NAME, LAST_BROKEN)
    assert run is not None
    path = write_report(run, payouts(), home / "artifacts")
    try:
        answer = viewer.get(f"{BELOW}/report/{NAME}/{LAST_BROKEN}")
    finally:
        path.unlink()
    assert answer.status_code == 200 and "BROKEN" in answer.text
    policy = answer.headers["content-security-policy"]
    assert "sandbox" in policy and "script-src" not in policy and policy.startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("base", "link"),
    [
        ("https://wiki/{space}", "https://wiki/{space}/amount_mismatch.md"),
        ("https://wiki/{alert}/", "https://wiki/amount_mismatch/amount_mismatch.md"),
        ("https://wiki/{", "https://wiki/{/amount_mismatch.md"),
    ],
)
def test_a_break_leads_to_its_runbook_whatever_braces_the_address_has(
    viewer: Any, monkeypatch: pytest.MonkeyPatch, base: str, link: str
) -> None:
    monkeypatch.setenv("TALLYSTICK_RUNBOOKS_URL", base)
    answer = viewer.get(f"{BELOW}/break/{mismatch(payouts(), 'pay-7').break_id}")
    assert (answer.status_code, f'href="{link}"' in answer.text) == (200, True)


def test_a_store_that_is_gone_is_told_without_its_password(viewer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick_airflow.pages import app

    app.STORES.clear()
    connection = '{"conn_type": "postgres", "host": "127.0.0.1", "port": 9, "login": "x", "password": "s3cret"}'
    with monkeypatch.context() as gone:
        gone.setenv("AIRFLOW_CONN_TALLYSTICK_STORE", connection)
        answer = viewer.get(f"{BELOW}/")
    assert answer.status_code == 503
    assert "127.0.0.1:9" in answer.text and "s3cret" not in answer.text
    assert viewer.get(f"{BELOW}/").status_code == 200  # the failure is not kept


def test_the_readers_connection_cannot_write(store_dsn: str, store: Engine) -> None:
    from sqlalchemy.exc import SQLAlchemyError

    from tallystick.store.engine import open_store_to_read

    reader = open_store_to_read(lambda: store_dsn, connections_max=1)
    with reader.connect() as connection, pytest.raises(SQLAlchemyError, match="read-only"):
        connection.execute(text("delete from tallystick.sample"))
    reader.dispose()


def test_a_runs_page_has_what_its_own_expectations_found_and_another_runs_has_not(viewer: Any, store: Engine) -> None:
    outcome = ExpectationsOutcome(module=MODULE, met=1, not_met=(not_met(),))
    row = {"contract": NAME, "cut_n": FIRST_BROKEN, "body": asdict(outcome)}
    with store.begin() as connection:
        connection.execute(insert(expectations_outcome), row)  # alone: other tests count the alerts
    page = viewer.get(f"{BELOW}/run/{NAME}/{FIRST_BROKEN}").text
    assert '<a href="#expectations">' in page
    assert "A window has at least a hundred events." in page
    assert "#expectations" not in viewer.get(f"{BELOW}/run/{NAME}/{LAST_BROKEN}").text


@pytest.mark.parametrize("is_there", [True, False])
def test_two_who_ask_first_open_one_store_and_a_failure_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    from tallystick_airflow.pages import app

    opened: list[Engine] = []
    second_came = threading.Event()

    class Waited(Future[Engine]):
        """It is noticed who waits for it."""

        def result(self, timeout: float | None = None) -> Engine:
            second_came.set()
            return super().result(timeout)

    def open_slowly(*_: object, **__: object) -> Engine:
        opened.append(create_engine("sqlite://"))
        if len(opened) == 1:
            others.append(beside.submit(app.store_at, "some_store"))
            assert second_came.wait(60)
        second_came.set()
        if not is_there:
            raise StoreUnreachable("gone")
        return opened[-1]

    monkeypatch.setattr(app, "STORES", {}, raising=False)
    monkeypatch.setattr(app, "Future", Waited, raising=False)
    monkeypatch.setattr(app, "open_store_to_read", open_slowly)
    others: list[Future[Engine]] = []
    with ThreadPoolExecutor(1) as beside:
        if is_there:
            first = app.store_at("some_store")
            assert [others[0].result(), app.store_at("some_store")] == [first, first]
            assert opened == [first]
        else:
            with pytest.raises(StoreUnreachable):
                app.store_at("some_store")
            with pytest.raises(StoreUnreachable):
                others[0].result()
            assert len(opened) == 1
            with pytest.raises(StoreUnreachable):
                app.store_at("some_store")
            assert len(opened) == 2
