"""A person logs in to Airflow and reads the books: in menu and tabs, by day and night, on a phone, by keyboard.

Every picture lands in build/screens/.
"""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, expect

from lab.servers.airflow import AirflowStack
from tests.stored_books import LAST_BROKEN, done_plan, mismatch, missing, payouts, waiting_plan

from .visiting import LogIn, inside, serious_faults, shot, visits

BREAK = mismatch(payouts(), "pay-7").break_id
REPAIRABLE = missing(payouts(), "pay-1", 125_000).break_id
PAGES = {
    "overview": "/tallystick/",
    "contract": "/tallystick/contract/billing_payouts",
    "run": f"/tallystick/run/billing_payouts/{LAST_BROKEN}",
    "break": f"/tallystick/break/{BREAK}",
    "plan": f"/tallystick/plan/{waiting_plan(payouts()).plan_id}",
    "plan-done": f"/tallystick/plan/{done_plan(payouts()).plan_id}",
}


@pytest.fixture
def log_in(browser: Browser, airflow: AirflowStack) -> Iterator[LogIn]:
    with visits(browser, airflow) as log_in:
        yield log_in


def test_from_airflows_menu_to_a_break_in_three_clicks(log_in: LogIn, airflow: AirflowStack) -> None:
    page = log_in()
    page.goto(f"{airflow.settings.base_url}/plugin/tallystick")
    frame = inside(page)
    expect(frame.get_by_role("heading", name="Contracts")).to_be_visible()
    shot(page, "airflow-overview")
    book = frame.get_by_role("article", name="billing_payouts")
    expect(book.get_by_role("img", name="2 broken")).to_be_visible()
    book.get_by_role("link", name=f"cut {LAST_BROKEN}").click()
    expect(frame.get_by_role("heading", name="BROKEN")).to_be_visible()
    shot(page, "airflow-run")
    frame.get_by_role("link", name="Amount mismatch").first.click()
    expect(frame.get_by_role("heading", name="Amount mismatch")).to_be_visible()
    expect(frame.get_by_role("img", name="billing.payouts[0] around offset 266")).to_be_visible()
    expect(frame.get_by_role("row", name="amount 10.00 EUR 100.00 EUR")).to_be_visible()
    shot(page, "airflow-break")


def test_airflow_offers_the_pages_where_a_person_looks_for_them(log_in: LogIn, airflow: AirflowStack) -> None:
    airflow.wait_dag("reconcile_billing_payouts", deadline_seconds=240)
    page = log_in()
    page.goto(f"{airflow.settings.base_url}/dags/reconcile_billing_payouts")
    page.get_by_role("link", name="Tallystick", exact=True).click()
    expect(inside(page).get_by_role("heading", name="Open items")).to_be_visible()
    shot(page, "airflow-dag-tab")
    page.get_by_role("button", name="Browse").click()
    page.get_by_role("menuitem", name="Tallystick").click()
    expect(inside(page).get_by_role("heading", name="Contracts")).to_be_visible()


def test_the_tab_on_a_run_shows_its_cut_or_says_that_there_is_none(airflow: AirflowStack, last_hour: object) -> None:
    headers = {"Authorization": f"Bearer {airflow.token('viewer')}"}
    address = f"{airflow.settings.base_url}/tallystick/dag-run/reconcile_billing_payouts"

    def get(run_id: str) -> httpx.Response:
        return httpx.get(f"{address}/{run_id}", headers=headers, timeout=60, follow_redirects=True)

    found = get(f"scheduled__{last_hour.isoformat().replace('+', '%2B')}")  # type: ignore[attr-defined]
    assert found.url.path == "/tallystick/run/billing_payouts/29"
    assert "No verdict yet" in get("scheduled__1999-01-01T00:00:00%2B00:00").text


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_each_page_can_be_read_by_day_by_night_and_on_a_phone(
    log_in: LogIn, airflow: AirflowStack, scheme: str, width: int
) -> None:
    page = log_in(width=width, scheme=scheme)
    for name, address in PAGES.items():
        page.goto(airflow.settings.base_url + address)
        shot(page, f"{name}-{scheme}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, name
        expect(page.locator("time .local").first).to_contain_text("CE")
        expect(page.locator("time .utc").first).to_contain_text("UTC)")
        assert serious_faults(page) == [], name


@pytest.mark.parametrize(("user", "offers"), [("viewer", 0), ("operator", 1)])
def test_only_who_may_act_is_offered_to_act(log_in: LogIn, airflow: AirflowStack, user: str, offers: int) -> None:
    page = log_in(user)
    page.goto(airflow.settings.base_url + PAGES["contract"])
    expect(page.get_by_role("heading", name="Incidents")).to_be_visible()
    expect(page.get_by_role("button", name="Acknowledge: Torn transaction")).to_have_count(offers)
    expect(page.get_by_role("button", name="Ask for a plan")).to_have_count(offers)
    page.goto(f"{airflow.settings.base_url}/tallystick/break/{REPAIRABLE}")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.get_by_role("button", name="Ask for a plan")).to_have_count(offers)
    expect(page.get_by_text("Write it off")).to_have_count(offers)
    if offers:
        page.get_by_text("Write it off").click()
        expect(page.get_by_role("button", name="Write off 1,250.00 EUR")).to_be_visible()
        assert serious_faults(page) == []
        shot(page, "break-of-operator")


def test_the_pages_follow_airflows_own_choice_of_light_and_dark(log_in: LogIn, airflow: AirflowStack) -> None:
    page = log_in(scheme="light")
    page.goto(f"{airflow.settings.base_url}/plugin/tallystick")
    expect(inside(page).get_by_role("heading", name="Contracts")).to_be_visible()
    page.evaluate("document.documentElement.className = 'dark'")
    expect(inside(page).locator("html")).to_have_css("color-scheme", "dark")
    shot(page, "airflow-overview-dark")
    page.evaluate("document.documentElement.className = 'light'")
    expect(inside(page).locator("html")).to_have_css("color-scheme", "light")


def test_the_keyboard_reaches_the_page_and_its_links(log_in: LogIn, airflow: AirflowStack) -> None:
    page = log_in()
    page.goto(airflow.settings.base_url + PAGES["overview"])
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Trace a key")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="billing_payouts")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Open items")).to_be_visible()


def test_open_items_are_filtered_and_searched_by_the_store(log_in: LogIn, airflow: AirflowStack) -> None:
    page = log_in()
    page.goto(airflow.settings.base_url + PAGES["contract"])
    page.get_by_label("Key begins with").fill("pay-8")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("link", name="ledger:8")).to_be_visible()
    expect(page.get_by_role("link", name="ledger:1", exact=True)).to_have_count(0)


def test_the_report_opens_inside_and_runs_nothing(log_in: LogIn, airflow: AirflowStack) -> None:
    page = log_in()
    page.goto(airflow.settings.base_url + PAGES["run"])
    page.get_by_role("link", name="Full report").click()
    expect(page.get_by_role("heading", name="BROKEN")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.verdict')).display") == "grid"


def test_airflow_finds_nothing_wrong_with_the_plugin(airflow: AirflowStack) -> None:
    assert airflow.import_errors() == {}
    assert httpx.get(f"{airflow.settings.base_url}/tallystick/", timeout=60).status_code == 401
