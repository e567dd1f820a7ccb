"""When a contract's schedule fires. Cron expressions are in UTC."""

from datetime import datetime

from croniter import croniter


def next_firing(schedule: str, after: datetime) -> datetime:
    """The first firing later than that moment, at which the next window ends."""
    moment: datetime = croniter(schedule, after).get_next(datetime)
    return moment
