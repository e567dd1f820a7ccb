"""Faults of the log as a mixed round plants them: each on a log, in a namespace and under a contract of its own.

What is found about a partition cannot be told apart by event, and some of these faults hold, rename or empty a whole
topic; so no two of them share one. Beside each fault stands a payment or payout that agrees, in every window.
"""

import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.faults.break_writer import Planter, new_payment
from lab.faults.event_faults import Later, Planted
from lab.faults.log_faults import (
    compact_unread,
    expire_unread,
    lose_acknowledged_write,
    lose_read_records,
    overtake_by_retention,
    recreate_topic,
    send_out_of_order,
)
from lab.faults.transaction_faults import (
    bleed_into_transaction,
    commit_nothing,
    end_hanging_transactions,
    hang_transaction,
    tear_by_protocol,
)
from lab.product.command_line import CommandLine
from lab.rounds.round_contracts import payments_contract, payouts_contract
from lab.servers.stack import LabStack
from lab.services.event import Leg
from lab.truth.score import Finding, FindingKind
from lab.truth.truth import Anomaly

_DOUBTS = frozenset(
    {
        "hanging_transaction",
        "held_by_open_transaction",
        "log_compacted",
        "log_expired",
        "log_rewritten",
        "log_truncated",
        "topic_recreated",
    }
)
_NOTICES = frozenset({"empty_transaction", "retention_overtakes"})
_OF_THE_WHOLE = frozenset({"empty_transaction", "topic_recreated"})
_NOBODY_WAITS = {"settle_timeout_seconds": 1}
_RECEIPTS = {"receipt_partition": "receipt_partition", "receipt_offset": "receipt_offset"}


@dataclass(frozen=True, kw_only=True)
class LogBook:
    """One namespace, prepared and idle, under a contract of the same name, about payouts or, by `leg`, payments.

    cleanup: what the fault leaves at work; it ends with the round.
    """

    stack: LabStack
    name: str
    dice: random.Random
    leg: Leg
    command_line: CommandLine
    contract_file: Path
    cleanup: ExitStack

    def agree(self) -> None:
        """A payout, or a payment with both legs, on both sides."""
        with Planter.open(self.stack, self.name, self.dice) as planter:
            payment = replace(new_payment(self.dice), account=str(self.dice.getrandbits(64)), sequence=1)
            if self.leg is Leg.PAYOUT:
                planter.send_payout(payment, planter.place(payment.event(Leg.PAYOUT)))
                return
            legs = [payment.event(leg) for leg in (Leg.PAYMENT, Leg.INVOICE)]
            planter.publish_in_transaction(legs, source="agrees", commit=True)
            for event in legs:
                planter.post(event)

    def findings(self, truths: tuple[Anomaly, ...]) -> tuple[Finding, ...]:
        return tuple(
            Finding(contract=self.name, kind=_kind_of(truth), name=truth.break_class, subject=_subject_of(truth))
            for truth in truths
        )


@dataclass(frozen=True, kw_only=True)
class LogFault:
    """fields: what the contract says besides. allowed: classes that the fault may bring with it. always: in every round
    on one broker.
    """

    plant: Callable[[LogBook], Planted]
    fields: Mapping[str, Any] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    leg: Leg = Leg.PAYOUT
    always: bool = False

    @property
    def name(self) -> str:
        return self.plant.__name__

    def contract(self, namespace: str) -> dict[str, Any]:
        make = payouts_contract if self.leg is Leg.PAYOUT else payments_contract
        return make(namespace, namespace, **self.fields)


def expired(book: LogBook) -> Planted:
    truths = expire_unread(book.stack, book.name, book.dice)
    book.agree()
    return Planted(book.findings(truths), _nothing_more(book))


def compacted(book: LogBook) -> Planted:
    truths = compact_unread(book.stack, book.name, book.dice)
    return Planted(book.findings(truths), _nothing_more(book))


