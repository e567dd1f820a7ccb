"""The anomaly classes: a file each, a line each in the registry below.

A class is a pure function from parts of the evidence to the breaks, doubts or notices they prove: its parameters name
the parts. It reads nothing, knows no clock and calls no other class.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from inspect import signature
from operator import attrgetter
from typing import Any, TypeVar

from tallystick.anomalies.breaks.aborted_read import aborted_read_in_ledger, open_read_in_ledger
from tallystick.anomalies.breaks.bled_into_transaction import bled_into_transaction
from tallystick.anomalies.breaks.compensated_twice import compensated_twice
from tallystick.anomalies.breaks.compensation_not_effective import compensation_not_effective
from tallystick.anomalies.breaks.duplicate_in_ledger import duplicate_in_ledger
from tallystick.anomalies.breaks.duplicate_in_ledger_compensated import duplicate_in_ledger_compensated
from tallystick.anomalies.breaks.duplicate_in_topic import duplicate_in_topic
from tallystick.anomalies.breaks.foreign_in_topic import foreign_in_topic
from tallystick.anomalies.breaks.group_sum_mismatch import group_sum_mismatch
from tallystick.anomalies.breaks.lost_acknowledged_write import lost_acknowledged_write
from tallystick.anomalies.breaks.mismatch import amount_mismatch, column_mismatch, currency_mismatch
from tallystick.anomalies.breaks.misrouted_in_topic import misrouted_in_topic
from tallystick.anomalies.breaks.missing_in_ledger import missing_in_ledger
from tallystick.anomalies.breaks.missing_in_topic import missing_in_topic_aborted_only, missing_in_topic_never_produced
from tallystick.anomalies.breaks.out_of_order_in_topic import out_of_order_in_topic
from tallystick.anomalies.breaks.phantom import phantom_in_ledger, phantom_in_topic
from tallystick.anomalies.breaks.row_without_key import row_without_key
from tallystick.anomalies.breaks.torn_by_protocol import torn_by_protocol
from tallystick.anomalies.breaks.torn_transaction import torn_transaction
from tallystick.anomalies.doubts.canary_missed import canary_missed
from tallystick.anomalies.doubts.forged_repair import forged_repair
from tallystick.anomalies.doubts.hanging_transaction import (
    hanging_transaction,
    hanging_unseen,
    held_by_prepared_transaction,
)
from tallystick.anomalies.doubts.held import held_by_ledger_horizon, held_by_open_transaction, partner_not_settled
from tallystick.anomalies.doubts.held_by_replication import held_by_replication
from tallystick.anomalies.doubts.key_index_lost import key_index_lost
from tallystick.anomalies.doubts.ledger_changed import ledger_failed_over, ledger_ids_reused, ledger_rewritten
from tallystick.anomalies.doubts.log_compacted import log_compacted
from tallystick.anomalies.doubts.log_expired import log_expired
from tallystick.anomalies.doubts.log_rewritten import log_rewritten
from tallystick.anomalies.doubts.readers_disagree import readers_disagree
from tallystick.anomalies.doubts.row_ids_repeat import row_ids_repeat
from tallystick.anomalies.doubts.topic_recreated import log_truncated, topic_recreated
from tallystick.anomalies.doubts.torn_cut import torn_cut
from tallystick.anomalies.doubts.unexplained_gap import unexplained_gap
from tallystick.anomalies.doubts.unreadable_payload import unreadable_payload
from tallystick.anomalies.doubts.vacuous_run import vacuous_run
from tallystick.anomalies.notices.backlog_grows import backlog_grows, backlog_told_as_stopped
from tallystick.anomalies.notices.cursor_stopped import cursor_stopped
from tallystick.anomalies.notices.empty_transaction import empty_transaction
from tallystick.anomalies.notices.host_clock_off import host_clock_off
from tallystick.anomalies.notices.late_partner import late_partner
from tallystick.anomalies.notices.offsetting_errors import offsetting_errors
from tallystick.anomalies.notices.paired_across_windows import paired_across_windows
from tallystick.anomalies.notices.promise_at_risk import promise_at_risk, settings_unseen
from tallystick.anomalies.notices.representation_differs import representation_differs
from tallystick.anomalies.notices.retention_overtakes import expiry_unseen, retention_overtakes
from tallystick.anomalies.notices.timestamp_skew import timestamp_skew
from tallystick.anomalies.notices.unfiltered_reader import unfiltered_reader
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import Break, DoubtFound, NoticeFound

Finding = Break | DoubtFound | NoticeFound
AnyFinding = TypeVar("AnyFinding", bound=Finding)


@dataclass(frozen=True, kw_only=True)
class AnomalyRule:
    """One line of the registry. letters: the rows of the taxonomy in docs/findings.md that it covers."""

    names: tuple[BreakClass | Doubt | Notice, ...]
    letters: str
    rule: Callable[..., Iterable[Finding]]
    """Its parameters are parts of `Evidence`, by name."""
    unseen: Callable[..., Iterable[str]] | None = None
    """Of a rule whose silence ends an alert: the places at which it could not look. Parameters as of the rule."""

    def judge(self, evidence: Evidence) -> Iterable[Finding]:
        """The breaks, doubts or notices that this evidence proves."""
        return findings_of(self.rule, evidence)

    def places_unseen(self, evidence: Evidence) -> frozenset[str]:
        """The places of which it says nothing, since this run could not look there."""
        return frozenset(self.unseen(*_parts_for(self.unseen)(evidence)) if self.unseen else ())


def findings_of(rule: Callable[..., Iterable[AnyFinding]], evidence: Evidence) -> Iterable[AnyFinding]:
    """Give a rule the parts of the evidence that it names, and no others."""
    return rule(*_parts_for(rule)(evidence))


@cache
def _parts_for(rule: Callable[..., object]) -> Callable[[Evidence], tuple[Any, ...]]:
    """Reads the parts that a rule names, in its order. Each run asks each rule, and reading a signature takes longer
    than most rules do.
    """
    names = tuple(signature(rule).parameters)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda evidence: tuple([getattr(evidence, name) for name in names])


RULES: tuple[AnomalyRule, ...] = (
    AnomalyRule(
        names=(BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED,), letters="M1", rule=missing_in_topic_never_produced
    ),
    AnomalyRule(names=(BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY,), letters="M2", rule=missing_in_topic_aborted_only),
    AnomalyRule(names=(BreakClass.LOST_ACKNOWLEDGED_WRITE,), letters="M7", rule=lost_acknowledged_write),
    AnomalyRule(names=(BreakClass.MISROUTED_IN_TOPIC,), letters="M5", rule=misrouted_in_topic),
    AnomalyRule(names=(BreakClass.MISSING_IN_LEDGER,), letters="K1", rule=missing_in_ledger),
    AnomalyRule(
        names=(
            BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE,
            BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
            BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE,
            BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED,
            BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED,
            BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN,
        ),
        letters="D1 D2 D3 D4 D6 D7",
        rule=duplicate_in_topic,
    ),
    AnomalyRule(names=(BreakClass.COMPENSATED_TWICE,), letters="C1", rule=compensated_twice),
    AnomalyRule(names=(BreakClass.DUPLICATE_IN_LEDGER,), letters="D5 K2", rule=duplicate_in_ledger),
    AnomalyRule(
        names=(BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED,), letters="D7", rule=duplicate_in_ledger_compensated
    ),
    AnomalyRule(names=(BreakClass.PHANTOM_IN_TOPIC,), letters="P1", rule=phantom_in_topic),
    AnomalyRule(names=(BreakClass.PHANTOM_IN_LEDGER,), letters="P1", rule=phantom_in_ledger),
    AnomalyRule(names=(BreakClass.ROW_WITHOUT_KEY,), letters="M6", rule=row_without_key),
    AnomalyRule(names=(BreakClass.FOREIGN_IN_TOPIC,), letters="P3", rule=foreign_in_topic),
    AnomalyRule(names=(BreakClass.ABORTED_READ_IN_LEDGER,), letters="A1", rule=aborted_read_in_ledger),
    AnomalyRule(names=(BreakClass.OPEN_READ_IN_LEDGER,), letters="A2", rule=open_read_in_ledger),
    AnomalyRule(names=(BreakClass.AMOUNT_MISMATCH,), letters="X1", rule=amount_mismatch),
    AnomalyRule(names=(BreakClass.CURRENCY_MISMATCH,), letters="X1", rule=currency_mismatch),
    AnomalyRule(names=(BreakClass.COLUMN_MISMATCH,), letters="X1", rule=column_mismatch),
    AnomalyRule(names=(BreakClass.GROUP_SUM_MISMATCH,), letters="X1", rule=group_sum_mismatch),
    AnomalyRule(names=(BreakClass.OUT_OF_ORDER_IN_TOPIC,), letters="O1", rule=out_of_order_in_topic),
    AnomalyRule(names=(BreakClass.TORN_TRANSACTION,), letters="T1", rule=torn_transaction),
    AnomalyRule(names=(BreakClass.TORN_BY_PROTOCOL,), letters="T2", rule=torn_by_protocol),
    AnomalyRule(names=(BreakClass.BLED_INTO_TRANSACTION,), letters="T6", rule=bled_into_transaction),
    AnomalyRule(names=(Notice.EMPTY_TRANSACTION,), letters="T7", rule=empty_transaction),
    AnomalyRule(names=(BreakClass.COMPENSATION_NOT_EFFECTIVE,), letters="C2", rule=compensation_not_effective),
    AnomalyRule(names=(Doubt.HELD_BY_OPEN_TRANSACTION,), letters="M3 T4", rule=held_by_open_transaction),
    AnomalyRule(names=(Doubt.HANGING_TRANSACTION,), letters="T3", rule=hanging_transaction, unseen=hanging_unseen),
    AnomalyRule(names=(Doubt.HELD_BY_PREPARED_TRANSACTION,), letters="T5", rule=held_by_prepared_transaction),
    AnomalyRule(names=(Doubt.HELD_BY_REPLICATION,), letters="M3", rule=held_by_replication),
    AnomalyRule(names=(Doubt.HELD_BY_LEDGER_HORIZON,), letters="P2 L1", rule=held_by_ledger_horizon),
    AnomalyRule(names=(Doubt.PARTNER_NOT_SETTLED,), letters="M3 P2", rule=partner_not_settled),
    AnomalyRule(names=(Doubt.LOG_EXPIRED,), letters="M4", rule=log_expired),
    AnomalyRule(names=(Doubt.LOG_COMPACTED,), letters="R3", rule=log_compacted),
    AnomalyRule(names=(Doubt.LOG_REWRITTEN,), letters="R1", rule=log_rewritten),
    AnomalyRule(names=(Doubt.TOPIC_RECREATED,), letters="R2", rule=topic_recreated),
    AnomalyRule(names=(Doubt.LOG_TRUNCATED,), letters="R2", rule=log_truncated),
    AnomalyRule(names=(Doubt.TORN_CUT,), letters="Q2", rule=torn_cut),
    AnomalyRule(names=(Doubt.UNEXPLAINED_GAP,), letters="R4", rule=unexplained_gap),
    AnomalyRule(names=(Doubt.READERS_DISAGREE,), letters="Q1", rule=readers_disagree),
    AnomalyRule(names=(Doubt.UNREADABLE_PAYLOAD,), letters="M6", rule=unreadable_payload),
    AnomalyRule(names=(Doubt.FORGED_REPAIR,), letters="C3", rule=forged_repair),
    AnomalyRule(names=(Doubt.LEDGER_REWRITTEN,), letters="Q2", rule=ledger_rewritten),
    AnomalyRule(names=(Doubt.LEDGER_FAILED_OVER,), letters="Q2", rule=ledger_failed_over),
    AnomalyRule(names=(Doubt.LEDGER_IDS_REUSED,), letters="Q2", rule=ledger_ids_reused),
    AnomalyRule(names=(Doubt.KEY_INDEX_LOST,), letters="Q2", rule=key_index_lost),
    AnomalyRule(names=(Doubt.ROW_IDS_REPEAT,), letters="Q2", rule=row_ids_repeat),
    AnomalyRule(names=(Doubt.VACUOUS_RUN,), letters="Q1", rule=vacuous_run),
    AnomalyRule(names=(Notice.PROMISE_AT_RISK,), letters="", rule=promise_at_risk, unseen=settings_unseen),
    AnomalyRule(names=(Doubt.CANARY_MISSED,), letters="Q1", rule=canary_missed),
    AnomalyRule(names=(Notice.LATE_PARTNER,), letters="L2", rule=late_partner),
    AnomalyRule(names=(Notice.PAIRED_ACROSS_WINDOWS,), letters="L3", rule=paired_across_windows),
    AnomalyRule(names=(Notice.RETENTION_OVERTAKES,), letters="M4", rule=retention_overtakes, unseen=expiry_unseen),
    AnomalyRule(names=(Notice.CURSOR_STOPPED,), letters="M3 P2", rule=cursor_stopped),
    AnomalyRule(names=(Notice.BACKLOG_GROWS,), letters="M3 P2", rule=backlog_grows, unseen=backlog_told_as_stopped),
    AnomalyRule(names=(Notice.REPRESENTATION_DIFFERS,), letters="X2", rule=representation_differs),
    AnomalyRule(names=(Notice.OFFSETTING_ERRORS,), letters="X3", rule=offsetting_errors),
    AnomalyRule(names=(Notice.UNFILTERED_READER,), letters="A3", rule=unfiltered_reader),
    AnomalyRule(names=(Notice.TIMESTAMP_SKEW,), letters="O2", rule=timestamp_skew),
    AnomalyRule(names=(Notice.HOST_CLOCK_OFF,), letters="", rule=host_clock_off),
)
"""The catalogue, in report order."""
