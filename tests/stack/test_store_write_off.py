"""Writing off on a real store: what is stored, what later cuts carry, what on-call is told, and what is refused."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text
from typer.testing import CliRunner, Result

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.cli.app import app
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.executor.draw_plan import draw_plan
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.model.verdict import Verdict
from tallystick.store.alerts.alert_store import firing_names, pending_alerts
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.plans.claim_store import claim_actions
from tallystick.store.plans.plan_life_store import RUNS_ENDED, VERIFIED
from tallystick.store.plans.plan_store import append_audit, read_audit, record_done, save_plan
from tallystick.store.runs.cut_store import CutAlreadyOpen, claim_attempt, no_run_under_way
from tallystick.store.runs.open_item_store import open_items_as_of
from tallystick.store.runs.outstanding_store import outstanding_breaks, outstanding_classes
from tallystick.store.runs.run_store import commit_run, read_run

ADA = WriteOff(by="Ada", reason="refunded by hand", at_utc=datetime(2026, 3, 2, tzinfo=UTC))


@pytest.fixture
def found(store: Engine, books: Any) -> tuple[Break, Break]:
    """Two breaks of one class, found by cut 1, whose alert fires."""
    both = (books.missing("a"), books.missing("b"))
    alert = Alert(
        contract="payouts",
        cut_n=1,
        name=both[0].break_class,
        action=AlertAction.TRIGGER,
        severity=Severity.ERROR,
        summary="two are missing",
        details={},
        sinks=(),
    )
    books.commit(store, books.result(0))
    items = tuple(books.item(one, n=1) for one in both)
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=both, items=items), alerts=(alert,))
    return both


def give_up(store: Engine, one: Break, write_off: WriteOff = ADA) -> Any:
    return write_off_break(store, "payouts", str(one.break_id)[:13], write_off)


def test_a_break_is_written_off_right_after_the_run_that_found_it(store: Engine, found: tuple[Break, Break]) -> None:
    before = read_run(store, "payouts", 1)
    done = give_up(store, found[0])
    assert (done.cut_n, done.outstanding, done.alert_resolved) == (1, 1, False)
    assert [one.item_break for one in outstanding_breaks(store, "payouts")] == [found[1]]
    assert outstanding_classes(store, "payouts")[found[0].break_class].count == 1
    assert read_run(store, "payouts", 1) == before
    (line,) = read_audit(store, "payouts")
    assert (line.actor, line.event, line.detail["reason"]) == ("Ada", "written_off", "refunded by hand")
    assert line.detail["break_id"] == str(found[0].break_id)


def test_what_stands_after_a_run_is_told_as_that_run_left_it(
    store: Engine, books: Any, found: tuple[Break, Break]
) -> None:
    give_up(store, found[0])
    waiting = replace(books.item(books.missing("c"), n=2), state=ItemState.OPEN, break_id=None)
    books.commit(store, books.result(2, items=(waiting,)))
    books.commit(store, books.result(3, items=(books.item(found[1], n=3, state=ItemState.CLEARED),)))
    stood = [read_run(store, "payouts", n) for n in (0, 1, 2, 3)]
    assert [[(one.state, one.count, one.amount_minor) for one in run.standing] for run in stood if run] == [
        [],
        [(ItemState.BROKEN, 2, 2500)],
        [(ItemState.BROKEN, 1, 1250), (ItemState.OPEN, 1, 1250)],
        [(ItemState.OPEN, 1, 1250)],
    ]


def test_the_cut_after_it_carries_the_item_and_the_cut_itself_read_again_does_not(
    store: Engine, found: tuple[Break, Break]
) -> None:
    give_up(store, found[0])
    assert open_items_as_of(store, "payouts", 1) == ()
    carried = {item.match_key: (item.state, item.pairable) for item in open_items_as_of(store, "payouts", 2)}
    assert carried == {"a": (ItemState.WRITTEN_OFF, True), "b": (ItemState.BROKEN, True)}


def test_a_partner_that_comes_later_clears_it(store: Engine, books: Any, found: tuple[Break, Break]) -> None:
    give_up(store, found[0])
    books.commit(store, books.result(2, items=(books.item(found[0], n=2, state=ItemState.CLEARED),)))
    assert [item.match_key for item in open_items_as_of(store, "payouts", 3)] == ["b"]
    with pytest.raises(WriteOffRefused, match="already cleared, by cut 2"):
        give_up(store, found[0])


def test_a_break_of_an_older_cut_is_written_off_after_the_newest(
    store: Engine, books: Any, found: tuple[Break, Break]
) -> None:
    for n in (2, 3):
        books.commit(store, books.result(n))
    assert give_up(store, found[0]).cut_n == 3
    states = {item.match_key: item.state for item in open_items_as_of(store, "payouts", 3)}
    assert states == {"a": ItemState.BROKEN, "b": ItemState.BROKEN}


def test_the_last_of_a_class_resolves_its_alert_once(store: Engine, found: tuple[Break, Break]) -> None:
    give_up(store, found[0])
    assert firing_names(store, "payouts") == {found[0].break_class}
    assert give_up(store, found[1]).alert_resolved
    assert firing_names(store, "payouts") == frozenset()
    assert pending_alerts(store, "payouts") == ()  # this contract has no sink
    with store.connect() as connection:
        actions = connection.execute(text("select action, cut_n from tallystick.alert order by alert_id")).all()
    assert [tuple(one) for one in actions] == [("trigger", 1), ("resolve", 1)]


def test_written_off_twice_is_refused_and_changes_nothing(store: Engine, found: tuple[Break, Break]) -> None:
    give_up(store, found[0])
    with pytest.raises(WriteOffRefused, match="already written off, by Ada at 2026-03-02 00:00:00 UTC"):
        give_up(store, found[0], replace(ADA, by="Bob"))
    assert len(read_audit(store, "payouts")) == 1


def test_a_break_of_another_contract_is_refused(store: Engine, found: tuple[Break, Break]) -> None:
    with pytest.raises(WriteOffRefused, match=r"is one of contract payouts; expected one of another"):
        write_off_break(store, "another", str(found[0].break_id), ADA)


def test_while_a_run_judges_nothing_is_written_off(store: Engine, books: Any, found: tuple[Break, Break]) -> None:
    books.save(store, books.cut(2))
    with pytest.raises(CutAlreadyOpen, match="payouts: nothing was stored: a run is judging"):
        give_up(store, found[0])
    commit_run(store, books.result(2), attempt=claim_attempt(store, "payouts", 2), alerts=())
    assert give_up(store, found[0]).cut_n == 2


def test_while_it_is_written_off_no_cut_can_be_stored(store: Engine, books: Any, found: tuple[Break, Break]) -> None:
    with store.connect() as connection, no_run_under_way(connection, "payouts"):
        with pytest.raises(Exception, match="lock timeout"), store.begin() as other:
            other.execute(text("set local lock_timeout = '200ms'"))
            other.execute(
                text(
                    "insert into tallystick.cut select contract, 2, window_start_utc, window_end_utc, marked_at_utc,"
                    " now_utc, contract_fingerprint, 'other', 0, true from tallystick.cut where n = 1"
                )
            )
        connection.rollback()
    books.save(store, books.cut(2))


def test_a_break_under_repair_is_refused(store: Engine, found: tuple[Break, Break]) -> None:
    plan_id = uuid4()
    with store.begin() as connection:
        connection.execute(
            text("insert into tallystick.compensation_plan values (:id, 'payouts', 1, 'hash', '{}', 'Bob')"),
            {"id": plan_id},
        )
        connection.execute(
            text("insert into tallystick.compensation_action values (:id, :found, :plan, 'executing')"),
            {"id": UUID(int=1), "found": found[0].break_id, "plan": plan_id},
        )
    with pytest.raises(WriteOffRefused, match=f"plan {plan_id} is repairing it"):
        give_up(store, found[0])
    assert len(outstanding_breaks(store, "payouts")) == 2


def test_the_command_line_writes_off_and_explain_tells_it(
    store_dsn: str, found: tuple[Break, Break], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", store_dsn)
    first, second = (str(one.break_id)[:8] for one in found)
    done = run("write-off", "payouts", first, "--by", "Ada", "--reason", "refunded by hand")
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        [
            f"break {found[0].break_id} of payouts is written off by Ada: 12.50 EUR",
            "missing_in_topic_never_produced: 1 more outstanding",
        ],
    )
    told = run("explain", first).stdout
    assert "Ada wrote it off at" in told
    assert "after cut 1: refunded by hand." in told
    document = json.loads(run("write-off", "payouts", second, "--by", "Ada", "--reason", "again", "--json").stdout)
    assert (document["item_ids"], document["outstanding_of_its_class"], document["alert_resolved"]) == (
        ["ledger:b"],
        0,
        True,
    )
    again = run("write-off", "payouts", first, "--by", "Bob", "--reason", "again")
    assert again.exit_code == 2
    assert again.stderr.startswith(f"break {found[0].break_id}: already written off, by Ada at ")
    unknown = run("write-off", "payouts", "0123456789", "--by", "Bob", "--reason", "again")
    assert unknown.exit_code == 2
    assert unknown.stderr.startswith("0123456789: no stored break has an id that begins so")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_what_a_dag_was_handed_is_written_off_once_its_run_was_seen_ended_and_a_cut_was_made_since(
    store: Engine, owned_store: Engine, books: Any
) -> None:
    rules = {
        "trigger": {"connection": "airflow", "dags": {"missing_in_topic_never_produced": "by_hand"}},
        "max_amount_minor": {"EUR": 100_000},
        "four_eyes_above_minor": {"EUR": 100_000},
    }
    document = books.contract.model_dump(mode="json", exclude_defaults=True) | {"compensation": rules}
    runs = replace(books, contract=Contract.model_validate(document))
    given, other = runs.missing("a"), runs.missing("b")
    runs.commit(store, runs.result(0))
    items = tuple(runs.item(one, n=1) for one in (given, other))
    runs.commit(store, runs.result(1, verdict=Verdict.BROKEN, breaks=(given, other), items=items))
    nobody = Connections(KafkaSettings({"bootstrap.servers": "nobody:9092"}), ledger_dsn="")
    plan = draw_plan(store, runs.contract, nobody, cut_n=1)
    save_plan(store, plan, requested_by="ada")
    by_break = {item.break_id: item.action_id for item in plan.items}

    def look(*ended: UUID) -> None:
        detail = {RUNS_ENDED: [str(one) for one in ended]}
        append_audit(store, "payouts", plan_id=plan.plan_id, actor="bob", event=VERIFIED, detail=detail)

    append_audit(store, "payouts", plan_id=plan.plan_id, actor="bob", event=VERIFIED, detail={"of": "an older version"})
    look(*by_break.values())  # before they were begun
    claim_actions(store, plan, plan.items, executor="one", outcome={}, allow=lambda *_: None)
    for item in plan.items:
        record_done(store, item.action_id, outcome={}, by_us=True)
    look(by_break[other.break_id])
    with pytest.raises(WriteOffRefused, match=f"nobody has seen its run {by_break[given.break_id]} ended"):
        give_up(store, given)
    with pytest.raises(WriteOffRefused, match="no cut made since has read"):
        give_up(store, other)
    with owned_store.begin() as connection:
        connection.execute(text("update tallystick.cut set marked_at_utc = clock_timestamp() where n = 1"))
    whole = "details || jsonb_build_object('mark', ends_at)"
    beyond = "details || jsonb_build_object('mark', ends_at + 1)"
    for side in ("ledger", "topic:%"):  # nobody knows which one a DAG changes
        mark_at(owned_store, side, beyond)
        with pytest.raises(WriteOffRefused, match="no cut made since has read all of what that changes"):
            give_up(store, other)
        mark_at(owned_store, side, whole)
    for by_time in ("true", "false"):
        with owned_store.begin() as connection:
            connection.execute(text(f"update tallystick.cut set by_time = {by_time} where n = 1"))
        if by_time == "true":
            with pytest.raises(WriteOffRefused, match="no cut made since has read all of what that changes"):
                give_up(store, other)
    assert give_up(store, other).cut_n == 1
    with pytest.raises(WriteOffRefused, match="nobody has seen"):
        give_up(store, given)


def mark_at(owned_store: Engine, side: str, details: str) -> None:
    """Say how far a side of cut 1 had been written when its window ended. details: SQL."""
    with owned_store.begin() as connection:
        asked = text(f"update tallystick.cut_slice set details = {details} where cut_n = 1 and side like :side")
        assert connection.execute(asked, {"side": side}).rowcount > 0
