"""Deletes what of a contract's past is old, closed and needed by nobody, as the owner of the store.

prunable.py says what that is. Here it is marked first, and then deleted batch by batch: whoever is interrupted, or
interrupts, leaves a store that is whole, and the next pruning goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, Row, any_, delete, func, insert, literal, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert

from tallystick.host.terminal_user import Terminal, at_terminal
from tallystick.model.errors import TallystickError
from tallystick.store.break_lock import hold_breaks
from tallystick.store.retention.prunable import ALERTS, KINDS, Bounds, Kind, count, count_staying, kept_from, next_keys
from tallystick.store.runs.prune_mark import mark_seen_by
from tallystick.store.schema import (
    SCHEMA,
    alert_delivery,
    audit,
    contract_version,
    prune_mark,
    served_revision,
)

PRUNING, PRUNED = "pruning", "pruned"
"""The audit events of a pruning that begins, and of one that is through."""
BATCH = 2_000
"""Keys of one transaction, behind which a verdict of the contract waits."""
_KNOWS_OF_PRUNING = "0021"
"""The first revision whose code does not take a pruned run for one that found nothing."""


class PruneRefused(TallystickError):
    """Nothing is pruned. The message says what was found and what was expected."""


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """Counts of what goes of one contract, or would go.

    first_cut_n, kept_from_cut_n: half-open range of the runs that this pruning takes first. gone: by kind. stays: by
    reason, of what is old.
    """

    contract: str
    first_cut_n: int
    kept_from_cut_n: int
    gone: Mapping[str, int]
    stays: Mapping[str, int]

    @property
    def is_empty(self) -> bool:
        return self.first_cut_n == self.kept_from_cut_n and not any(self.gone.values())


OnBatch = Callable[[str, str, int], None]
"""Is told contract, kind and how many of it are gone by now."""


def contracts_to_prune(engine: Engine, contract_name: str | None) -> tuple[str, ...]:
    """Return the contracts that have books, or this one. Raises PruneRefused where it has none."""
    names = select(contract_version.c.contract).distinct().order_by(contract_version.c.contract)
    with engine.connect() as connection:
        known = tuple(connection.scalars(names))
    if contract_name is None:
        return known
    if contract_name not in known:
        raise PruneRefused(f"{contract_name}: the store has no books of it; expected one of: {', '.join(known) or '-'}")
    return (contract_name,)


def require_owner(engine: Engine) -> None:
    """Require the role that owns the store: no other may delete. Raises PruneRefused."""
    owns = text("select pg_has_role(c.relowner, 'member') from pg_class as c where c.oid = to_regclass(:audit)")
    with engine.connect() as connection:
        if not connection.scalar(owns, {"audit": f"{SCHEMA}.audit"}):
            raise PruneRefused(
                f"role {engine.url.username} may delete nothing from the store; expected the role that owns it, as for "
                "tallystick store migrate; --dry-run needs no more than reading"
            )


def what_would_go(engine: Engine, contract_name: str, *, older_than_utc: datetime) -> Pruned:
    """Count what a pruning would delete now; changes nothing."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        first, bounds = _bounds(connection, contract_name, older_than_utc)
        gone = {kind.name: count(connection, kind, bounds) if bounds.kept_from_cut_n else 0 for kind in KINDS}
        return _pruned(connection, first, bounds, gone)


def prune(
    engine: Engine,
    contract_name: str,
    *,
    older_than_utc: datetime,
    terminal: Terminal,
    on_batch: OnBatch,
    batch: int = BATCH,
) -> Pruned:
    """Delete what is old, closed and needed by nobody. on_batch: called after each transaction. Safe beside a run.

    The mark and its line in the audit trail stand before the first row is deleted: no run that is no longer whole is
    shown as if it were.
    """
    with engine.begin() as connection:
        hold_breaks(connection, contract_name)
        first, bounds = _bounds(connection, contract_name, older_than_utc)
        if bounds.kept_from_cut_n > first:
            _mark(connection, bounds)
            _audit(connection, PRUNING, first, bounds, {}, terminal)
    gone = dict.fromkeys((kind.name for kind in KINDS), 0)
    if bounds.kept_from_cut_n:
        for kind in KINDS:
            _delete_all(engine, kind, bounds, gone, on_batch, batch)
    with engine.begin() as connection:
        found = _pruned(connection, first, bounds, gone)
        if not found.is_empty:
            _audit(connection, PRUNED, first, bounds, gone, terminal)
        return found


