"""The values from which the metrics are computed: one contract, its newest judged window, its sinks."""

from dataclasses import dataclass
from datetime import datetime

from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemTotal
from tallystick.model.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class ClassTotal:
    """The items of one state and, where broken, of one class, that were first seen together."""

    break_class: BreakClass | None
    items: ItemTotal


@dataclass(frozen=True, kw_only=True)
class JudgedWindow:
    """The newest window that has a verdict.

    run_seconds: from its stored cut to its stored verdict. *_settled_until_utc: up to when a run has seen a side whole;
    None where none has. expires_utc: when retention may take the first offset that nobody has read.
    """

    verdict: Verdict
    window_end_utc: datetime
    run_seconds: float
    topic_settled_until_utc: datetime | None
    ledger_settled_until_utc: datetime | None
    expires_utc: datetime | None


@dataclass(frozen=True, kw_only=True)
class SinkFigures:
    """failures: attempts that a sink did not take, ever. owed: alerts that it has not got yet."""

    sink: str
    failures: int
    owed: int


@dataclass(frozen=True, kw_only=True)
class ContractFigures:
    """One contract's books. due_utc: when the next verdict should be there. judged: None until there is a verdict."""

    contract: str
    due_utc: datetime
    judged: JudgedWindow | None
    standing: tuple[ClassTotal, ...]
    sinks: tuple[SinkFigures, ...]
