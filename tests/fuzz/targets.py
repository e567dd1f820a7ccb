"""What is fuzzed: each target takes any bytes, and raises nothing. What it finds wrong is an AssertionError."""

from collections.abc import Callable, Mapping
from pathlib import Path

from . import file_targets, log_targets

Target = Callable[[bytes], None]
CORPUS = Path(__file__).parent / "corpus"

TARGETS: Mapping[str, Target] = {
    "batches": log_targets.batches,
    "events": log_targets.events,
    "headers": log_targets.headers,
    "progress": log_targets.progress,
    "contracts": file_targets.contracts,
    "key_indexes": file_targets.key_indexes,
    "rows": file_targets.rows,
}


def corpus_of(name: str) -> list[Path]:
    """Inputs that reach something of their own, and each that once broke the product."""
    return sorted((CORPUS / name).iterdir())
