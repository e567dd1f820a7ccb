"""What a compensation refuses stays refused: a retry would ask the same question again."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException


@contextmanager
def no_retry_for_a_refused_plan() -> Iterator[None]:
    """Turn a refusal into a failure that Airflow does not retry. What a retry can cure passes unchanged."""
    from tallystick.compensation.plan import PlanRefused  # database clients: not while parsing
    from tallystick.executor.progress_topic import ProgressLost

    try:
        yield
    except (PlanRefused, ProgressLost) as refusal:
        raise AirflowFailException(f"{type(refusal).__name__}: {refusal}") from refusal
