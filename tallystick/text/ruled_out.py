"""The explanations that each class of break rules out, and how. For people; no rule depends on a word of it.

A test holds that every member of BreakClass has its line.
"""

from collections.abc import Mapping

from tallystick.model.finding_names import BreakClass

_NOT_HELD_TOPIC = "It is not held back: the topic had settled past the deadline, with no transaction still open."
_NOT_HELD_LEDGER = "It is not held back: the ledger's horizon had passed the deadline, with no transaction still open."
_NOT_EXPIRED = "It has not expired: retention had taken nothing unread by then."
_NOT_LATE = "It is not late: the deadline, grace included, had passed."

RULED_OUT: Mapping[BreakClass, tuple[str, ...]] = {
    BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED: (
        _NOT_LATE,
        _NOT_HELD_TOPIC,
        "It was not aborted: the whole retained log holds no record of the key, whatever its outcome.",
        "It was not sent elsewhere: no other topic that the contract names holds it.",
        _NOT_EXPIRED,
    ),
    BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY: (
        _NOT_LATE,
        _NOT_HELD_TOPIC,
        "It was produced: its records are there, each inside a transaction that ended with an ABORT marker.",
        "It was not tried again: no later record of the key is committed or open on the retained log.",
    ),
    BreakClass.LOST_ACKNOWLEDGED_WRITE: (
        "It was produced: the broker acknowledged it, and the row keeps the partition and offset of that.",
        "It has not expired, nor was it compacted away: the log covers the offset and holds something else there.",
        "It was not sent again: no committed record of the key lies anywhere on the retained log.",
    ),
    BreakClass.MISROUTED_IN_TOPIC: (
        "It is not missing: a committed record of the key lies on another topic.",
        "It is not the second copy: where the topic of its own leg has one as well, that one is told as the second.",
    ),
    BreakClass.MISSING_IN_LEDGER: (
        _NOT_LATE,
        _NOT_HELD_LEDGER,
        "It is not only outside the slice: the key was looked up in the whole table.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE: (
        "It is not a second process: both copies carry the same session.",
        "It is not a resend of a producer with idempotence: neither copy has a producer id.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION: (
        "It is not a retry that the broker would drop: the copies do not share a producer id, epoch and sequence.",
        "It is not a zombie: the copies are not of two epochs of one transactional.id, as far as anybody knows.",
        "It is not an input handled twice: the copies do not name the same source in two sessions.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE: (
        "It is not an unrelated producer: both copies are of one transactional.id, in two generations.",
        "It is not a retry that the broker would drop: the producer epochs of the copies differ.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED: (
        "It is not a retry of one process: the copies were written in two sessions.",
        "It is not another input: where the copies name their source, it is the same.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED: (
        "It is not a fault of the pipeline itself: one copy carries the header of our compensating action.",
        "The two copies are not one repair made twice: one of them carries the header, and the other does not.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: (
        "It is a duplicate for certain; its cause is not: a producer id, a session or the other copy is not there.",
        "A producer id and a session header on every record, and copies that are still on the log, would decide it.",
    ),
    BreakClass.DUPLICATE_IN_LEDGER: (
        "It does not follow a doubled event: the topic has no other that it could follow, or it came after the row.",
        "It is not a rewritten row: the rows stand beside one another under ids of their own.",
    ),
    BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED: (
        "It is not a second posting by the consumer: one of the two rows holds the id of our compensating action.",
        "It is not a repair that is over: no row takes our row back.",
    ),
    BreakClass.PHANTOM_IN_TOPIC: (
        _NOT_LATE,
        _NOT_HELD_LEDGER,
        "It is not only outside the slice: the key was looked up in the whole table.",
        "It is not foreign: where the contract knows its writers, the event's is one of them.",
    ),
    BreakClass.PHANTOM_IN_LEDGER: (
        _NOT_LATE,
        _NOT_HELD_TOPIC,
        "It is not posted from an aborted event: no record of the key, of any outcome, lies on the retained log.",
        _NOT_EXPIRED,
    ),
    BreakClass.ROW_WITHOUT_KEY: (
        "It is not a phantom: nothing was looked up, since the row names no event.",
        "It is not an event without a key: such a record is unreadable, and a doubt.",
    ),
    BreakClass.FOREIGN_IN_TOPIC: (
        "It is not of a known writer: its origin is none of those that the contract names.",
        "It is not late: the deadline had passed, and the ledger has no row for it anywhere.",
    ),
    BreakClass.ABORTED_READ_IN_LEDGER: (
        "It is not a phantom: records of the key are there, and each of them was aborted.",
        "It was not sent again: no committed or open record of the key lies on the retained log.",
        "It is not still open: the transactions of its records have ended with an ABORT marker.",
    ),
    BreakClass.OPEN_READ_IN_LEDGER: (
        "It was not aborted yet: the transaction of its record had not ended when the row was already there.",
        "It is not a phantom: the record of the key is there, above the LSO.",
    ),
    BreakClass.AMOUNT_MISMATCH: (
        "It is not a matter of notation: amounts are compared as whole minor units, by the contract's unit.",
        "It is not a mix-up of two items: they pair by key, one with one, and agree in currency if the row says one.",
    ),
    BreakClass.CURRENCY_MISMATCH: (
        "It is not a matter of notation: codes are compared after the rule for their case that the contract declares.",
        "It is not a mix-up of two items: event and row pair by their key, one with one.",
    ),
    BreakClass.COLUMN_MISMATCH: (
        "It is not a matter of notation: values are compared by the kind and the tolerance that the contract declares.",
        "It is not a mix-up of two items: event and row pair by their key, one with one, and agree in their money.",
    ),
    BreakClass.GROUP_SUM_MISMATCH: (
        "It is not late: the deadline of the whole had passed, and no part of the key lies beyond the cut.",
        "It is not a rounding difference: amounts are added up as whole minor units, where all are of one currency.",
        _NOT_EXPIRED,
    ),
    BreakClass.TORN_TRANSACTION: (
        _NOT_LATE,
        _NOT_HELD_TOPIC,
        "It is not torn by the reading: the retained log holds no committed record of the absent leg outside the cut.",
        _NOT_EXPIRED,
    ),
    BreakClass.TORN_BY_PROTOCOL: (
        "It is not two transactions: the markers end the same producer's same span, by producer id and log order.",
        "It is not still open: the transaction has ended on the partitions that are named.",
    ),
    BreakClass.BLED_INTO_TRANSACTION: (
        "It is not an epoch that changes with each transaction: both epochs' records lie before the same marker.",
        "It is not a zombie by itself: the earlier epoch's record was committed by the later one's marker.",
    ),
    BreakClass.OUT_OF_ORDER_IN_TOPIC: (
        "It is not the order between partitions, which Kafka never promises: both records lie on one partition.",
        "It is not a second copy: the records are of two events of one ordering key.",
    ),
    BreakClass.COMPENSATED_TWICE: (
        "It is not a late original: both records carry the header of the same action.",
        "It is not one that was aborted: both records are committed.",
    ),
    BreakClass.COMPENSATION_NOT_EFFECTIVE: (
        "It is not in flight: the action was done longer than the grace ago, and its side had settled past it.",
        "It is not a repair of another break: the action names this one.",
    ),
}
"""In the order in which a person would ask."""
