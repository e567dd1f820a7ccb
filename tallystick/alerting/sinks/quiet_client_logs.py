"""Keeps the logs of HTTP clients out of ours while they send: they name addresses, and an address may be a secret."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_THEY_NAME_ADDRESSES = ("apprise", "httpcore", "httpx", "urllib3")


@contextmanager
def silent_logs() -> Iterator[None]:
    """For the length of a block; loggers below these have no level of their own."""
    logs = [logging.getLogger(name) for name in _THEY_NAME_ADDRESSES]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
