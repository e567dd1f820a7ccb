"""The kill switch of compensations: append-only rows, of which the newest counts, for one contract or for all."""

from typing import Any

from sqlalchemy import Engine, Row, insert, select

from tallystick.compensation.kill_switch import SwitchSetting
from tallystick.host.terminal_user import at_terminal
from tallystick.store.schema import acting_switch, audit

_ALL = "*"
"""What stands for all contracts in a row; no contract can be named so."""


def set_switch(engine: Engine, setting: SwitchSetting) -> None:
    """Turn the switch, with its line in the audit trail, in one commit."""
    contract = setting.contract or _ALL
    row = {
        "contract": contract,
        "stopped": setting.stopped,
        "set_by": setting.by,
        "because": setting.because,
        "at_utc": setting.at_utc,
    }
    line = {
        "contract": contract,
        "actor": setting.by,
        "event": "acting_stopped" if setting.stopped else "acting_allowed",
        "detail": {"because": setting.because} | at_terminal(setting.terminal),
    }
    with engine.begin() as connection:
        connection.execute(insert(acting_switch), row)
        connection.execute(insert(audit), line)


def read_switch(engine: Engine, contract_name: str) -> tuple[SwitchSetting | None, SwitchSetting | None]:
    """The newest settings: for all contracts, and for this one; None where it was never set."""
    with engine.connect() as connection:
        rows = [
            connection.execute(
                select(acting_switch)
                .where(acting_switch.c.contract == contract)
                .order_by(acting_switch.c.switch_id.desc())
                .limit(1)
            ).first()
            for contract in (_ALL, contract_name)
        ]
    of_all, own = map(_setting_of, rows)
    return of_all, own


def _setting_of(row: Row[Any] | None) -> SwitchSetting | None:
    if row is None:
        return None
    return SwitchSetting(
        contract=None if row.contract == _ALL else row.contract,
        stopped=row.stopped,
        by=row.set_by,
        because=row.because,
        at_utc=row.at_utc,
    )
