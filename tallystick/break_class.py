"""The names of what can be wrong. What proves each is in tallystick/classes/, a file each.

The letters are those of the anomaly taxonomy in ARCHITECTURE.md.
"""

from enum import StrEnum


class BreakClass(StrEnum):
    """A proven disagreement. The name carries the side that is wrong."""

    MISSING_IN_TOPIC_NEVER_PRODUCED = "missing_in_topic_never_produced"
    MISSING_IN_TOPIC_ABORTED_ONLY = "missing_in_topic_aborted_only"
    MISSING_IN_LEDGER = "missing_in_ledger"
    DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE = "duplicate_in_topic_no_idempotence"
    DUPLICATE_IN_TOPIC_NEW_SESSION = "duplicate_in_topic_new_session"
    DUPLICATE_IN_TOPIC_REPROCESSED = "duplicate_in_topic_reprocessed"
    DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN = "duplicate_in_topic_cause_unknown"
    DUPLICATE_IN_LEDGER = "duplicate_in_ledger"
    PHANTOM_IN_TOPIC = "phantom_in_topic"
    PHANTOM_IN_LEDGER = "phantom_in_ledger"
    AMOUNT_MISMATCH = "amount_mismatch"
    CURRENCY_MISMATCH = "currency_mismatch"
    TORN_TRANSACTION = "torn_transaction"


class Doubt(StrEnum):
    """Why a run could not prove the books. Each makes the verdict INCONCLUSIVE at least."""

    BASELINE = "baseline"
    HELD_BY_OPEN_TRANSACTION = "held_by_open_transaction"
    HELD_BY_LEDGER_HORIZON = "held_by_ledger_horizon"
    UNEXPLAINED_GAP = "unexplained_gap"
    READERS_DISAGREE = "readers_disagree"
    VACUOUS_RUN = "vacuous_run"
    UNREADABLE_PAYLOAD = "unreadable_payload"
    LOG_EXPIRED = "log_expired"
    LEDGER_REWRITTEN = "ledger_rewritten"
    LEDGER_FAILED_OVER = "ledger_failed_over"
    PARTNER_NOT_SETTLED = "partner_not_settled"
