"""The alerts that on-call gets: one per contract and class, whatever the number of rows. Pure; deliver_alerts.py sends.

An alert of a class fires when a run finds breaks of it and resolves when none of it is outstanding any more. Between
the two it never becomes less severe; it becomes more so by age, once, unless a person has acknowledged it.
A notice that pages, and a doubt of PAGING_DOUBTS, has an alert of its own too: it fires while runs see it and resolves
at the first run that looks for it and does not, whatever that run's verdict, since it is looked at anew each time. A
run that could not look at a place that it was told of ends nothing: looked_for.py.
A run that proved nothing says so quietly and resolves nothing else. A baseline says nothing.
What is acknowledged is told again only when it is worse: with new breaks, with more of what is looked at anew, with
the same at another place, or with another producer's hanging transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from tallystick.contract.alerts import Severity
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Money

INCONCLUSIVE = "inconclusive"
"""Name of the alert that says a run proved nothing."""

NO_VERDICT = "no_verdict"
"""Name of the alert that says a run proved nothing because it did not end."""

VERDICT_OVERDUE = "verdict_overdue"
"""Name of the alert that says a window has no verdict, and should have one by now."""

TEST = "test"
"""Name of the alert by which a person tests that pages arrive. It stands in no outbox."""

SILENCES = frozenset((NO_VERDICT, VERDICT_OVERDUE))
"""Alerts of verdicts that are not there. No run tells of them, nor resolves them: `missing_verdict_alert` does."""

EXPECTATION_NOT_MET = "expectation_not_met"
"""Name of the alert that says a window did not meet an expectation of the contract's own."""

EXPECTATION_NOT_EVALUATED = "expectation_not_evaluated"
"""Name of the alert that says an expectation of the contract's own gave no answer, so that nothing was met by it."""

OWN_EXPECTATIONS = frozenset((EXPECTATION_NOT_MET, EXPECTATION_NOT_EVALUATED))
"""Alerts of the contract's own expectations, which are evaluated after the commit. A run resolves them only where its
contract has no expectations any more: `expectation_alerts` does else."""

PAGING_DOUBTS = (Doubt.HANGING_TRANSACTION,)
"""Critical, though no money is known to be wrong: nobody will ever end it, and all behind it waits."""

CRITICAL_CLASSES = (BreakClass.ABORTED_READ_IN_LEDGER,)
"""Critical whatever the money: the books hold what never happened, and the consumer goes on."""

SAMPLES_MAX = 5
"""Enough to look one up by hand; the report has them all. Also the sentences of a doubt that stands many times."""


_DELIVERIES = UUID("5b0c8a51-52c0-4d0e-9e6d-3f3d3c6a7f10")
"""Name space of delivery keys; any constant will do, and it must stay."""


class AlertAction(StrEnum):
    """The words of PagerDuty's Events API v2."""

    TRIGGER = "trigger"
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"


@dataclass(frozen=True, kw_only=True)
class Outstanding:
    """The breaks of one class that nobody has cleared or written off. Money in integer minor units, without signs.

    negative: the part of the money that amounts below zero make up.
    """

    count: int
    money: Money
    first_seen_utc: datetime
    negative: Money = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One message to on-call. dedup_key is the same for the trigger and its resolve, and over all runs.

    cut_n: None where it tells of a verdict that is not there, or once more of what a cut has told. details: JSON
    values; counts, money, keys; no payload, no address. sinks: the names it is addressed to.
    outbox_id, at_utc, began_utc: its number in the outbox, when it was put there, and when its incident began: at the
    first trigger after the last resolve. None before it stands there.
    """

    contract: str
    cut_n: int | None
    name: str
    action: AlertAction
    severity: Severity
    summary: str
    details: Mapping[str, Any]
    sinks: tuple[str, ...]
    outbox_id: int | None = None
    at_utc: datetime | None = None
    began_utc: datetime | None = None

    @property
    def dedup_key(self) -> str:
        """Return the key of the incident: one per contract and class."""
        return dedup_key(self.contract, self.name)

    @property
    def delivery_key(self) -> str:
        """Return the key of this message: the same each time it is sent, another one for each other message."""
        told = f"{self.dedup_key} {self.action} {self.outbox_id} {self.summary}"
        return str(uuid5(_DELIVERIES, told))


def dedup_key(contract_name: str, alert_name: str) -> str:
    """Return the key of the incidents of one class."""
    return f"tallystick/{contract_name}/{alert_name}"
