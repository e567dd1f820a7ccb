"""The one clock that moments are compared by: the verdict store's. Hosts' own clocks may be apart.

Samples, cuts, due dates, deadlines and ages are all dated by it. What other systems date themselves is not: records,
ledger rows, files, and what a receiver of alerts is told.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, func, select


@dataclass(frozen=True, kw_only=True)
class StoreClock:
    """The time of the store's clock. host_ahead: how far this host's was ahead of it at least; negative if behind."""

    now_utc: datetime
    host_ahead: timedelta


def store_now(engine: Engine) -> datetime:
    """Ask the store for the time, aware and in UTC: a moment between the call and its return."""
    with engine.connect() as connection:
        now: datetime = connection.scalar(select(func.clock_timestamp()))  # type: ignore[assignment]
    return now.astimezone(UTC)


def read_clock(engine: Engine, *, host_now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> StoreClock:
    """Ask both clocks. What the question itself may have taken is no difference."""
    before = host_now()
    now = store_now(engine)
    after = host_now()
    return StoreClock(now_utc=now, host_ahead=least_difference(before, now, after))


def dated_by_store(clock: StoreClock, at: datetime, *, not_before: datetime) -> datetime:
    """A moment that another host has dated, by the store's clock and not too young.

    That host's clock is taken for the store's or for this host's, whichever makes it older. not_before: what is known
    by the store's clock; the answer where the moment would lie before it, or in the future: its clock is neither then.
    """
    found = min(at, at - clock.host_ahead)
    return found if not_before <= found <= clock.now_utc else not_before


def least_difference(before: datetime, store: datetime, after: datetime) -> timedelta:
    """Return how far a clock that showed `before` and `after` around a moment is ahead of one that
    showed `store` then.
    """
    if before <= store <= after:
        return timedelta()
    return before - store if before > store else after - store
