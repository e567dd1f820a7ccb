"""Acting needs the right to trigger the compensation, the form of our own page, and leaves its line in the trail."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from tallystick.model.cut import Cut
from tallystick.model.finding_names import BreakClass
from tallystick.store.alerts.incident_store import read_incidents
from tallystick.store.plans.plan_store import read_audit
from tallystick.store.runs.cut_store import claim_attempt, last_cut, save_cut
from tests.stored_books import done_plan, mismatch, missing, payments, payouts, torn, waiting_plan

BELOW = "/tallystick"
NAME = payouts().name
MISMATCH, TORN = mismatch(payouts(), "pay-7").break_id, torn(payouts(), "pay-9").break_id
ROUTES = {
    f"/contract/{NAME}/acknowledge": {"alert": BreakClass.TORN_TRANSACTION.value},
    f"/contract/{NAME}/plan": {},
    f"/break/{TORN}/write-off": {"reason": "refunded"},
    f"/run/{NAME}/1/close": {"reason": "nobody can read it"},
}
"""Each acting route, with a form that would be right."""


pytestmark = pytest.mark.usefixtures("own_store")
TRIGGER = "airflow.api.common.trigger_dag.trigger_dag"
"""How Airflow starts a run."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Airflow was asked to start. Nothing is: no DAG is serialized here, so this end is a fake."""

    runs: list[dict[str, Any]] = []
    monkeypatch.setattr(TRIGGER, lambda dag_id, **rest: runs.append({"dag_id": dag_id, **rest}))
    return runs


@pytest.fixture(params=[{"is_paused": True}, {"is_stale": True}], ids=["paused", "stale"])
def unfit(request: pytest.FixtureRequest, app: Any) -> Iterator[str]:
    """The compensation's DAG cannot run; what the page is to say of it."""
    from tests.pages.readers import change_dag

    change_dag(f"compensate_{NAME}", **request.param)
    yield "is paused" if "is_paused" in request.param else "Airflow does not know"
    change_dag(f"compensate_{NAME}", is_paused=False, is_stale=False)


def token_of(user: Any) -> str:
    """What the page gives its own forms; "" where it shows none."""
    _, _, rest = user.get(f"{BELOW}/contract/{NAME}").text.partition('name="token" value="')
    return rest.partition('"')[0]


def trail(store: Engine) -> list[tuple[str, str]]:
    return [(entry.actor, entry.event) for entry in read_audit(store, NAME) if entry.plan_id is None]


def test_these_are_all_the_routes_that_take_a_post() -> None:
    from tallystick_airflow.pages.app import app

    posts = {route.path for route in app.routes if "POST" in getattr(route, "methods", ())}
    assert posts == {
        "/contract/{contract_name}/acknowledge",
        "/contract/{contract_name}/plan",
        "/break/{break_id}/write-off",
        "/run/{contract_name}/{cut_n}/close",
        "/trace",
    }


@pytest.mark.parametrize(("address", "form"), ROUTES.items())
def test_nobody_else_may_act(
    client: Any, viewer: Any, stranger: Any, op: Any, own_store: Engine, address: str, form: Any
) -> None:
    before, token = trail(own_store), token_of(op)
    assert client.post(BELOW + address, data={**form, "token": token}).status_code == 401
    assert viewer.post(BELOW + address, data={**form, "token": token}).status_code == 403
    hidden = 404 if address.startswith("/break") else 403
    assert stranger.post(BELOW + address, data={**form, "token": token}).status_code == hidden
    assert trail(own_store) == before


@pytest.mark.parametrize(("address", "form"), ROUTES.items())
def test_who_lacks_one_of_the_two_rights_may_not_act_with_a_form_of_their_own(
    blind_op: Any, reading_op: Any, own_store: Engine, address: str, form: Any
) -> None:
    """The token is right, so that only the missing right speaks against it."""
    from tallystick_airflow.pages.action_auth import _signer

    before = trail(own_store)
    for who, name, status in ((blind_op, "blind_op", (403, 404)), (reading_op, "reading_op", (403,))):
        answer = who.post(BELOW + address, data={**form, "token": _signer().dumps(name)})
        assert answer.status_code in status, name
        assert "another page" not in answer.text
    assert trail(own_store) == before


@pytest.mark.parametrize(("address", "form"), ROUTES.items())
def test_a_form_of_another_site_changes_nothing(
    op: Any, other_op: Any, own_store: Engine, address: str, form: Any
) -> None:
    before, token = trail(own_store), token_of(op)
    assert len(token) > 20
    for wrong in ("", "x", token[:-1], token_of(other_op)):
        assert op.post(BELOW + address, data={**form, "token": wrong}).status_code in (403, 422)
    assert op.post(BELOW + address, data=form).status_code == 422
    assert op.get(BELOW + address).status_code == 405
    assert trail(own_store) == before


