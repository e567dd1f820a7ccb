"""Windows that ended before a side had reached its mark, and the later cut that read what they could not.

Both verdicts stand for ever: the held one of its own window, and that of the cut which read the rest.
"""

from sqlalchemy import Connection, Select, case, func, select

from tallystick.store.schema import big_integer, cut_slice
from tallystick.store.schema import verdict as verdict_table

_LOOK_BACK_CUTS = 100
"""A report names the held windows among so many before it."""


def completed_by_cut(connection: Connection, contract_name: str, n: int) -> int | None:
    """The first judged cut that reached all marks that cut n did not; None without one, or where nothing was held."""
    found = {row.cut_n: row.read_by for row in connection.execute(_held_cuts(contract_name, first=n, last=n))}
    return found.get(n)


def held_cuts_completed_by(connection: Connection, contract_name: str, m: int) -> tuple[int, ...]:
    """The held cuts before cut m for which it is the one."""
    rows = connection.execute(_held_cuts(contract_name, first=m - _LOOK_BACK_CUTS, last=m - 1))
    return tuple(sorted(row.cut_n for row in rows if row.read_by == m))


def _held_cuts(contract_name: str, *, first: int, last: int) -> Select[tuple[int, int | None]]:
    """Cut, and the first judged cut after it that reached all its marks."""
    mark = big_integer(cut_slice.c.details["mark"])
    later = cut_slice.alias("later")
    reached = (
        select(later.c.cut_n)
        .join(verdict_table, (verdict_table.c.contract == later.c.contract) & (verdict_table.c.cut_n == later.c.cut_n))
        .where(
            later.c.contract == cut_slice.c.contract,
            later.c.side == cut_slice.c.side,
            later.c.slice_n > cut_slice.c.slice_n,
            later.c.ends_at >= mark,
        )
        .order_by(later.c.slice_n)
        .limit(1)
        .correlate(cut_slice)
        .scalar_subquery()
    )
    held = (
        select(cut_slice.c.cut_n, reached.label("reached"))
        .where(
            cut_slice.c.contract == contract_name, cut_slice.c.cut_n.between(first, last), cut_slice.c.ends_at < mark
        )
        .subquery()
    )
    all_reached = func.count() == func.count(held.c.reached)
    return select(held.c.cut_n, case((all_reached, func.max(held.c.reached))).label("read_by")).group_by(held.c.cut_n)
