"""A page shows what is its contract's own, and of that no more than the contract lets people see."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from sqlalchemy import Engine

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.contract.event import PayloadKey
from tallystick.model.finding_names import BreakClass
from tallystick.report.write_report import write_report
from tallystick.store.alerts.alert_store import append_alerts
from tallystick.store.alerts.incident_store import read_incidents
from tallystick.store.breaks import item_query_store
from tallystick.store.breaks.break_life_store import alerts_of_break
from tallystick.store.plans.plan_life_store import list_plans
from tallystick.store.plans.plan_store import append_audit, save_plan
from tallystick.store.runs.run_store import read_run
from tests.stored_books import FIRST_BROKEN, LAST_BROKEN, break_ids, done_plan, fill, payments, payouts, waiting_plan

pytestmark = pytest.mark.usefixtures("own_store")

BELOW = "/tallystick"
NAME, OTHER = payouts().name, payments().name
CURRENCY = BreakClass.CURRENCY_MISMATCH


def told(store: Engine, contract_name: str, name: BreakClass, action: AlertAction, *, cut_n: int) -> None:
    alert = Alert(
        contract=contract_name,
        cut_n=cut_n,
        name=name,
        action=action,
        severity=Severity.ERROR,
        summary="told",
        details={},
        sinks=(),
    )
    append_alerts(store, [alert])


def firing(store: Engine, contract_name: str) -> set[str]:
    return {one.name for one in read_incidents(store, contract_name)}


def test_an_incident_is_listed_until_it_is_resolved_and_again_when_it_comes_back(own_store: Engine) -> None:
    before = firing(own_store, NAME)
    assert CURRENCY not in before
    for cut_n, action, fires in ((1, "trigger", True), (2, "resolve", False), (3, "trigger", True)):
        told(own_store, NAME, CURRENCY, AlertAction(action), cut_n=cut_n)
        assert firing(own_store, NAME) == before | ({CURRENCY} if fires else set())


def test_incidents_and_plans_of_another_contract_are_not_shown(own_store: Engine) -> None:
    def of_the_payouts() -> list[object]:
        told = alerts_of_break(own_store, NAME, 1, BreakClass.AMOUNT_MISMATCH)
        return [read_incidents(own_store, NAME), list_plans(own_store, NAME, limit=9), told]

    before = of_the_payouts()
    told(own_store, OTHER, BreakClass.AMOUNT_MISMATCH, AlertAction.TRIGGER, cut_n=2)
    told(own_store, OTHER, BreakClass.AMOUNT_MISMATCH, AlertAction.RESOLVE, cut_n=1)
    told(own_store, OTHER, BreakClass.PHANTOM_IN_LEDGER, AlertAction.TRIGGER, cut_n=2)
    others = replace(waiting_plan(payouts()), contract=OTHER, cut_n=2)
    save_plan(own_store, others, requested_by="Ada")
    assert of_the_payouts() == before
    assert BreakClass.PHANTOM_IN_LEDGER in firing(own_store, OTHER)
    assert [one.plan_id for one in list_plans(own_store, OTHER, limit=9)] == [others.plan_id]


def test_a_plan_stands_as_its_newest_event_that_says_so(own_store: Engine, viewer: Any) -> None:
    """What came after it, such as a look at what stands now, does not say how a plan stands."""
    done = done_plan(payouts())
    append_audit(own_store, NAME, plan_id=done.plan_id, actor="Grace", event="verified", detail={})
    listed = {one.plan_id: one.last for one in list_plans(own_store, NAME, limit=9)}
    assert listed == {done.plan_id: "finished", waiting_plan(payouts()).plan_id: "planned"}
    assert "<b>Carried out</b>" in viewer.get(f"{BELOW}/plan/{done.plan_id}").text


@pytest.fixture(scope="module", params=[(), tuple(PayloadKey)], ids=["hidden", "shown"])
def keyed(request: pytest.FixtureRequest, own_store: Engine) -> Contract:
    """The payouts again, under a name of their own; people see none of its keys, or all."""
    from tests.pages.readers import add_dags

    name = "shown_payouts" if request.param else "hidden_payouts"
    contract = payouts().model_copy(update={"name": name, "shown_keys": request.param})
    fill(own_store, contract)
    add_dags(f"reconcile_{name}")
    return contract


def test_a_key_stands_on_each_page_or_in_no_source_title_or_address(
    own_store: Engine, viewer: Any, keyed: Contract, tmp_path: Path
) -> None:
    addresses = [
        *(f"/break/{one}" for one in break_ids(keyed)),
        *(f"/run/{keyed.name}/{n}" for n in (FIRST_BROKEN, LAST_BROKEN)),
        *(f"/plan/{plan.plan_id}" for plan in (done_plan(keyed), waiting_plan(keyed))),
        f"/contract/{keyed.name}",
    ]
    pages = {address: viewer.get(BELOW + address).text for address in addresses}
    run = read_run(own_store, keyed.name, LAST_BROKEN)
    assert run is not None
    pages["report"] = write_report(run, keyed, tmp_path).read_text()
    shown = bool(keyed.shown_keys)
    assert {address: "pay-" in page for address, page in pages.items()} == dict.fromkeys(pages, shown)


def test_items_can_be_searched_by_key_only_where_keys_are_shown(viewer: Any, keyed: Contract) -> None:
    page = viewer.get(f"{BELOW}/contract/{keyed.name}?search=pay-8").text
    shown = bool(keyed.shown_keys)
    assert ("Key begins with" in page, "ledger:1<" in page, "ledger:8<" in page) == (shown, not shown, True)


def test_the_way_to_the_next_items_names_none(viewer: Any, keyed: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_query_store, "LISTED_AT_ONCE", 1)
    address, seen = f"{BELOW}/contract/{keyed.name}", []
    for _ in range(9):
        page = viewer.get(address).text
        items, _, rest = page.partition('id="items-title"')[2].partition("</table>")
        seen.append(items.partition("<tbody>")[2].partition("<code>")[2].partition("<")[0])
        links = [part.partition('"')[0] for part in rest.partition("</p>")[0].split('href="')[1:]]
        onward = [link for link in links if "after=" in link]
        if not onward:
            break
        address = onward[0].replace("&amp;", "&").partition("#")[0]
        assert "ledger" not in unquote(address) and "pay-" not in unquote(address)
    assert len(seen) == len(set(seen)) == 6
