"""Every route is closed to anonymous and to who may not read the DAG; what is shown is closed to other origins."""

import subprocess
import sys
from typing import Any

import pytest
from starlette.routing import Route

from tests.stored_books import FIRST_BROKEN, missing, payouts, waiting_plan

BREAK = missing(payouts(), "pay-1", 125_000).break_id
BELOW = "/tallystick"
OF_PAYOUTS = {
    "/contract/{contract_name}": "/contract/billing_payouts",
    "/run/{contract_name}/{cut_n}": f"/run/billing_payouts/{FIRST_BROKEN}",
    "/break/{break_id}": f"/break/{BREAK}",
    "/plan/{plan_id}": f"/plan/{waiting_plan(payouts()).plan_id}",
    "/dag/{dag_id}": "/dag/reconcile_billing_payouts",
    "/dag-run/{dag_id}/{run_id:path}": "/dag-run/reconcile_billing_payouts/scheduled__2026-03-02T18:15:00+00:00",
    "/report/{contract_name}/{cut_n}": f"/report/billing_payouts/{FIRST_BROKEN}",
    "/data-docs/{contract_name}/{path:path}": "/data-docs/billing_payouts/index.html",
}
"""Each route of a contract, with an address that is there."""
OF_EVERYBODY = {"/": "/", "/trace": "/trace", "/assets/{name}": "/assets/pages.css"}


def routes() -> list[Any]:
    from tallystick_airflow.pages.app import app

    return list(app.routes)


def test_every_route_of_the_app_is_walked_below_or_acts() -> None:
    read = {route.path for route in routes() if "POST" not in route.methods}
    assert read == set(OF_PAYOUTS | OF_EVERYBODY)


def test_loading_the_plugin_does_not_load_the_pages() -> None:
    script = "import tallystick_airflow.plugin, sys; print([name for name in sys.modules if 'pages_' in name])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]"


def test_nothing_is_mounted_and_only_the_acting_routes_take_a_post() -> None:
    """Those are walked in test_acting; what takes a key, so that it stands in no address, in test_trace."""
    acting = [route for route in routes() if route.endpoint.__module__ == "tallystick_airflow.pages.actions"]
    assert all(isinstance(route, Route) for route in routes())
    assert all(route.methods == {"POST"} for route in acting)
    others = [route for route in routes() if route not in acting]
    assert {route.path for route in others if not route.methods <= {"GET", "HEAD"}} == {"/trace"}


@pytest.mark.parametrize("address", (OF_PAYOUTS | OF_EVERYBODY).values())
def test_anonymous_is_refused_on_every_route(client: Any, address: str) -> None:
    answer = client.get(BELOW + address)
    assert answer.status_code == 401
    assert "billing" not in answer.text


@pytest.mark.parametrize("address", (OF_PAYOUTS | OF_EVERYBODY).values())
def test_a_wrong_token_is_refused_on_every_route(client: Any, address: str) -> None:
    assert client.get(BELOW + address, headers={"Authorization": "Bearer x.y.z"}).status_code in (401, 403)


@pytest.mark.parametrize("address", OF_PAYOUTS.values())
def test_who_may_not_read_the_dag_is_refused_on_every_route_of_its_contract(stranger: Any, address: str) -> None:
    answer = stranger.get(BELOW + address)
    assert answer.status_code == (404 if "/break/" in address or "/plan/" in address else 403)
    assert "125" not in answer.text


@pytest.mark.parametrize("address", OF_PAYOUTS.values())
def test_who_may_read_the_dag_is_let_in(viewer: Any, address: str) -> None:
    answer = viewer.get(BELOW + address)
    expected = 404 if "report" in address or "data-docs" in address else 307 if "/dag" in address else 200
    assert answer.status_code == expected


