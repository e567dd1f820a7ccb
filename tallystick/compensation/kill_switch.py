"""The times at which a compensation may act: the kill switch, and the hours that the contract allows. Pure.

Asked anew before each step that changes something, so that a plan can be stopped half-way.
"""

from dataclasses import dataclass
from datetime import datetime

from croniter import croniter

from tallystick.compensation.plan import CompensationOff, PlanRefused
from tallystick.contract.contract import Contract
from tallystick.host.terminal_user import Terminal
from tallystick.model.errors import TallystickError
from tallystick.text.plain import escape_untrusted, format_time


class ActingStopped(PlanRefused):
    """A person has stopped compensations, of this contract or of all."""


class OutsideActingHours(PlanRefused):
    """The contract does not allow compensations to act at this time."""


class SwitchRefused(TallystickError):
    """The switch was not set: no name was given, or there is no such contract. The message says what was found and
    expected.
    """


@dataclass(frozen=True, kw_only=True)
class SwitchSetting:
    """One turn of the kill switch. contract: whose compensations it is about; None: all. terminal: where it was turned;
    None where it was read back.
    """

    contract: str | None
    stopped: bool
    by: str
    because: str
    at_utc: datetime
    terminal: Terminal | None = None


def words_of(option: str, text: str) -> str:
    """Return the name or reason that a person gave. Raises SwitchRefused."""
    given = text.strip()
    if not given or not given.isprintable():
        raise SwitchRefused(f"{option}: got {escape_untrusted(text)!r}; expected a few words, for whoever audits it")
    return given


def refuse_stopped(contract: Contract, *settings: SwitchSetting | None) -> None:
    """Check the newest settings, of this contract and of all. None: never set. Raises ActingStopped."""
    for setting in settings:
        if setting is not None and setting.stopped:
            whose = "all compensations" if setting.contract is None else f"the compensations of {setting.contract}"
            again = f"tallystick compensation allow{f' {setting.contract}' if setting.contract else ''}"
            raise ActingStopped(
                f"{contract.name}: {escape_untrusted(setting.by)} stopped {whose} "
                f"at {format_time(setting.at_utc)}: "
                f"{escape_untrusted(setting.because)}; to go on: {again} --by NAME --reason TEXT"
            )


def refuse_outside_hours(contract: Contract, *, now_utc: datetime) -> None:
    """Check the time against the contract's hours. Raises CompensationOff, OutsideActingHours."""
    if contract.compensation is None:
        raise CompensationOff(f"{contract.name}: the contract has no compensation, so nothing may be repaired")
    minutes = contract.compensation.acting_minutes
    if minutes is not None and not croniter.match(minutes, now_utc):
        raise OutsideActingHours(
            f"{contract.name}: it is {format_time(now_utc)}, and compensation.acting_minutes is {minutes!r}; "
            f"expected a time that it matches, such as {format_time(croniter(minutes, now_utc).get_next(datetime))}"
        )
