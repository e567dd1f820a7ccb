"""The anomaly classes: a file each, a line each in the registry below.

A class is a pure function from evidence to the breaks, doubts or notices it proves. It reads nothing, knows no clock
and calls no other class.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tallystick.break_class import BreakClass, Doubt, Notice
from tallystick.classes.canary_missed import canary_missed
from tallystick.classes.duplicate_in_ledger import duplicate_in_ledger
from tallystick.classes.duplicate_in_topic import duplicate_in_topic
from tallystick.classes.held import held_by_ledger_horizon, held_by_open_transaction, partner_not_settled
from tallystick.classes.ledger_changed import ledger_failed_over, ledger_rewritten
from tallystick.classes.log_expired import log_expired
from tallystick.classes.mismatch import amount_mismatch, currency_mismatch
from tallystick.classes.missing_in_ledger import missing_in_ledger
from tallystick.classes.missing_in_topic import missing_in_topic_aborted_only, missing_in_topic_never_produced
from tallystick.classes.phantom import phantom_in_ledger, phantom_in_topic
from tallystick.classes.promise_at_risk import promise_at_risk
from tallystick.classes.readers_disagree import readers_disagree
from tallystick.classes.torn_transaction import torn_transaction
from tallystick.classes.unexplained_gap import unexplained_gap
from tallystick.classes.unreadable_payload import unreadable_payload
from tallystick.classes.vacuous_run import vacuous_run
from tallystick.evidence import Evidence
from tallystick.run_result import Break, DoubtFound, NoticeFound


@dataclass(frozen=True, kw_only=True)
class ClassRule:
    """One line of the registry. letters: the rows of the taxonomy in ARCHITECTURE.md that it covers."""

    names: tuple[BreakClass | Doubt | Notice, ...]
    letters: str
    judge: Callable[[Evidence], Iterable[Break | DoubtFound | NoticeFound]]


CLASSES: tuple[ClassRule, ...] = (
    ClassRule(names=(BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,), letters="M1", judge=missing_in_topic_never_produced),
    ClassRule(names=(BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY,), letters="M2", judge=missing_in_topic_aborted_only),
    ClassRule(names=(BreakClass.MISSING_IN_LEDGER,), letters="K1", judge=missing_in_ledger),
    ClassRule(
        names=(
            BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE,
            BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
            BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED,
            BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN,
        ),
        letters="D1 D2 D4",
        judge=duplicate_in_topic,
    ),
    ClassRule(names=(BreakClass.DUPLICATE_IN_LEDGER,), letters="D5 K2", judge=duplicate_in_ledger),
    ClassRule(names=(BreakClass.PHANTOM_IN_TOPIC,), letters="P1", judge=phantom_in_topic),
    ClassRule(names=(BreakClass.PHANTOM_IN_LEDGER,), letters="P1", judge=phantom_in_ledger),
    ClassRule(names=(BreakClass.AMOUNT_MISMATCH,), letters="X1", judge=amount_mismatch),
    ClassRule(names=(BreakClass.CURRENCY_MISMATCH,), letters="X1", judge=currency_mismatch),
    ClassRule(names=(BreakClass.TORN_TRANSACTION,), letters="T1", judge=torn_transaction),
    ClassRule(names=(Doubt.HELD_BY_OPEN_TRANSACTION,), letters="M3 T4", judge=held_by_open_transaction),
    ClassRule(names=(Doubt.HELD_BY_LEDGER_HORIZON,), letters="P2 L1", judge=held_by_ledger_horizon),
    ClassRule(names=(Doubt.PARTNER_NOT_SETTLED,), letters="M3 P2", judge=partner_not_settled),
    ClassRule(names=(Doubt.LOG_EXPIRED,), letters="M4", judge=log_expired),
    ClassRule(names=(Doubt.UNEXPLAINED_GAP,), letters="R4", judge=unexplained_gap),
    ClassRule(names=(Doubt.READERS_DISAGREE,), letters="Q1", judge=readers_disagree),
    ClassRule(names=(Doubt.UNREADABLE_PAYLOAD,), letters="M6", judge=unreadable_payload),
    ClassRule(names=(Doubt.LEDGER_REWRITTEN,), letters="Q2", judge=ledger_rewritten),
    ClassRule(names=(Doubt.LEDGER_FAILED_OVER,), letters="Q2", judge=ledger_failed_over),
    ClassRule(names=(Doubt.VACUOUS_RUN,), letters="Q1", judge=vacuous_run),
    ClassRule(names=(Notice.PROMISE_AT_RISK,), letters="", judge=promise_at_risk),
    ClassRule(names=(Doubt.CANARY_MISSED,), letters="Q1", judge=canary_missed),
)
"""The catalogue, in report order."""
