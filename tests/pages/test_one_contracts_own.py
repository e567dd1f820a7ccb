"""A page shows what is its contract's own, and of that no more than the contract lets people see."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from sqlalchemy import Engine

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.contract.event import PayloadKey
from tallystick.matching.closed_cut import closing_of
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import WriteOff
from tallystick.model.verdict import Verdict
from tallystick.report.write_report import write_report
from tallystick.store.alerts.alert_store import append_alerts
from tallystick.store.alerts.incident_store import read_incidents
from tallystick.store.breaks import item_query_store
from tallystick.store.breaks.break_life_store import alerts_of_break
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.plans.plan_life_store import list_plans
from tallystick.store.plans.plan_store import append_audit, save_plan
from tallystick.store.runs.close_store import close_cut
from tallystick.store.runs.cut_store import claim_attempt, save_cut
from tallystick.store.runs.run_store import commit_run, read_run
from tallystick.store.views.metric_store import read_figures
from tallystick.store.views.overview_store import list_versions, read_overview
from tests.stored_books import (
    FIRST_BROKEN,
    HOUR,
    LAST_BROKEN,
    LAST_HOUR,
    break_ids,
    cut_of,
    done_plan,
    fill,
    mismatch,
    missing,
    payments,
    payouts,
    result_of,
    waiting_plan,
)

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


def changed(contract: Contract, **fields: object) -> Contract:
    return Contract.model_validate(contract.model_copy(update=fields).model_dump(mode="json"))


def books_of(store: Engine, name: str, *, windows: int) -> Contract:
    """Books of a contract of this name."""
    contract = changed(payouts(), name=name)
    fill(store, contract, windows=windows)
    return contract


def test_breaks_of_the_newest_window_that_are_written_off_are_told_from_those_that_no_item_follows(
    own_store: Engine,
) -> None:
    legs = {leg: f"given_up.{topic}" for leg, topic in payouts().legs.items()}  # of which no other contract repairs
    contract = changed(payouts(), name="given_up", legs=legs)
    fill(own_store, contract, windows=FIRST_BROKEN + 1)

    def sums() -> tuple[int, int]:
        book = read_overview(own_store, contract.name, windows=3)
        assert book is not None
        return book.given_up, book.loose

    given_up = WriteOff(by="finance", reason="refunded", at_utc=LAST_HOUR)
    for one in (missing(contract, "pay-1", 125_000), missing(contract, "pay-2", 99), mismatch(contract, "pay-15")):
        assert sums() == (0, 0)  # something stands broken
        write_off_break(own_store, contract.name, str(one.break_id), given_up)
    assert sums() == (3, 0)
    save_cut(own_store, contract, cut_of(contract, FIRST_BROKEN + 1, LAST_HOUR + HOUR), scheduler_run_id="next")
    assert sums() == (3, 0)  # a cut without a verdict is no newer window
    result = result_of(contract, FIRST_BROKEN + 1, LAST_HOUR + HOUR)
    loose = (mismatch(contract, "pay-99"),)
    attempt = claim_attempt(own_store, contract.name, FIRST_BROKEN + 1)
    commit_run(own_store, replace(result, verdict=Verdict.BROKEN, breaks=loose), attempt=attempt, alerts=())
    assert sums() == (0, 1)


def test_a_version_that_came_back_is_the_newest(own_store: Engine) -> None:
    first = books_of(own_store, "reverted", windows=2)
    second = changed(first, settle_timeout_seconds=1, version=2)
    for n, contract in ((2, second), (3, second), (4, first), (5, first)):
        end = LAST_HOUR + (n - 1) * HOUR
        save_cut(own_store, contract, cut_of(contract, n, end), scheduler_run_id=f"run-{n}")
        attempt = claim_attempt(own_store, contract.name, n)
        commit_run(own_store, result_of(contract, n, end), attempt=attempt, alerts=())
    spans = list_versions(own_store, first.name, limit=9)
    found = [(one.version, one.first_cut_n, one.contract) for one in spans]
    assert found == [(1, 4, first), (2, 2, second), (1, 0, first)]
    assert spans[0].since_utc > spans[1].since_utc > spans[2].since_utc
    assert list_versions(own_store, first.name, limit=2) == spans[:2]


def test_a_cut_that_was_closed_unread_hides_nothing_of_what_the_run_before_it_foresaw(own_store: Engine) -> None:
    contract = books_of(own_store, "closed", windows=3)

    def told() -> tuple[int | None, datetime | None, datetime | None]:
        book = read_overview(own_store, contract.name, windows=3)
        (figures,) = (one for one in read_figures(own_store) if one.contract == contract.name)
        assert book is not None and figures.judged is not None
        return book.read_cut_n, book.expires_utc, figures.judged.expires_utc

    expires_utc = LAST_HOUR + 22 * HOUR
    assert told() == (2, expires_utc, expires_utc)
    save_cut(own_store, contract, cut_of(contract, 3, LAST_HOUR + HOUR), scheduler_run_id="stuck")
    claim_attempt(own_store, contract.name, 3)
    close_cut(own_store, contract.name, 3, closing_of(by="Ada", reason="unreadable", at_utc=LAST_HOUR + HOUR))
    assert told() == (2, expires_utc, expires_utc)
    save_cut(own_store, contract, cut_of(contract, 4, LAST_HOUR + 2 * HOUR), scheduler_run_id="next")
    attempt = claim_attempt(own_store, contract.name, 4)
    newer = replace(result_of(contract, 4, LAST_HOUR + 2 * HOUR), look_ups={})
    commit_run(own_store, newer, attempt=attempt, alerts=())
    assert told() == (4, None, None)  # it looked, and foresaw nothing


def test_before_a_run_has_read_anything_nothing_is_foreseen(own_store: Engine) -> None:
    contract = books_of(own_store, "begun", windows=1)
    book = read_overview(own_store, contract.name, windows=3)
    assert book is not None and (book.read_cut_n, book.expires_utc) == (None, None)
