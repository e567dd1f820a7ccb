"""What is fuzzed: each target takes any bytes, and raises nothing. What it finds wrong is an AssertionError."""

import signal
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from . import file_targets, format_targets, log_targets

Target = Callable[[bytes], None]
CORPUS = Path(__file__).parent / "corpus"

TARGETS: Mapping[str, Target] = {
    "batches": log_targets.batches,
    "events": log_targets.events,
    "formats": format_targets.formats,
    "avro_schemas": format_targets.avro_schemas,
    "compared_texts": file_targets.compared_texts,
    "headers": log_targets.headers,
    "progress": log_targets.progress,
    "contracts": file_targets.contracts,
    "key_indexes": file_targets.key_indexes,
    "rows": file_targets.rows,
}


def corpus_of(name: str) -> list[Path]:
    """Inputs that reach something of their own, and each that once broke the product."""
    return sorted((CORPUS / name).iterdir())


class TooSlow(BaseException):
    """No Exception, so that a product that takes every one does not take this."""


def within_cpu_seconds(seconds: float, target: Target) -> Target:
    """The same target; raises TooSlow once this process itself has computed so long over one input."""

    def stop(*_: Any) -> None:
        raise TooSlow(f"expected an input to take {seconds} CPU seconds at most")

    @wraps(target)
    def timed(data: bytes) -> None:
        before = signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            target(data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    return timed
