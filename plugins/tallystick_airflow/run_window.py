"""The window that a DAG run stands for. A label for people: what is read is a cut."""

from dataclasses import dataclass
from datetime import UTC, datetime

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException


class WindowMissing(AirflowFailException):
    """The run has no data interval, or an empty one."""


@dataclass(frozen=True, kw_only=True)
class RunWindow:
    """Half-open: start is in, end is out."""

    start_utc: datetime
    end_utc: datetime


def window_of(context: Context) -> RunWindow:
    """Read the run's data interval. Raises WindowMissing for a run that was triggered without a logical date.

    An empty interval is what a bare cron string gives a DAG in Airflow 3; ours names CronDataIntervalTimetable.
    """
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None or start >= end:
        raise WindowMissing(
            f"run {context['run_id']}: got the data interval [{start}, {end}); expected start < end: "
            "trigger it with a logical date, or with data_interval_start and data_interval_end"
        )
    return RunWindow(start_utc=start.astimezone(UTC), end_utc=end.astimezone(UTC))
