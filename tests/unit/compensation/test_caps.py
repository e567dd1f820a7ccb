"""An approved plan is held against the contract as it is now."""

from dataclasses import replace

import pytest

from tallystick.compensation.caps import refuse_over_caps
from tallystick.compensation.plan import CapsExceeded, DailyUsage
from tallystick.model.finding_names import BreakClass
from tests.unit.compensation.plans import HANDS_OVER, PHANTOM, candidate, contract, plan


def test_an_approved_plan_is_held_against_the_contract_as_it_is_now() -> None:
    planned = plan(candidate("a"), candidate("b"))
    first, second = (f"break {item.break_id}" for item in planned.items)
    refuse_over_caps(contract(), planned)
    for rules, reason in (
        ({"max_items": 1}, f"{second}: over the cap on the number of events"),
        ({"max_amount_minor": {"EUR": 199}}, f"{second}: over the cap on EUR"),
        ({"classes": [BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY]}, f"{first}: class missing_in_topic_never_produced"),
    ):
        with pytest.raises(CapsExceeded, match=reason):
            refuse_over_caps(contract(**rules), planned)
    for rules, reason in (
        ({"max_items_per_day": 2}, f"{second}: over the day's cap on the number of events"),
        ({"max_amount_minor_per_day": {"EUR": 299}}, f"{second}: over the day's cap on EUR"),
    ):
        refuse_over_caps(contract(**rules), planned)
        with pytest.raises(CapsExceeded, match=reason):
            refuse_over_caps(contract(**rules), planned, spent=DailyUsage(items=1, moved_minor={"EUR": 100}))


def test_an_approved_plan_with_one_event_twice_is_refused() -> None:
    planned = plan(candidate("a"))
    refuse_over_caps(contract(), planned)
    with pytest.raises(CapsExceeded, match="the plan has this event already"):
        refuse_over_caps(contract(), replace(planned, items=planned.items * 2))


def test_an_approved_handing_over_is_held_against_the_dag_that_the_contract_names_now() -> None:
    planned = plan(candidate("b", break_class=PHANTOM, rows=()), **HANDS_OVER)
    refuse_over_caps(contract(**HANDS_OVER), planned)
    another = {"trigger": {"connection": "airflow", "dags": {PHANTOM: "another"}}}
    for rules in (contract(), contract(**another)):
        with pytest.raises(CapsExceeded, match="class phantom_in_topic is not compensated by the contract"):
            refuse_over_caps(rules, planned)
