"""What the contract hides stands in nothing that people read, and what it shows does."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from tallystick.compensation.plan_text import describe_plan
from tallystick.contract.contract import Contract
from tallystick.contract.event import PayloadKey
from tallystick.documents.run import run_document, story_document
from tallystick.model.break_history import LifeStep, ToldBreak
from tallystick.model.findings import Break
from tallystick.model.item_reason import read_reason
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.pages.break_page import break_page
from tallystick.pages.plan_page import plan_page
from tallystick.pages.render import render_page
from tallystick.report.break_story import explain
from tallystick.report.masking import MASKED, Mask
from tallystick.report.write_report import render_report
from tests.stored_books import item_of, missing, payouts, torn, waiting_plan
from tests.unit.pages.plans_told import HOUR, NOON, plan_told

MATCH, TRANSACTION, ORDERING = PayloadKey
MISSING, TORN = missing(payouts(), "pay-7", 4_200), torn(payouts(), "pay-9")
ORDERED = replace(MISSING, evidence={**MISSING.evidence, "ordering_key": "customer-5", "sequence": 3})
BREAKS = (MISSING, TORN)


def showing(*keys: PayloadKey) -> Contract:
    return payouts().model_copy(update={"shown_keys": keys})


def told_of(found: Break) -> ToldBreak:
    item = replace(item_of(found, 3, NOON, ItemState.BROKEN), reason=read_reason(f"no event of {found.match_key}"))
    return ToldBreak(
        item_break=found,
        contract="billing_payouts",
        cut_n=3,
        window_start_utc=NOON - HOUR,
        window_end_utc=NOON,
        judged_utc=NOON,
        topic_settled_until_utc=None,
        ledger_settled_until_utc=None,
        life=(LifeStep(cut_n=3, judged_utc=NOON, item=item),),
    )


def page_text(found: Break, contract: Contract) -> str:
    page = break_page(told_of(found), contract, alerts=(), repairs=())
    return render_page("break", base="", now_utc=NOON, page=page, runbook="r", done="", token="t", address="a")


def terminal_text(found: Break, contract: Contract) -> str:
    told = Mask(contract).told(told_of(found))
    return f"{explain(told)}{json.dumps(story_document(told))}"


@pytest.mark.parametrize("text_of", [page_text, terminal_text])
@pytest.mark.parametrize("found", BREAKS)
def test_a_hidden_key_stands_nowhere_in_what_is_told_of_its_break(text_of: object, found: Break) -> None:
    assert callable(text_of)
    shown, masked = text_of(found, showing(MATCH, TRANSACTION)), text_of(found, showing())
    for key in (found.match_key, found.transaction_key):
        assert key in shown
        assert key not in masked
    assert MASKED in masked and MASKED not in shown
    assert "row 7" in masked or "1:181" in masked  # where it stands is always shown


def test_one_key_may_be_hidden_and_the_other_shown() -> None:
    masked = Mask(showing(MATCH)).item_break(MISSING)
    assert (masked.match_key, masked.transaction_key) == ("pay-7", MASKED)
    other = Mask(showing(TRANSACTION)).item_break(replace(MISSING, transaction_key="order 7"))
    assert (other.match_key, other.transaction_key) == (MASKED, "order 7")


def test_the_transaction_key_of_a_torn_transaction_is_hidden_wherever_it_plays_the_match_key() -> None:
    masked = Mask(showing(MATCH)).told(told_of(TORN))
    assert TORN.transaction_key not in str(masked)
    assert masked.life[0].item.item_id == f"legs:{MASKED}"


def test_an_ordering_key_is_hidden_unless_the_contract_shows_it() -> None:
    assert payouts().shown_keys == (MATCH, TRANSACTION)
    assert "customer-5" not in page_text(ORDERED, payouts())
    assert "customer-5" in page_text(ORDERED, showing(*PayloadKey))


def test_only_the_whole_key_is_masked() -> None:
    found = replace(MISSING, match_key="7", transaction_key="o", story="Row 17 has key 7, not 70.")
    assert Mask(showing()).item_break(found).story == f"Row 17 has key {MASKED}, not 70."


def test_a_key_is_hidden_whatever_stands_in_it() -> None:
    found = replace(MISSING, match_key="a.b|c(", story="Key a.b|c( is gone.")
    assert Mask(showing()).item_break(found).story == f"Key {MASKED} is gone."


def test_a_hidden_key_stands_nowhere_in_the_report_and_in_what_the_terminal_shows_of_a_run(
    broken_run: StoredRun,
) -> None:
    waiting = item_of(missing(payouts(), "pay-8", 1), 3, NOON, ItemState.OPEN)
    run = replace(broken_run, result=replace(broken_run.result, breaks=BREAKS, items=(waiting,)))

    def texts(contract: Contract) -> tuple[str, str]:
        return render_report(run, contract), json.dumps(run_document(Mask(contract).run(run)))

    for shown, masked in zip(texts(payouts()), texts(showing()), strict=True):
        assert "order-pay-9" in shown and "pay-7" in shown
        assert "pay-" not in masked and MASKED in masked
    assert "pay-8" in texts(payouts())[0]
    assert Mask(showing()).run(run).result.items[0].match_key == MASKED


def test_a_hidden_key_stands_nowhere_in_a_plan_that_a_person_reads() -> None:
    plan = waiting_plan(payouts())

    assert "| pay-1 |" in describe_plan(plan, shown_key=Mask(payouts()).key)
    for contract in (showing(), showing(MATCH), showing(TRANSACTION)):
        markdown = describe_plan(plan, shown_key=Mask(contract).key)
        assert "pay-" not in markdown and MASKED in markdown
        assert plan.plan_hash in markdown


def test_a_hidden_key_stands_nowhere_on_the_page_of_a_plan() -> None:
    def keys(contract: Contract) -> tuple[str, str]:
        page = plan_page(plan_told("planned"), contract)
        return page.items[0].match_key, page.left_out[0].examples

    assert keys(payouts()) == ("pay-1", "a, b, c, ...")
    assert keys(showing()) == (MASKED, f"{MASKED}, {MASKED}, {MASKED}, ...")


def test_alerts_may_not_show_a_key_that_the_contract_hides() -> None:
    document = payouts().model_dump(mode="json")
    alert = document["alert"] | {"match_keys": "shown"}
    Contract.model_validate(document | {"alert": alert})
    with pytest.raises(ValidationError, match="expected match_keys: hidden"):
        Contract.model_validate(document | {"alert": alert, "shown_keys": ["match_key"]})