def overtaken(book: LogBook) -> Planted:
    """Held while retention runs; the holder commits once that was told."""
    book.agree()
    held, commit = overtake_by_retention(book.stack, book.name, book.dice)

    def end() -> tuple[Finding, ...]:
        commit()
        book.agree()
        return ()

    return Planted(book.findings(held), end)


def recreated(book: LogBook) -> Planted:
    recreate = recreate_topic(book.stack, book.name, book.dice)
    return Planted(later=lambda: book.findings(recreate()))


def unordered(book: LogBook) -> Planted:
    return Planted(book.findings(send_out_of_order(book.stack, book.name, book.dice)), _nothing_more(book))


def hanging(book: LogBook) -> Planted:
    """An administrator aborts it once it was told: then its event is one that was only ever aborted."""
    book.agree()
    (truth,) = hang_transaction(book.stack, book.name, book.dice)

    def abort() -> tuple[Finding, ...]:
        end_hanging_transactions(book.stack, book.name)
        book.agree()
        return (
            Finding(
                contract=book.name, kind=FindingKind.BREAK, name="missing_in_topic_aborted_only", subject=truth.event_id
            ),
        )

    return Planted(book.findings((truth,)), abort)


def torn(book: LogBook) -> Planted:
    book.agree()
    truths = tear_by_protocol(book.stack, book.name, book.dice)
    return Planted(book.findings(truths), _nothing_more(book))


def bled(book: LogBook) -> Planted:
    return Planted(book.findings(bleed_into_transaction(book.stack, book.name, book.dice)), _nothing_more(book))


def empty(book: LogBook) -> Planted:
    truths = commit_nothing(book.stack, book.name, book.dice)
    book.agree()
    return Planted(book.findings(truths), _nothing_more(book))


def lost(book: LogBook) -> Planted:
    truths = lose_acknowledged_write(book.stack, book.name, book.dice)
    return Planted(book.findings(truths), _nothing_more(book))


def rewritten(book: LogBook) -> Planted:
    lose = lose_read_records(book.stack, book.name, book.dice)
    return Planted(later=lambda: book.findings(lose()))


LOG_FAULTS = (
    LogFault(plant=expired, allowed=("partner_not_settled",)),
    LogFault(plant=compacted, allowed=("partner_not_settled",)),
    LogFault(plant=overtaken, fields=_NOBODY_WAITS, allowed=("partner_not_settled",)),
    LogFault(plant=recreated, allowed=("partner_not_settled", "vacuous_run")),
    LogFault(plant=unordered, fields={"event": {"ordering_key": "account", "sequence": "sequence"}}),
    LogFault(plant=hanging, fields=_NOBODY_WAITS, allowed=("partner_not_settled",)),
    LogFault(plant=torn, leg=Leg.PAYMENT),
    LogFault(plant=bled),
    LogFault(plant=empty),
)
"""What one broker is enough for."""

CLUSTER_FAULTS = (
    LogFault(plant=rewritten, allowed=("partner_not_settled",)),
    LogFault(plant=lost, fields={"columns": _RECEIPTS}),
)
"""What needs a leader that dies before its followers have everything."""


def _kind_of(truth: Anomaly) -> FindingKind:
    if truth.break_class == "undecidable":
        return FindingKind.UNDECIDABLE
    if truth.break_class in _DOUBTS:
        return FindingKind.DOUBT
    return FindingKind.NOTICE if truth.break_class in _NOTICES else FindingKind.BREAK


def _subject_of(truth: Anomaly) -> str:
    """The event, or the partition; nothing for what is told of a topic or a contract as a whole."""
    if truth.break_class in _OF_THE_WHOLE:
        return ""
    return truth.event_id if _kind_of(truth) in (FindingKind.BREAK, FindingKind.UNDECIDABLE) else truth.place


def _nothing_more(book: LogBook) -> Later:
    """In the second window there is ordinary traffic and no more fault."""

    def agree() -> tuple[Finding, ...]:
        book.agree()
        return ()

    return agree
