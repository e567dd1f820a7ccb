"""Posts one body, and says what became of it in the words of `message`. Tries once; the outbox tries again.

Which answers a later try may cure is decided here, for every sink that speaks HTTP: 408, 425, 429 and 5xx, and no
answer at all. Every other one is a refusal. Redirects are not followed: a secret goes where its connection says only.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from tallystick.alerting.alert_json import SinkFailed, SinkRefused

TIMEOUT_SECONDS = 5
"""From the look-up of the name to the head of the answer; a receiver that is slower is down for us."""

RETRY_AFTER_SECONDS_MAX = 3600
"""A receiver that asks for more is asked again after this: an alert must not wait for a mistyped date."""

_CURED_BY_WAITING = (408, 425, 429)


def post(
    address: str, body: bytes, *, headers: Mapping[str, str], timeout_seconds: int | float = TIMEOUT_SECONDS
) -> str:
    """Post JSON; return the status. Raises SinkFailed, SinkRefused."""
    try:
        with silent_logs():
            status, answered = asyncio.run(_post(address, body, headers, timeout_seconds))
    except TimeoutError:
        raise SinkFailed(f"no answer within {timeout_seconds} s") from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise SinkRefused(f"its connection has no usable address: {type(error).__name__}") from None
    except httpx.HTTPError as error:
        raise SinkFailed(f"no answer: {type(error).__name__}") from None
    if 200 <= status < 300:
        return str(status)
    if status in _CURED_BY_WAITING or status >= 500:
        raise SinkFailed(
            f"the receiver answered {status}",
            retry_after_seconds=retry_after_seconds(answered.get("retry-after"), now_utc=datetime.now(UTC)),
        )
    raise SinkRefused(f"the receiver answered {status}")


def retry_after_seconds(header: str | None, *, now_utc: datetime) -> int | None:
    """Return the wait that a Retry-After header asks for, in seconds or as a date (RFC 9110); None where it is absent
    or unreadable.
    """
    if header is None:
        return None
    try:
        seconds = int(header) if header.isdecimal() else (parsedate_to_datetime(header) - now_utc).total_seconds()
    except (ValueError, TypeError):
        return None
    return max(0, min(round(seconds), RETRY_AFTER_SECONDS_MAX))


async def _post(
    address: str, body: bytes, headers: Mapping[str, str], timeout_seconds: int | float
) -> tuple[int, httpx.Headers]:
    """One time limit for all of it: httpx has one for each byte, so a receiver that dribbles would hold us for ever."""
    async with asyncio.timeout(timeout_seconds), httpx.AsyncClient(timeout=None) as client:
        request = client.build_request(
            "POST", address, content=body, headers={"content-type": "application/json", **headers}
        )
        answer = await client.send(request, stream=True)  # its status is enough: the body may be endless
        await answer.aclose()
    return answer.status_code, answer.headers


_THEY_NAME_ADDRESSES = ("apprise", "httpcore", "httpx", "urllib3")


class _Silence:
    """Counts the blocks of all threads: the first one notes the loggers' levels, and the last one gives them back."""

    def __init__(self) -> None:
        self._lock, self._blocks = threading.Lock(), 0
        self._levels: dict[logging.Logger, int] = {}

    def begin(self) -> None:
        with self._lock:
            if not self._blocks:
                self._levels = {log: log.level for log in map(logging.getLogger, _THEY_NAME_ADDRESSES)}
                for log in self._levels:
                    log.setLevel(logging.CRITICAL + 1)
            self._blocks += 1

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                for log, level in self._levels.items():
                    log.setLevel(level)


_SILENCE = _Silence()


@contextmanager
def silent_logs() -> Iterator[None]:
    """Silence these loggers for the length of a block; loggers below them have no level of their own.

    Blocks of several threads may overlap: silence ends with the last one.
    """
    _SILENCE.begin()
    try:
        yield
    finally:
        _SILENCE.end()
