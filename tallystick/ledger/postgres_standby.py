"""A PostgreSQL ledger that is read on a standby: how far the standby has replayed, and what its primary has given out.

Decides whether a standby may be read for a contract now. The low mark is the standby's own horizon: each transaction
below it has ended and is replayed. The high mark is the primary's, as only the primary knows what was written by now.
A standby of another history is refused, and one that has not come as far as the newest cut is waited for.
Needs no right to the table on the primary, and pg_read_all_stats on both.
"""

import time
from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from tallystick.ledger import postgres_sql
from tallystick.ledger.postgres_table import LedgerIsStandby
from tallystick.ledger.protocol import HorizonHolder, LedgerRefused, LedgerUnreachable
from tallystick.model.cut import LedgerSnapshot

WAIT_SECONDS = 30.0
"""How long one that has fallen behind is waited for; the task's retry goes on after that."""

_LOOK_AGAIN_SECONDS = 0.05

_HERE = """
SELECT pg_is_in_recovery() AS on_standby, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS low_mark,
       (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
       greatest((SELECT received_tli FROM pg_stat_wal_receiver), (SELECT timeline_id FROM pg_control_checkpoint()),
                (SELECT min_recovery_end_timeline FROM pg_control_recovery())) AS timeline,
       coalesce(pg_last_wal_replay_lsn(), '0/0')::text AS lsn"""
"""Its place is read after the snapshot: whoever has replayed up to there shows all that this snapshot shows."""

_HAS_REPLAYED = "SELECT NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= %s::pg_lsn"


class StandbyBehind(LedgerUnreachable):
    """The standby shows less than a cut has seen, or follows another timeline than its primary. A retry may cure it."""


@dataclass(frozen=True, kw_only=True)
class _Standby:
    on_standby: bool
    low_mark: int
    system_identifier: str
    timeline: int
    lsn: str


def read_standby_snapshot(standby: psycopg.Connection, primary: psycopg.Connection) -> LedgerSnapshot:
    """Read the standby's horizon, then the primary's high mark, so that nothing the horizon has passed is above it.

    The horizon needs no flush: a standby is sent only what is on its primary's disk. Raises StandbyBehind,
    LedgerIsStandby where primary_connection leads to a standby too, and LedgerRefused where the two are strangers.
    """
    with standby.cursor(row_factory=class_row(_Standby)) as cursor:
        here = cursor.execute(_HERE).fetchone()
    assert here is not None
    there = _read_primary(primary)
    if here.system_identifier != there.system_identifier:
        raise LedgerRefused(
            f"ledger: connection leads to system {here.system_identifier}, and primary_connection to "
            f"{there.system_identifier}; expected a standby and its own primary"
        )
    if not here.on_standby:  # promoted, or both lead to one server
        here_now = _read_primary(standby)
        _flush(standby)
        _require_timeline(here_now.timeline, there.timeline)
        return LedgerSnapshot(
            low_mark=here_now.low_mark,
            high_mark=max(here_now.high_mark, there.high_mark),
            system_identifier=there.system_identifier,
            timeline=there.timeline,
            lsn=here_now.lsn,
        )
    _require_timeline(here.timeline, there.timeline)
    return LedgerSnapshot(
        low_mark=here.low_mark,
        high_mark=there.high_mark,
        system_identifier=there.system_identifier,
        timeline=there.timeline,
        lsn=here.lsn,
    )


def reach(standby: psycopg.Connection, primary: psycopg.Connection, newest: LedgerSnapshot | None) -> None:
    """Return once the standby shows at least what the newest cut has seen; in this session it never shows less again.

    A standby that starts again, or another one behind the same name, may be further back, and behind a new primary as
    well. newest: of the newest cut; None before the first. Where the primary itself has fallen back behind it, that is
    for the run to tell (`ledger_ids_reused`). Raises StandbyBehind.
    """
    now = read_standby_snapshot(standby, primary)
    if newest is None or newest.system_identifier != now.system_identifier:
        return
    if _read_primary(primary).log_position >= newest.log_position:
        _wait_replayed(standby, newest.lsn)


def shown_by_primary(standby: psycopg.Connection, primary: psycopg.Connection) -> str:
    """Return a pg_snapshot of the primary, once the standby has replayed all that it shows.

    A standby's own has no list of what is open between its xmin and xmax, so that a row of an open transaction would
    count as visible. Source: PostgreSQL, GetSnapshotData and pg_current_snapshot during recovery. Raises StandbyBehind.
    """
    shown = primary.execute("SELECT pg_current_snapshot()::text").fetchone()
    _flush(primary)
    flushed = primary.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    assert shown is not None and flushed is not None
    _wait_replayed(standby, flushed[0])
    return str(shown[0])


def standby_as_holder(
    standby: psycopg.Connection, primary: psycopg.Connection, *, horizon: int
) -> HorizonHolder | None:
    """Return the standby itself as who holds the horizon, where the primary has gone on behind it; else None."""
    replayed = standby.execute("SELECT pg_last_wal_replay_lsn()::text WHERE pg_is_in_recovery()").fetchone()
    there = _read_primary(primary)
    if replayed is None or there.low_mark <= horizon:
        return None
    holder = f"the standby, which has replayed up to {replayed[0]}, while its primary has written up to {there.lsn}"
    return HorizonHolder(position=horizon, holder=holder, since=None)


def _read_primary(primary: psycopg.Connection) -> LedgerSnapshot:
    try:
        with primary.cursor(row_factory=class_row(LedgerSnapshot)) as cursor:
            snapshot = cursor.execute(postgres_sql.SNAPSHOT).fetchone()
    except psycopg.errors.ObjectNotInPrerequisiteState:
        raise LedgerIsStandby(
            "ledger: primary_connection leads to a standby (pg_is_in_recovery); expected the primary, which alone "
            "knows what was written by now. What to do: let the connection name the primary"
        ) from None
    assert snapshot is not None
    return snapshot


def _flush(primary: psycopg.Connection) -> None:
    with primary.transaction():
        for statement in postgres_sql.flush_statements(primary.info.server_version):
            primary.execute(statement)


def _require_timeline(here: int, there: int) -> None:
    if here != there:
        raise StandbyBehind(
            f"ledger: the standby follows timeline {here}, its primary is on timeline {there}, so that they may have "
            "parted; expected one timeline. What to do: wait until the standby follows, or let it be made anew"
        )


def _wait_replayed(standby: psycopg.Connection, lsn: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while standby.execute(_HAS_REPLAYED, [lsn]).fetchone() != (True,):
        if time.monotonic() >= deadline:
            raise StandbyBehind(
                f"ledger: the standby has not replayed up to {lsn} within {WAIT_SECONDS:.0f} s, which a cut has seen "
                "already; expected it to catch up. What to do: look at its lag, and let the connection lead to one "
                "standby, not to several"
            )
        time.sleep(_LOOK_AGAIN_SECONDS)
