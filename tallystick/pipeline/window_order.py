"""The choice of the window that may be cut next. Pure: the caller brings the newest cut and the clock.

Windows are cut in order and once they are over. A window that ends before the newest cut's end would hold nothing,
since that cut has read it: two empty sides would pass for a proof. A window that ends in the future would keep the
books from being overdue until then.
"""

from datetime import datetime, timedelta

from tallystick.model.cut import Cut
from tallystick.model.errors import TallystickError
from tallystick.text.plain import format_time, format_window


class WindowOutOfOrder(TallystickError):
    """An earlier cut has read the window already, under another window's name. A retry cures nothing."""


class WindowNotOver(TallystickError):
    """The window ends in the future, by the verdict store's clock."""

    retryable = True


def refuse_out_of_order(contract_name: str, *, window_end_utc: datetime, newest: Cut | None) -> None:
    """Refuse a new window that does not end after the newest cut's. Raises WindowOutOfOrder.

    A cut that was stored for a window of the future has read no further than its own moment.
    """
    if newest is None or window_end_utc > (read_until := min(newest.window_end_utc, newest.now_utc)):
        return
    window = format_window(newest.window_start_utc, newest.window_end_utc)
    raise WindowOutOfOrder(
        f"{contract_name}: a window that ends at {format_time(window_end_utc)}: expected one that ends after "
        f"{format_time(read_until)}: cut {newest.n}, of the window {window}, has read all up to there, so nothing is "
        f"left for this one. What to do: see that cut's verdict: tallystick show {contract_name}/{newest.n}"
    )


def refuse_not_over(
    contract_name: str, *, window_end_utc: datetime, now_utc: datetime, wait: timedelta = timedelta()
) -> None:
    """Refuse a window that ends more than `wait` from now. Raises WindowNotOver."""
    if window_end_utc > now_utc + wait:
        raise WindowNotOver(
            f"{contract_name}: a window that ends at {format_time(window_end_utc)}: expected one that is over: the "
            f"verdict store's clock says {format_time(now_utc)}. What to do: run it once it is over"
        )