def test_a_token_that_is_too_old_is_refused(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick_airflow.pages import action_auth

    token = token_of(op)
    monkeypatch.setattr(action_auth, "TOKEN_SECONDS_MAX", -1)
    answer = op.post(f"{BELOW}/contract/{NAME}/plan", data={"token": token})
    assert (answer.status_code, "Load the page again" in answer.text) == (403, True)


@pytest.mark.parametrize("address", [f"/contract/{NAME}", f"/break/{MISMATCH}"])
def test_who_may_not_act_sees_no_form_and_who_may_does(viewer: Any, op: Any, address: str) -> None:
    assert 'method="post"' not in viewer.get(BELOW + address).text
    assert 'method="post"' in op.get(BELOW + address).text


def test_an_incident_is_acknowledged_once(op: Any, own_store: Engine) -> None:
    form = {"alert": BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED.value, "token": token_of(op)}
    done = op.post(f"{BELOW}/contract/{NAME}/acknowledge", data=form)
    assert (done.status_code, done.headers["location"]) == (303, f"{BELOW}/contract/{NAME}?done=taken-on")
    assert "You acknowledged the incident" in op.get(done.headers["location"]).text
    taken = {one.name: one.taken_on_by for one in read_incidents(own_store, NAME)}
    assert taken[BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED] == "op"
    assert trail(own_store)[-1] == ("op", "acknowledged")
    again = op.post(f"{BELOW}/contract/{NAME}/acknowledge", data=form)
    assert again.status_code == 409
    assert "is acknowledged already, by op" in again.text


def test_a_break_is_written_off_with_a_reason_and_by_name(op: Any, own_store: Engine) -> None:
    address = f"{BELOW}/break/{TORN}/write-off"
    empty = op.post(address, data={"reason": "  ", "token": token_of(op)})
    assert (empty.status_code, "Nothing was changed" in empty.text) == (409, True)
    no_text = op.post(address, data={"reason": "paid\0", "token": token_of(op)})
    assert (no_text.status_code, "got a NUL character" in no_text.text) == (409, True)
    done = op.post(address, data={"reason": "paid by hand, case 4711", "token": token_of(op)})
    assert (done.status_code, done.headers["location"]) == (303, f"{BELOW}/break/{TORN}?done=written-off")
    page = op.get(done.headers["location"]).text
    assert "off: paid by hand, case 4711." in page
    assert "No action: the break is written off" in page
    assert trail(own_store)[-1] == ("op", "written_off")
    assert op.post(address, data={"reason": "again", "token": token_of(op)}).status_code == 409


def test_a_plan_is_asked_for_in_the_name_of_who_asks(op: Any, own_store: Engine, asked: list[dict[str, Any]]) -> None:
    done = op.post(f"{BELOW}/contract/{NAME}/plan", data={"token": token_of(op)})
    assert (done.status_code, done.headers["location"]) == (303, f"{BELOW}/contract/{NAME}?done=plan-asked#plans")
    (run,) = asked
    assert (run["dag_id"], run["triggering_user_name"], run["conf"]) == (f"compensate_{NAME}", "op", {"cut_n": 29})
    entry = read_audit(own_store, NAME)[-1]
    assert (entry.actor, entry.event) == ("op", "plan_asked_for")
    assert entry.detail == {"cut_n": 29, "scheduler_run_id": run["run_id"]}


def test_a_contract_without_repairs_is_told_so_and_nothing_is_started(
    op: Any, own_store: Engine, asked: list[dict[str, Any]]
) -> None:
    name = payments().name
    assert payments().compensation is None
    answer = op.post(f"{BELOW}/contract/{name}/plan", data={"token": token_of(op)})
    assert (answer.status_code, "allows no repair" in answer.text) == (409, True)
    assert (asked, read_audit(own_store, name)) == ([], ())


def test_a_compensation_that_would_not_run_is_not_asked(op: Any, asked: list[dict[str, Any]], unfit: str) -> None:
    answer = op.post(f"{BELOW}/contract/{NAME}/plan", data={"token": token_of(op)})
    assert (answer.status_code, unfit in answer.text, asked) == (409, True, [])


def test_a_start_that_airflow_refuses_is_told_and_who_asked_stands_in_the_trail(
    op: Any, own_store: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.exceptions import AirflowException

    def refuse(*_: Any, **rest: Any) -> None:
        assert read_audit(own_store, NAME)[-1].detail["scheduler_run_id"] == rest["run_id"]
        raise AirflowException("no serialized DAG")

    monkeypatch.setattr(TRIGGER, refuse)
    answer = op.post(f"{BELOW}/contract/{NAME}/plan", data={"token": token_of(op)})
    assert (answer.status_code, "no serialized DAG" in answer.text) == (409, True)
    assert trail(own_store)[-1] == ("op", "plan_asked_for")


@pytest.mark.parametrize(("judged", "cut_n"), [(2, 29), (1, 28), (0, None)])
def test_a_plan_is_asked_for_up_to_the_newest_cut_that_has_a_verdict(
    op: Any, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, judged: int, cut_n: int | None
) -> None:
    from tallystick.store.views.overview_store import ContractOverview, read_overview
    from tallystick_airflow.pages import actions

    def read(engine: Engine, name: str, *, windows: int) -> ContractOverview:
        book = read_overview(engine, name, windows=windows)
        assert book is not None
        kept = [one if n < judged else replace(one, verdict=None) for n, one in enumerate(book.windows)]
        return replace(book, windows=tuple(kept))

    monkeypatch.setattr(actions, "read_overview", read)
    answer = op.post(f"{BELOW}/contract/{NAME}/plan", data={"token": token_of(op)})
    assert [run["conf"] for run in asked] == ([] if cut_n is None else [{"cut_n": cut_n}])
    if cut_n is None:
        assert (answer.status_code, "no cut has a verdict yet" in answer.text) == (409, True)


def test_a_write_off_waits_for_a_cut_that_is_being_judged(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick.store.runs.cut_store import CutAlreadyOpen
    from tallystick_airflow.pages import actions

    def busy(*_: Any) -> None:
        raise CutAlreadyOpen("cut 30 is being judged")

    monkeypatch.setattr(actions, "write_off_break", busy)
    answer = op.post(f"{BELOW}/break/{MISMATCH}/write-off", data={"reason": "refunded", "token": token_of(op)})
    assert (answer.status_code, "cut 30 is being judged" in answer.text) == (409, True)


def test_a_break_that_no_repair_takes_offers_none(op: Any) -> None:
    repairable = missing(payouts(), "pay-1", 125_000).break_id
    assert "Ask for a plan" in op.get(f"{BELOW}/break/{repairable}").text
    assert "Ask for a plan" not in op.get(f"{BELOW}/break/{MISMATCH}").text


def test_a_waiting_plan_leads_to_airflows_approval_and_a_done_one_does_not(viewer: Any) -> None:
    waiting = viewer.get(f"{BELOW}/plan/{waiting_plan(payouts()).plan_id}").text
    run = "triggered__2026-03-02T18%3A15%3A00%2B00%3A00"
    assert f'href="/dags/compensate_{NAME}/runs/{run}/tasks/approve/required_actions"' in waiting
    assert "1,292.00 EUR" in waiting and "2 events" in waiting
    done = viewer.get(f"{BELOW}/plan/{done_plan(payouts()).plan_id}").text
    assert "required_actions" not in done
    assert "offset 271 of billing.payouts[0]" in done


def opened_after(store: Engine) -> Cut:
    """The next cut of the books, stored and without a verdict."""
    newest = last_cut(store, NAME)
    assert newest is not None
    ends = [(part, part.offsets.kafka_offset_end) for part in newest.topic_slices]
    cut = replace(
        newest,
        n=newest.n + 1,
        topic_slices=tuple(
            replace(part, offsets=replace(part.offsets, kafka_offset_start=end, kafka_offset_end=end))
            for part, end in ends
        ),
        ledger_slice=replace(newest.ledger_slice, position_start=newest.ledger_slice.position_end),
    )
    save_cut(store, payouts(), cut, scheduler_run_id="manual__stuck")
    return cut


def test_a_cut_that_nobody_can_judge_is_closed_from_its_page(op: Any, viewer: Any, own_store: Engine) -> None:
    cut = opened_after(own_store)
    address, form = f"{BELOW}/run/{NAME}/{cut.n}", {"reason": "its batch is corrupt", "token": token_of(op)}
    assert "no verdict yet" in op.get(address).text
    untried = op.post(f"{address}/close", data=form)
    assert (untried.status_code, "nobody has tried to judge it" in untried.text) == (409, True)
    claim_attempt(own_store, NAME, cut.n)
    assert ("Close it unread" in op.get(address).text, "Close it unread" in viewer.get(address).text) == (True, False)
    found = viewer.get(f"{BELOW}/dag-run/reconcile_{NAME}/manual__stuck")
    assert found.headers["location"] == address
    for no_text in (" ", "corrupt\0"):
        assert op.post(f"{address}/close", data={**form, "reason": no_text}).status_code == 409
    closed = op.post(f"{address}/close", data=form)
    assert (closed.status_code, closed.headers["location"]) == (303, address)
    page = op.get(address).text
    assert "its batch is corrupt" in page and "Close it unread" not in page
    assert "This run read nothing, so it planted nothing." in page
    assert "Settings as the newest run that read any found them." in op.get(f"{BELOW}/contract/{NAME}").text
    assert trail(own_store)[-1][1] == "cut_closed"
    assert op.post(f"{address}/close", data=form).status_code == 409
