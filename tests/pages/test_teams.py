"""Each team's pages read its own store, and open by the right on its own DAGs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.servers.ports import free_port
from tallystick.connections.connections import ConnectionNotGiven
from tallystick_airflow.connections import STORE_CONNECTION
from tests.stored_books import payments, payouts, waiting_plan

TOP, PAY = "/tallystick", "/tallystick/team/pay_"
TEAMS = {"": {"dags": {"billing_payments": "nightly"}}, "pay_": {"store": "pay_store"}}
NAME, OTHER = payouts().name, payments().name
PLAN = waiting_plan(payouts())


@pytest.fixture(scope="module", autouse=True)
def _their_dags(app: Any) -> None:
    from tests.pages.readers import add_dags

    add_dags(f"pay_reconcile_{NAME}", f"pay_compensate_{NAME}", "nightly")


@pytest.fixture(autouse=True)
def _teams(app: Any, store_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The team of payments has a store of its own, which is a copy; one contract at the top is a task group."""
    from tallystick_airflow.pages import app as pages_app
    from tests.pages.conftest import airflow_connection

    monkeypatch.setenv("TALLYSTICK_TEAMS", json.dumps(TEAMS))
    monkeypatch.setenv("AIRFLOW_CONN_PAY_STORE", airflow_connection(store_dsn))
    pages_app.STORES.clear()
    yield
    pages_app.STORES.clear()


def gone(monkeypatch: pytest.MonkeyPatch, connection_id: str) -> None:
    """That store does not answer."""
    nobody = {"conn_type": "postgres", "host": "127.0.0.1", "port": free_port(), "login": "l", "schema": "s"}
    monkeypatch.setenv(f"AIRFLOW_CONN_{connection_id.upper()}", json.dumps(nobody))


@pytest.mark.parametrize(
    ("lost", "answers"), [("pay_store", {TOP: 200, PAY: 503}), (STORE_CONNECTION, {TOP: 503, PAY: 200})]
)
def test_a_page_reads_its_teams_store(
    viewer: Any, monkeypatch: pytest.MonkeyPatch, lost: str, answers: dict[str, int]
) -> None:
    gone(monkeypatch, lost)
    assert {below: viewer.get(f"{below}/contract/{NAME}").status_code for below in answers} == answers


def test_the_links_of_a_teams_page_stay_below_it(viewer: Any) -> None:
    page = viewer.get(f"{PAY}/contract/{NAME}").text
    links = [part.partition('"')[0] for part in page.split('href="')[1:] if part.startswith("/tallystick")]
    assert len(links) > 5
    assert all(link.startswith(f"{PAY}/") for link in links)


def test_a_teams_page_opens_by_the_right_on_its_own_dag(as_user: Any) -> None:
    stranger = as_user("stranger")  # denied reconcile_billing_payouts, and nothing else
    assert stranger.get(f"{TOP}/contract/{NAME}").status_code == 403
    assert stranger.get(f"{PAY}/contract/{NAME}").status_code == 200


def test_nobody_enters_a_team_without_a_login(client: Any) -> None:
    for address in ("/", f"/contract/{NAME}", f"/dag/pay_reconcile_{NAME}"):
        answer = client.get(PAY + address)
        assert (answer.status_code, "billing" in answer.text) == (401, False)


def test_an_act_needs_the_right_on_the_teams_own_compensation(as_user: Any) -> None:
    """And does nothing without its form's token."""
    form = {"token": "none", "alert": "amount_mismatch"}
    denied = as_user("reading_op", "OP")  # denied compensate_billing_payouts
    at_top = denied.post(f"{TOP}/contract/{NAME}/acknowledge", data=form)
    at_pay = denied.post(f"{PAY}/contract/{NAME}/acknowledge", data=form)
    assert (at_top.status_code, "This form is too old" in at_top.text) == (403, False)
    assert (at_pay.status_code, "This form is too old" in at_pay.text) == (403, True)


def test_the_tab_of_a_teams_dag_leads_to_its_pages(viewer: Any) -> None:
    for tab, then in (
        (f"/dag/pay_reconcile_{NAME}", f"{PAY}/contract/{NAME}"),
        (f"/dag/pay_compensate_{NAME}", f"{PAY}/contract/{NAME}#plans"),
    ):
        there = viewer.get(TOP + tab).headers["location"]
        assert there == PAY + tab
        assert viewer.get(there).headers["location"] == then
    run = viewer.get(f"{TOP}/dag-run/pay_reconcile_{NAME}/manual__a+b").headers["location"]
    assert run == f"{PAY}/dag-run/pay_reconcile_{NAME}/manual__a%2Bb"
    assert "No verdict yet" in viewer.get(run).text


def test_an_approval_is_asked_for_on_the_teams_dag(viewer: Any) -> None:
    page = viewer.get(f"{PAY}/plan/{PLAN.plan_id}").text
    assert f'href="/dags/pay_compensate_{NAME}/runs/' in page


def test_a_contract_in_a_group_opens_by_the_right_on_the_dag_that_has_it(viewer: Any) -> None:
    assert viewer.get(f"{TOP}/dag/nightly").headers["location"] == f"{TOP}/contract/{OTHER}"
    assert viewer.get(f"{TOP}/contract/{OTHER}").status_code == 200
    tab = viewer.get(f"{TOP}/dag/reconcile_{OTHER}")  # a DAG of that id is not the one that has it
    assert "None of Tallystick" in tab.text


def test_the_overview_names_the_other_teams_that_a_user_may_read(viewer: Any) -> None:
    top, pay = viewer.get(f"{TOP}/").text, viewer.get(f"{PAY}/").text
    assert f'Other teams: <a href="{PAY}/">pay_</a>' in top
    assert f'Other teams: <a href="{TOP}/">without a prefix</a>' in pay
    assert (f"{TOP}/contract/{OTHER}" in top, f"{PAY}/contract/{NAME}" in pay, OTHER in pay) == (True, True, False)


def test_without_teams_there_is_one_and_its_overview_names_none(viewer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TALLYSTICK_TEAMS")
    assert "Other teams" not in viewer.get(f"{TOP}/").text
    assert viewer.get(f"{PAY}/contract/{NAME}").status_code == 404
    assert "None of Tallystick" in viewer.get(f"{TOP}/dag/pay_reconcile_{NAME}").text


def test_an_unknown_team_is_no_page(viewer: Any) -> None:
    assert viewer.get(f"{TOP}/team/nobody_/contract/{NAME}").status_code == 404


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"pay_": "store"}',
        '{"pay_": {"stor": "x"}}',
        '{"pay reconcile_": {}}',
        '{"a_reconcile_": {}}',
        '{"": {"dags": []}}',
        '{"": {"dags": {"orders": 1}}}',
    ],
)
def test_a_setting_that_is_none_is_said_on_the_page(viewer: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    from tallystick_airflow.pages.teams import read_teams

    with pytest.raises(ConnectionNotGiven, match="TALLYSTICK_TEAMS: expected a JSON object such as"):
        read_teams({"TALLYSTICK_TEAMS": text})
    monkeypatch.setenv("TALLYSTICK_TEAMS", text)
    answer = viewer.get(f"{TOP}/contract/{NAME}")
    assert (answer.status_code, "TALLYSTICK_TEAMS: expected" in answer.text) == (503, True)
