"""What each break class and each doubt means, and what to look at first. For people; no rule depends on a word of it.

A test holds that every member of BreakClass and Doubt has its line.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.break_class import BreakClass, Doubt


@dataclass(frozen=True, kw_only=True)
class ClassText:
    """title: three to six words. means: one sentence of what is proven. check_first: one sentence, an action."""

    title: str
    means: str
    check_first: str


BREAK_TEXTS: Mapping[BreakClass, ClassText] = {
    BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED: ClassText(
        title="Missing in topic: never produced",
        means="The ledger committed the row, and no record of its event lies anywhere on the retained log.",
        check_first="Look at the outbox or relay around the row's commit: did it skip the row, or stop before sending?",
    ),
    BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY: ClassText(
        title="Missing in topic: aborted only",
        means="The event was written, but only inside producer transactions that were aborted, and never again.",
        check_first="Look for the relay's abort in its log: who should have retried, and who marked the row as sent?",
    ),
    BreakClass.MISSING_IN_LEDGER: ClassText(
        title="Missing in ledger",
        means="The event is committed on the topic, and the ledger has no row for it anywhere.",
        check_first="Look at the consumer's log here: were its offsets committed before the entry was posted?",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE: ClassText(
        title="Duplicate in topic: retry without idempotence",
        means="One process wrote the event twice without a producer id: a retry after a lost acknowledgement.",
        check_first="Check the producer's settings: enable.idempotence must be true, and acks must be all.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION: ClassText(
        title="Duplicate in topic: sent again",
        means="A second producer session, or the application itself, sent the event again; the broker cannot know.",
        check_first="Look for a restart between the two copies: what did the application resend, and from which state?",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED: ClassText(
        title="Duplicate in topic: input handled twice",
        means="Another process handled the same input again and wrote its output a second time.",
        check_first="Look at the input group's offsets: rewound, or committed outside the producer transaction?",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: ClassText(
        title="Duplicate in topic: cause unknown",
        means="The event stands twice; what would tell why (producer id, session header, the other copy) is not there.",
        check_first="Compare the copies' times with deployments, and let producers write a session header from now on.",
    ),
    BreakClass.DUPLICATE_IN_LEDGER: ClassText(
        title="Duplicate in ledger",
        means="The ledger holds more rows for the event than there are committed events.",
        check_first="Check for a unique index on the match key, and look for a redelivery or a job that ran twice.",
    ),
    BreakClass.PHANTOM_IN_TOPIC: ClassText(
        title="Phantom in topic",
        means="The event is committed on the topic, and the ledger never had a row for it.",
        check_first="Look for a ledger transaction that was rolled back after its event was sent: a dual write.",
    ),
    BreakClass.PHANTOM_IN_LEDGER: ClassText(
        title="Phantom in ledger",
        means="The ledger has the row, and no committed event stands behind it.",
        check_first="Check whether the consumer reads read_committed: an aborted event must never be posted.",
    ),
    BreakClass.AMOUNT_MISMATCH: ClassText(
        title="Amount mismatch",
        means="Event and row pair by key and currency, and their amounts differ.",
        check_first="Compare the two amounts: a factor of 10, 100 or 1000 is a conversion of minor units.",
    ),
    BreakClass.CURRENCY_MISMATCH: ClassText(
        title="Currency mismatch",
        means="Event and row pair by key, and name different currencies.",
        check_first="Find where the currency is set on each side: a default that fills in for a missing field?",
    ),
    BreakClass.TORN_TRANSACTION: ClassText(
        title="Torn transaction",
        means="Some legs of one business transaction are committed, and another never was.",
        check_first="Check that all legs are sent inside one producer transaction, and what happened between them.",
    ),
}

DOUBT_TEXTS: Mapping[Doubt, ClassText] = {
    Doubt.BASELINE: ClassText(
        title="Baseline",
        means="The books begin here; what lies before is not decidable and is never called a break.",
        check_first="Nothing is wrong: the next run is the first that can match.",
    ),
    Doubt.HELD_BY_OPEN_TRANSACTION: ClassText(
        title="Held by an open producer transaction",
        means="A producer transaction that has not ended keeps committed events behind it from being read.",
        check_first="Ask the holder's owner; if no coordinator lists it, it hangs: kafka-transactions.sh ends it.",
    ),
    Doubt.HELD_BY_LEDGER_HORIZON: ClassText(
        title="Held by an open database transaction",
        means="A database transaction that has not ended keeps committed ledger rows behind it from being read.",
        check_first="Find the holder in pg_stat_activity, pg_prepared_xacts or pg_replication_slots, and end it there.",
    ),
    Doubt.UNEXPLAINED_GAP: ClassText(
        title="Unexplained gap",
        means="Offsets below the LSO hold neither a record nor a marker.",
        check_first="Check cleanup.policy (does the topic compact?) and the broker's log (an unclean election?).",
    ),
    Doubt.READERS_DISAGREE: ClassText(
        title="Readers disagree",
        means="Spark and the census, two independent readers, counted differently at the same offsets.",
        check_first="Check the isolation level and the client versions: one reader sees what it should not, or skips.",
    ),
    Doubt.VACUOUS_RUN: ClassText(
        title="Nothing to compare",
        means="A side of this cut is empty, and an empty side proves nothing.",
        check_first="Is a producer or consumer down? If such windows are normal, the contract may say empty: allowed.",
    ),
    Doubt.UNREADABLE_PAYLOAD: ClassText(
        title="Unreadable payload",
        means="Committed records are not the JSON object the contract describes, so they may be anything.",
        check_first="Read a named offset with a console consumer, and compare it with the contract's event keys.",
    ),
    Doubt.LOG_EXPIRED: ClassText(
        title="Log expired",
        means="Retention deleted offsets before any run read them: they can never be proven.",
        check_first="Compare retention.ms and retention.bytes with how far behind the runs are, and raise them.",
    ),
    Doubt.LEDGER_REWRITTEN: ClassText(
        title="Ledger rewritten",
        means="Rows that earlier runs had read were changed or deleted, so slices by xmin prove nothing.",
        check_first="Find the UPDATE, DELETE or restore; where rows must change, use slice_by: written_xid.",
    ),
    Doubt.LEDGER_FAILED_OVER: ClassText(
        title="Ledger failed over",
        means="The ledger is another server or timeline than before, which may give transaction ids out again.",
        check_first="Ask for the failover's last replayed LSN; if in doubt, a new contract name begins new books.",
    ),
    Doubt.PARTNER_NOT_SETTLED: ClassText(
        title="Other side held back",
        means="Items are due, and their other side could not be read up to then: neither missing nor matched.",
        check_first="Free what holds the side back (see the doubts beside this one); the next run decides them.",
    ),
}
