"""The deadline of a window's verdict, and whether one is overdue. Pure: the caller reads the store and the clock."""

from datetime import datetime, timedelta

from croniter import croniter

from tallystick.contract.contract import Contract

_MOMENT = timedelta(seconds=1)
"""No firing is between two seconds."""


def verdict_due_utc(contract: Contract, *, window_end_utc: datetime, begun_utc: datetime) -> datetime:
    """The verdict timeout after the window's end; of a window that had ended when the books began, after that.

    begun_utc: when the baseline was marked. So a contract that starts in the past is not overdue from the start.
    """
    return max(window_end_utc, begun_utc) + contract.verdict_timeout


def next_verdict_due_utc(contract: Contract, *, judged_until_utc: datetime, begun_utc: datetime) -> datetime:
    """Return when the verdict of the window after the newest judged one is due. That window ends at the schedule's next
    tick.
    """
    next_end_utc = next_firing(contract.schedule, judged_until_utc)
    return verdict_due_utc(contract, window_end_utc=next_end_utc, begun_utc=begun_utc)


def is_overdue(contract: Contract, *, judged_until_utc: datetime, begun_utc: datetime, now_utc: datetime) -> bool:
    """Return whether there should be a verdict of the window after the newest judged one.

    So after an outage the books are overdue until all that was missed is caught up.
    """
    return next_verdict_due_utc(contract, judged_until_utc=judged_until_utc, begun_utc=begun_utc) <= now_utc


def next_firing(schedule: str, after: datetime) -> datetime:
    """The first firing later than that moment, at which the next window ends."""
    moment: datetime = croniter(schedule, after).get_next(datetime)
    return moment


def firings_between(schedule: str, after: datetime, until: datetime, *, count: int) -> list[datetime]:
    """Return the newest firings later than the one moment, and not later than the other, in order; count at most."""
    walk = croniter(schedule, until + _MOMENT)
    found: list[datetime] = []
    while len(found) < count and (moment := walk.get_prev(datetime)) > after:
        if moment <= until:  # the walk begins behind it, since it leaves out where it begins
            found.append(moment)
    return found[::-1]
