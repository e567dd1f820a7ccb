"""The refusals of a compensation, which stay refused: a retry would ask the same question again."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from tallystick.model.errors import TallystickError


@contextmanager
def no_retry_for_a_refused_plan() -> Iterator[None]:
    """Turn a refusal into a failure that Airflow does not retry. What a retry can cure passes unchanged."""
    try:
        yield
    except TallystickError as refusal:
        if refusal.retryable:
            raise
        raise AirflowFailException(f"{type(refusal).__name__}: {refusal}") from refusal
