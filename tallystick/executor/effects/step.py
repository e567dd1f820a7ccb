"""The steps that an executor reports while it repairs: each names what is done by then, in the protocol's order."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any


class ExecutorStep(StrEnum):
    """The steps in the order of one attempt. evidence_kept, marked: of a hanging transaction; unanswered: before
    either, as often as the cluster does not say all that its proof needs. started: of a DAG's run. begun: a producer
    transaction, or one in the ledger, which has the action's id. inserted, posted: of rows in the ledger. aborted: back
    to fenced. stopped: ends it at any step, with the error's name.
    """

    APPROVED = "approved"
    EXECUTING = "executing"
    FENCED = "fenced"
    PROGRESS_READ = "progress_read"
    PROVED = "proved"
    UNANSWERED = "unanswered"
    EVIDENCE_KEPT = "evidence_kept"
    MARKED = "marked"
    STARTED = "started"
    BEGUN = "begun"
    PRODUCED = "produced"
    FLUSHED = "flushed"
    PUBLISHED = "published"
    INSERTED = "inserted"
    POSTED = "posted"
    ABORTED = "aborted"
    RECORDED = "recorded"
    FINISHED = "finished"
    STOPPED = "stopped"


OnProgress = Callable[[str, Mapping[str, Any]], None]
"""Called with a step and its figures."""


def no_progress(step: str, figures: Mapping[str, Any]) -> None:
    """Ignore the step: the caller only wants the result."""
