"""The names of what can be wrong. What proves each is in tallystick/anomalies/, a file each.

The letters are those of the anomaly taxonomy in docs/findings.md.
"""

from enum import StrEnum


class BreakClass(StrEnum):
    """A proven disagreement. The name carries the side that is wrong."""

    MISSING_IN_TOPIC_NEVER_PRODUCED = "missing_in_topic_never_produced"
    MISSING_IN_TOPIC_ABORTED_ONLY = "missing_in_topic_aborted_only"
    LOST_ACKNOWLEDGED_WRITE = "lost_acknowledged_write"
    MISROUTED_IN_TOPIC = "misrouted_in_topic"
    MISSING_IN_LEDGER = "missing_in_ledger"
    DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE = "duplicate_in_topic_no_idempotence"
    DUPLICATE_IN_TOPIC_NEW_SESSION = "duplicate_in_topic_new_session"
    DUPLICATE_IN_TOPIC_ZOMBIE = "duplicate_in_topic_zombie"
    DUPLICATE_IN_TOPIC_REPROCESSED = "duplicate_in_topic_reprocessed"
    DUPLICATE_IN_TOPIC_COMPENSATED = "duplicate_in_topic_compensated"
    DUPLICATE_IN_LEDGER_COMPENSATED = "duplicate_in_ledger_compensated"
    DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN = "duplicate_in_topic_cause_unknown"
    DUPLICATE_IN_LEDGER = "duplicate_in_ledger"
    PHANTOM_IN_TOPIC = "phantom_in_topic"
    PHANTOM_IN_LEDGER = "phantom_in_ledger"
    ROW_WITHOUT_KEY = "row_without_key"
    FOREIGN_IN_TOPIC = "foreign_in_topic"
    ABORTED_READ_IN_LEDGER = "aborted_read_in_ledger"
    OPEN_READ_IN_LEDGER = "open_read_in_ledger"
    AMOUNT_MISMATCH = "amount_mismatch"
    CURRENCY_MISMATCH = "currency_mismatch"
    COLUMN_MISMATCH = "column_mismatch"
    GROUP_SUM_MISMATCH = "group_sum_mismatch"
    TORN_TRANSACTION = "torn_transaction"
    TORN_BY_PROTOCOL = "torn_by_protocol"
    BLED_INTO_TRANSACTION = "bled_into_transaction"
    OUT_OF_ORDER_IN_TOPIC = "out_of_order_in_topic"
    COMPENSATED_TWICE = "compensated_twice"
    COMPENSATION_NOT_EFFECTIVE = "compensation_not_effective"


COPIES_DIFFER = frozenset(
    {
        BreakClass.AMOUNT_MISMATCH,
        BreakClass.CURRENCY_MISMATCH,
        BreakClass.COLUMN_MISMATCH,
        BreakClass.MISROUTED_IN_TOPIC,
    }
)
"""Classes of a key one of whose copies is wrong: a further copy may be its owner's correction."""

WITHOUT_PARTNER = frozenset(
    {
        BreakClass.PHANTOM_IN_TOPIC,
        BreakClass.PHANTOM_IN_LEDGER,
        BreakClass.ROW_WITHOUT_KEY,
        BreakClass.FOREIGN_IN_TOPIC,
        BreakClass.MISROUTED_IN_TOPIC,
        BreakClass.ABORTED_READ_IN_LEDGER,
        BreakClass.OPEN_READ_IN_LEDGER,
    }
)
"""Classes of a copy that nothing on the other side asks for by its key: it may be what is missing there."""

SURPLUS_CLASSES = frozenset(
    {
        BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE,
        BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
        BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE,
        BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED,
        BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED,
        BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN,
        BreakClass.DUPLICATE_IN_LEDGER,
        BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED,
        BreakClass.COMPENSATED_TWICE,
        BreakClass.BLED_INTO_TRANSACTION,
    }
)
"""Classes of a copy that is one too many: a partner changes nothing about it, what takes it back does."""


class Doubt(StrEnum):
    """A reason why a run could not prove the books. Each makes the verdict INCONCLUSIVE at least."""

    BASELINE = "baseline"
    CUT_CLOSED = "cut_closed"
    HELD_BY_OPEN_TRANSACTION = "held_by_open_transaction"
    HANGING_TRANSACTION = "hanging_transaction"
    HELD_BY_PREPARED_TRANSACTION = "held_by_prepared_transaction"
    HELD_BY_REPLICATION = "held_by_replication"
    HELD_BY_LEDGER_HORIZON = "held_by_ledger_horizon"
    UNEXPLAINED_GAP = "unexplained_gap"
    READERS_DISAGREE = "readers_disagree"
    VACUOUS_RUN = "vacuous_run"
    UNREADABLE_PAYLOAD = "unreadable_payload"
    FORGED_REPAIR = "forged_repair"
    LOG_EXPIRED = "log_expired"
    LOG_COMPACTED = "log_compacted"
    LOG_REWRITTEN = "log_rewritten"
    LOG_TRUNCATED = "log_truncated"
    TOPIC_RECREATED = "topic_recreated"
    TORN_CUT = "torn_cut"
    CANARY_MISSED = "canary_missed"
    LEDGER_REWRITTEN = "ledger_rewritten"
    LEDGER_FAILED_OVER = "ledger_failed_over"
    LEDGER_IDS_REUSED = "ledger_ids_reused"
    KEY_INDEX_LOST = "key_index_lost"
    ROW_IDS_REPEAT = "row_ids_repeat"
    PARTNER_NOT_SETTLED = "partner_not_settled"


NOTHING_READ = frozenset({Doubt.BASELINE, Doubt.CUT_CLOSED})
"""Doubts of a run that read neither side, nor any setting."""


class Notice(StrEnum):
    """An observation that changes no verdict: something that Kafka allows, or that is about to go wrong."""

    EMPTY_TRANSACTION = "empty_transaction"
    LATE_PARTNER = "late_partner"
    PAIRED_ACROSS_WINDOWS = "paired_across_windows"
    REPRESENTATION_DIFFERS = "representation_differs"
    OFFSETTING_ERRORS = "offsetting_errors"
    UNFILTERED_READER = "unfiltered_reader"
    TIMESTAMP_SKEW = "timestamp_skew"
    HOST_CLOCK_OFF = "host_clock_off"
    RETENTION_OVERTAKES = "retention_overtakes"
    CURSOR_STOPPED = "cursor_stopped"
    BACKLOG_GROWS = "backlog_grows"
    PROMISE_AT_RISK = "promise_at_risk"