def test_a_break_of_a_hidden_contract_looks_like_one_that_is_not_there(stranger: Any) -> None:
    hidden, absent = (stranger.get(f"{BELOW}/break/{one}") for one in (BREAK, "5a1d6f0e-0000-5000-8000-000000000000"))
    assert hidden.status_code == absent.status_code == 404
    assert hidden.json()["detail"].replace(str(BREAK), "") == absent.json()["detail"].replace(absent.url.path[-36:], "")


def test_the_overview_shows_what_its_reader_may_read_and_no_more(viewer: Any, stranger: Any) -> None:
    both, one = viewer.get(f"{BELOW}/").text, stranger.get(f"{BELOW}/").text
    assert ("billing_payouts" in both, "billing_payments" in both) == (True, True)
    assert ("billing_payouts" in one, "billing_payments" in one) == (False, True)


@pytest.mark.parametrize("address", ["/docs", "/redoc", "/openapi.json"])
def test_there_are_no_open_docs(viewer: Any, address: str) -> None:
    assert viewer.get(BELOW + address).status_code == 404


@pytest.mark.parametrize("address", ["/", "/contract/billing_payouts", "/run/billing_payouts/12", f"/break/{BREAK}"])
def test_a_page_runs_no_inline_script_and_asks_no_other_host(viewer: Any, address: str) -> None:
    answer = viewer.get(BELOW + address)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy and "http" not in policy
    assert "<style" not in answer.text and " style=" not in answer.text and "<script>" not in answer.text
    assert "http" not in answer.text


@pytest.mark.parametrize("named", ["", "https://airflow.example/team/"])
def test_the_address_of_a_break_is_that_of_airflows_settings_whatever_host_a_request_names(
    viewer: Any, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", named)
    page = viewer.get(f"{BELOW}/break/{BREAK}", headers={"Host": "evil.example"}).text
    assert f"<code>{named.rstrip('/')}{BELOW}/break/{BREAK}</code>" in page
    assert "evil" not in page


@pytest.mark.parametrize("address", ["/", "/assets/pages.js", "/nowhere", "/break/no-id"])
def test_every_answer_carries_the_headers(viewer: Any, client: Any, address: str) -> None:
    for answer in (viewer.get(BELOW + address), client.get(BELOW + address)):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]


def test_pages_are_kept_by_no_cache_and_assets_are(viewer: Any) -> None:
    assert viewer.get(f"{BELOW}/").headers["cache-control"] == "no-store"
    assert "immutable" in viewer.get(f"{BELOW}/assets/pages.js").headers["cache-control"]


@pytest.mark.parametrize(
    "address",
    [
        "/data-docs/../reports/billing_payouts/12.html",
        "/data-docs/%2e%2e/secret.txt",
        "/data-docs/billing_payouts/..%2f..%2f..%2fairflow.db",
        "/data-docs/billing_payouts/%2fetc%2fpasswd",
        "/data-docs/billing_payouts/%00",
        "/report/..%2f..%2fairflow/1",
        "/assets/..%2fpages.css",
        pytest.param(f"/data-docs/billing_payouts/{'x' * 6000}", id="a name that no disk has"),
        pytest.param(f"/data-docs/billing_payouts/{'x/' * 3000}", id="a path that no disk has"),
    ],
)
def test_no_address_leads_out_of_its_folder(viewer: Any, address: str) -> None:
    assert viewer.get(BELOW + address).status_code in (404, 422)


@pytest.mark.parametrize(
    "address",
    [
        "/contract/billing_payouts?search=%00",
        "/contract/billing_payouts?after=%00",
        "/contract/billing_payouts?order=sideways",
        "/contract/billing-payouts",
        "/run/billing_payouts/99999999999",
        "/run/billing_payouts/-1",
        "/break/5a1d6f0e",
        "/dag/reconcile_nope%00",
        "/dag-run/reconcile_nope%00/x",
        "/dag-run/reconcile_billing_payouts/x%00",
    ],
)
def test_what_cannot_be_asked_is_refused_before_the_store_is(viewer: Any, address: str) -> None:
    assert viewer.get(BELOW + address).status_code == 422
