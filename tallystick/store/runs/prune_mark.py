"""The marks that pruning leaves: below which cut the runs of a contract are no longer whole."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, select

from tallystick.model.errors import TallystickError
from tallystick.store.schema import prune_mark
from tallystick.text.plain import format_time


class RunPruned(TallystickError):
    """The run has its verdict, but its breaks and items were pruned, so it can be neither shown whole nor repeated."""


@dataclass(frozen=True, kw_only=True)
class PruneMark:
    """Runs of the cuts below kept_from_cut_n were pruned. older_than_utc: as the last pruning was asked."""

    kept_from_cut_n: int
    older_than_utc: datetime
    pruned_at: datetime


def read_mark(engine: Engine, contract_name: str) -> PruneMark | None:
    """The mark of a contract; None where nothing of it was pruned."""
    with engine.connect() as connection:
        return mark_seen_by(connection, contract_name)


def mark_seen_by(connection: Connection, contract_name: str) -> PruneMark | None:
    """The same, as this connection's transaction sees it."""
    row = connection.execute(select(prune_mark).where(prune_mark.c.contract == contract_name)).first()
    if row is None:
        return None
    return PruneMark(kept_from_cut_n=row.kept_from_cut_n, older_than_utc=row.older_than_utc, pruned_at=row.pruned_at)


def refuse_pruned(connection: Connection, contract_name: str, n: int) -> None:
    """Require that the run of cut n is whole. Raises RunPruned."""
    mark = mark_seen_by(connection, contract_name)
    if mark is not None and n < mark.kept_from_cut_n:
        raise RunPruned(
            f"{contract_name}/{n}: its breaks and items were pruned at {format_time(mark.pruned_at)}; expected a run "
            f"from cut {mark.kept_from_cut_n} on; its verdict and sums stay: tallystick runs --contract {contract_name}"
        )
