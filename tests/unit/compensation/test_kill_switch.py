"""When a compensation may act: not while somebody has stopped it, and only in the contract's minutes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tallystick.compensation.kill_switch import (
    ActingStopped,
    OutsideActingHours,
    SwitchRefused,
    SwitchSetting,
    refuse_outside_hours,
    refuse_stopped,
    words_of,
)
from tallystick.compensation.plan import CompensationOff
from tallystick.contract.contract import Contract
from tallystick.model.finding_names import BreakClass

MONDAY_NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def repairing(contract: Contract, **rules: Any) -> Contract:
    document = {
        "classes": [BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED],
        "max_amount_minor": {"EUR": 1000},
        **rules,
    }
    return Contract.model_validate(contract.model_dump(mode="json") | {"compensation": document})


def setting(contract: str | None, *, stopped: bool) -> SwitchSetting:
    return SwitchSetting(contract=contract, stopped=stopped, by="ada", because="the relay hangs", at_utc=MONDAY_NOON)


@pytest.mark.parametrize(
    ("of_all", "own"),
    [
        (setting(None, stopped=True), None),
        (None, setting("billing_payouts", stopped=True)),
        (setting(None, stopped=True), setting("billing_payouts", stopped=False)),
        (setting(None, stopped=False), setting("billing_payouts", stopped=True)),
    ],
)
def test_a_stop_of_all_or_of_its_own_stops_a_contract(contract: Contract, of_all: Any, own: Any) -> None:
    with pytest.raises(ActingStopped, match=r"ada stopped .* at 2026-03-02 12:00:00 UTC: the relay hangs; to go on: "):
        refuse_stopped(contract, of_all, own)


@pytest.mark.parametrize(
    ("stopped", "told"),
    [
        (None, "ada stopped all compensations at .*; to go on: tallystick compensation allow --by NAME"),
        ("billing_payouts", "the compensations of billing_payouts at .* allow billing_payouts --by NAME"),
    ],
)
def test_who_is_stopped_reads_what_was_and_the_command_that_allows_it(
    contract: Contract, stopped: str | None, told: str
) -> None:
    with pytest.raises(ActingStopped, match=told):
        refuse_stopped(contract, setting(stopped, stopped=True))


@pytest.mark.parametrize(
    ("of_all", "own"),
    [(None, None), (setting(None, stopped=False), None), (None, setting("billing_payouts", stopped=False))],
)
def test_what_was_never_stopped_or_was_allowed_again_acts(contract: Contract, of_all: Any, own: Any) -> None:
    refuse_stopped(contract, of_all, own)


@pytest.mark.parametrize(
    "now_utc",
    [
        datetime(2026, 3, 2, 5, 59, 59, tzinfo=UTC),
        datetime(2026, 3, 2, 18, 0, tzinfo=UTC),
        datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
    ],
)
def test_outside_the_contracts_minutes_nothing_is_done_and_the_next_one_is_named(
    contract: Contract, now_utc: datetime
) -> None:
    with pytest.raises(OutsideActingHours, match=r"such as 2026-03-0[23] 06:00:00 UTC"):
        refuse_outside_hours(repairing(contract, acting_minutes="* 6-17 * * 1-5"), now_utc=now_utc)


@pytest.mark.parametrize(
    ("minutes", "now_utc"),
    [
        (None, datetime(2026, 3, 1, 3, tzinfo=UTC)),
        ("* 6-17 * * 1-5", datetime(2026, 3, 2, 6, 0, tzinfo=UTC)),
        ("* 6-17 * * 1-5", datetime(2026, 3, 2, 17, 59, 59, tzinfo=UTC)),
    ],
)
def test_inside_them_it_is(contract: Contract, minutes: str | None, now_utc: datetime) -> None:
    refuse_outside_hours(repairing(contract, acting_minutes=minutes), now_utc=now_utc)


def test_without_a_compensation_section_there_are_no_minutes(contract: Contract) -> None:
    with pytest.raises(CompensationOff):
        refuse_outside_hours(contract.model_copy(update={"compensation": None}), now_utc=MONDAY_NOON)


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "\x1b[31m"])
def test_a_turn_of_the_switch_that_nobody_answers_for_is_refused(text: str) -> None:
    with pytest.raises(SwitchRefused, match="--by: got"):
        words_of("--by", text)


def test_a_name_is_kept_as_it_is_written() -> None:
    assert words_of("--by", " José Núñez ") == "José Núñez"