def _bounds(connection: Connection, contract_name: str, older_than_utc: datetime) -> tuple[int, Bounds]:
    """Return the first cut that was not pruned before, and the bounds: what was pruned once is not whole again."""
    mark = mark_seen_by(connection, contract_name)
    first = mark.kept_from_cut_n if mark else 0
    last = max(first, kept_from(connection, contract_name, older_than_utc))
    return first, Bounds(contract=contract_name, older_than_utc=older_than_utc, kept_from_cut_n=last)


def _pruned(connection: Connection, first: int, bounds: Bounds, gone: Mapping[str, int]) -> Pruned:
    return Pruned(
        contract=bounds.contract,
        first_cut_n=first,
        kept_from_cut_n=bounds.kept_from_cut_n,
        gone=gone,
        stays=count_staying(connection, bounds),
    )


def _mark(connection: Connection, bounds: Bounds) -> None:
    row = {
        "contract": bounds.contract,
        "kept_from_cut_n": bounds.kept_from_cut_n,
        "older_than_utc": bounds.older_than_utc,
    }
    statement = upsert(prune_mark).values(row)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[prune_mark.c.contract], set_=row | {"pruned_at": func.clock_timestamp()}
        )
    )
    connection.execute(
        update(served_revision).where(served_revision.c.oldest < _KNOWS_OF_PRUNING).values(oldest=_KNOWS_OF_PRUNING)
    )


def _delete_all(
    engine: Engine, kind: Kind, bounds: Bounds, gone: dict[str, int], on_batch: OnBatch, batch: int
) -> None:
    after: object | None = None
    while True:
        with engine.begin() as connection:
            hold_breaks(connection, bounds.contract)
            keys = next_keys(connection, kind, bounds, after=after, at_most=batch)
            if keys:
                _delete(connection, kind, bounds, keys)
        if not keys:
            return
        after = keys[-1]
        gone[kind.name] += len(keys)
        on_batch(bounds.contract, kind.name, gone[kind.name])


def _delete(connection: Connection, kind: Kind, bounds: Bounds, keys: list[object]) -> None:
    if kind is ALERTS:
        _keep_failures(connection, bounds.contract, keys)
    connection.execute(text("set local tallystick.pruning = 'on'"))
    for table, column in kind.deleted_from.items():
        key = table.c[column]
        statement = delete(table).where(key == any_(literal(keys, ARRAY(key.type))))
        if "contract" in table.c:
            statement = statement.where(table.c.contract == bounds.contract)
        connection.execute(statement)


def _keep_failures(connection: Connection, contract_name: str, alert_ids: list[Any]) -> None:
    """Add the failed deliveries of these alerts to those that were deleted before: a counter never goes back."""
    failed = (
        select(alert_delivery.c.sink, func.count().label("failures"))
        .where(~alert_delivery.c.delivered, alert_delivery.c.alert_id.in_(alert_ids))
        .group_by(alert_delivery.c.sink)
    )
    rows: list[Row[Any]] = list(connection.execute(failed))
    of_contract = prune_mark.c.contract == contract_name
    kept = dict(connection.scalar(select(prune_mark.c.delivery_failures).where(of_contract)) or {})
    kept |= {row.sink: kept.get(row.sink, 0) + row.failures for row in rows}
    connection.execute(update(prune_mark).where(of_contract).values(delivery_failures=kept))


def _audit(
    connection: Connection, event: str, first: int, bounds: Bounds, gone: Mapping[str, int], terminal: Terminal
) -> None:
    detail: dict[str, Any] = {
        "first_cut_n": first,
        "kept_from_cut_n": bounds.kept_from_cut_n,
        "older_than_utc": bounds.older_than_utc.isoformat(),
    }
    if gone:
        detail["gone"] = dict(gone)
    row = {"contract": bounds.contract, "plan_id": None, "actor": terminal.os_user, "event": event}
    connection.execute(insert(audit), row | {"detail": detail | at_terminal(terminal)})
