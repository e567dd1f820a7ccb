"""The world's one clock. Nothing but a schedule's steps moves it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Clock:
    """now: aware, in UTC."""

    now: datetime = NOON

    @property
    def now_ms(self) -> int:
        return int(self.now.timestamp() * 1000)

    def go(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def go_to(self, moment: datetime) -> None:
        """Never backwards."""
        self.now = max(self.now, moment)
