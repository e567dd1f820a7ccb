"""The meaning of each class, doubt and notice, and the first check. For people; no rule depends on a word of it.

The sentence that a run says of one, with its figures, is written by its own file in tallystick/anomalies. A test holds
that every member of BreakClass, Doubt and Notice has its line.

One file, since these lines are read and worded together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.text.side_terms import for_direction


@dataclass(frozen=True, kw_only=True)
class ClassText:
    """title: three to six words. means: one sentence of what is proven. check_first: one sentence, an action."""

    title: str
    means: str
    check_first: str

    def for_direction(self, direction: Direction) -> "ClassText":
        """The same, as it reads for a contract of this direction."""
        return ClassText(
            title=for_direction(direction, self.title),
            means=for_direction(direction, self.means),
            check_first=for_direction(direction, self.check_first),
        )


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
        means="The event is there twice; what would show why (producer id, session header, the other copy) is missing.",
        check_first="Compare the copies' times with deployments, and let producers write a session header from now on.",
    ),
    BreakClass.DUPLICATE_IN_LEDGER: ClassText(
        title="Duplicate in ledger",
        means="The ledger holds more rows for the event than it should.",
        check_first="Check for a unique index on the match key, and look for a redelivery or a job that ran twice.",
    ),
    BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED: ClassText(
        title="Duplicate in ledger: our own repair",
        means="A compensation posted the event's row, and its consumer's own row came after all.",
        check_first="Look at why the consumer was so late; raise partner_grace_seconds before the next repair.",
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
    BreakClass.ROW_WITHOUT_KEY: ClassText(
        title="Row without key",
        means="The ledger has a row whose match key is NULL or empty: no event can be its partner.",
        check_first="Find what wrote the row, and which event it books: the column should be NOT NULL.",
    ),
    BreakClass.AMOUNT_MISMATCH: ClassText(
        title="Amount mismatch",
        means="Event and row pair by key, and their amounts differ, or the row says none.",
        check_first="Compare the two amounts: a factor of 10, 100 or 1000 is a conversion of minor units.",
    ),
    BreakClass.CURRENCY_MISMATCH: ClassText(
        title="Currency mismatch",
        means="Event and row pair by key, and name different currencies.",
        check_first="Find where the currency is set on each side: a default that fills in for a missing field?",
    ),
    BreakClass.COLUMN_MISMATCH: ClassText(
        title="Column mismatch",
        means="Event and row pair by key and say the same money, and differ in a column that the contract compares.",
        check_first="See which column differs: the same one in all breaks is a change of one service.",
    ),
    BreakClass.GROUP_SUM_MISMATCH: ClassText(
        title="Group sum mismatch",
        means="Many to one: the parts do not add up to the amount of the one copy on the other side.",
        check_first="See what is missing or too much: is it the amount of one part that was lost or written twice?",
    ),
    BreakClass.TORN_TRANSACTION: ClassText(
        title="Torn transaction",
        means="Some legs of one business transaction are committed, and another never was.",
        check_first="Check that all legs are sent inside one producer transaction, and what happened between them.",
    ),
    BreakClass.LOST_ACKNOWLEDGED_WRITE: ClassText(
        title="Lost acknowledged write",
        means=(
            "The producer kept the broker's acknowledgement, and the log no longer holds the event at that "
            "offset or anywhere."
        ),
        check_first=(
            "Look for an unclean leader election or a broker that lost its disk; check acks, "
            "min.insync.replicas and the config check."
        ),
    ),
    BreakClass.MISROUTED_IN_TOPIC: ClassText(
        title="Misrouted event",
        means="The event is committed, but on another topic than its leg belongs to.",
        check_first=(
            "Look at the producer's routing and its last deployment; move nothing before the consumers of "
            "both topics know."
        ),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE: ClassText(
        title="Duplicate in topic: zombie",
        means=(
            "Two generations of the same transactional.id committed the event: the old one worked on after "
            "its successor began."
        ),
        check_first="Check that offsets are sent inside the producer transaction, and what paused the old process.",
    ),
    BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED: ClassText(
        title="Duplicate in topic: our own repair",
        means="A compensation republished the event, and the original came after all.",
        check_first="Look at why the original was so late; raise partner_grace_seconds before the next repair.",
    ),
    BreakClass.FOREIGN_IN_TOPIC: ClassText(
        title="Foreign event",
        means=(
            "The event was written by a producer that the contract does not know, and the ledger has nothing like it."
        ),
        check_first=(
            "Look at who may write to the topic (ACLs), and whether a test or another tenant points at this cluster."
        ),
    ),
    BreakClass.ABORTED_READ_IN_LEDGER: ClassText(
        title="Ledger row from an aborted event",
        means="The ledger holds a row whose only record was aborted: its consumer read uncommitted data.",
        check_first=(
            "Check the consumer's isolation.level: it must be read_committed; librdkafka and Java differ in "
            "their default."
        ),
    ),
    BreakClass.OPEN_READ_IN_LEDGER: ClassText(
        title="Ledger row from an open transaction",
        means="The ledger committed a row while its event's producer transaction was still open.",
        check_first="Check the consumer's isolation.level: it must be read_committed; the event may yet be aborted.",
    ),
    BreakClass.TORN_BY_PROTOCOL: ClassText(
        title="Torn by the protocol",
        means="One producer transaction was committed on one partition and aborted on another.",
        check_first="Look for an abort by an administrator, and for broker or coordinator errors at the markers' time.",
    ),
    BreakClass.BLED_INTO_TRANSACTION: ClassText(
        title="Bled into a later transaction",
        means="A record of an earlier, unfinished producer transaction was committed by a later one's marker.",
        check_first=(
            "Check transaction.partition.verification.enable and the clients' version; find out whether the "
            "event was meant."
        ),
    ),
    BreakClass.OUT_OF_ORDER_IN_TOPIC: ClassText(
        title="Out of order",
        means="Events of one ordering key stand on the partition in another order than they were written.",
        check_first="Check the producer: without idempotence, max.in.flight.requests.per.connection must be 1.",
    ),
    BreakClass.COMPENSATED_TWICE: ClassText(
        title="Compensated twice",
        means="The same compensating action stands on the log more than once.",
        check_first="Stop the compensation, and look at who published: two executors, or a copied transactional.id.",
    ),
    BreakClass.COMPENSATION_NOT_EFFECTIVE: ClassText(
        title="Compensation without effect",
        means="A compensation was done, and the break it was to repair is still open.",
        check_first=(
            "Look at what it wrote, an event or the ledger's rows: where it stands, its key, and if a run reads it."
        ),
    ),
}

DOUBT_TEXTS: Mapping[Doubt, ClassText] = {
    Doubt.BASELINE: ClassText(
        title="Baseline",
        means="The books begin here; what lies before is not decidable and is never called a break.",
        check_first="Nothing is wrong: the next run is the first that can match.",
    ),
    Doubt.CUT_CLOSED: ClassText(
        title="Closed unread",
        means="A person closed this cut because no attempt could judge it: nobody has read what stands in it.",
        check_first="Mend what stopped the attempts, and look by hand at the offsets and ledger positions it names.",
    ),
    Doubt.HELD_BY_OPEN_TRANSACTION: ClassText(
        title="Held by an open producer transaction",
        means="A producer transaction that has not ended keeps committed events behind it from being read.",
        check_first="Ask the holder's owner; if no coordinator lists it, it hangs: kafka-transactions.sh ends it.",
    ),
    Doubt.HELD_BY_REPLICATION: ClassText(
        title="Held by missing replicas",
        means="Too few replicas hold records that were acknowledged to their producer, so nobody can read them yet.",
        check_first="Bring back the brokers that are named as out of sync; the next run reads what they held back.",
    ),
    Doubt.HELD_BY_LEDGER_HORIZON: ClassText(
        title="Held by an open database transaction",
        means="A database transaction that has not ended keeps committed ledger rows behind it from being read.",
        check_first="Ask the holder's owner to end it, and never end it blindly; replication slots do not hold it.",
    ),
    Doubt.UNEXPLAINED_GAP: ClassText(
        title="Unexplained gap",
        means="Offsets below the LSO hold neither a record nor a marker.",
        check_first="Check cleanup.policy (does the topic compact?) and the broker's log (an unclean election?).",
    ),
    Doubt.READERS_DISAGREE: ClassText(
        title="Readers disagree",
        means="Two readings of the same offsets differ: rows and census, or Tallystick and Kafka's own client.",
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
    Doubt.FORGED_REPAIR: ClassText(
        title="Forged repair",
        means="Records or rows say that a compensation wrote them, and the store knows of no such repair.",
        check_first="Find their producer. Was the verdict store restored from an older copy, or is it another one?",
    ),
    Doubt.LOG_EXPIRED: ClassText(
        title="Log expired",
        means="Retention deleted offsets before any run read them: they can never be proven.",
        check_first="Compare retention.ms and retention.bytes with how far behind the runs are, and raise them.",
    ),
    Doubt.LEDGER_REWRITTEN: ClassText(
        title="Ledger rewritten",
        means="Below what this run read, rows went, changed, or came in after earlier runs had read past them.",
        check_first="Find the UPDATE, DELETE, restore or late writer; the sentence says what reads it all the same.",
    ),
    Doubt.LEDGER_FAILED_OVER: ClassText(
        title="Ledger failed over",
        means="The ledger is another server or timeline than before, which may give transaction ids out again.",
        check_first="Ask for the failover's last replayed LSN; if in doubt, a new contract name begins new books.",
    ),
    Doubt.LEDGER_IDS_REUSED: ClassText(
        title="Ledger ids given out again",
        means="The ledger gives out ids or numbers that earlier cuts had read past: rows with them are in no cut.",
        check_first="Is it the right server? Only after a restore begin new books, by a contract under a new name.",
    ),
    Doubt.KEY_INDEX_LOST: ClassText(
        title="Key index lost",
        means="What earlier runs read can no longer be looked up: a key that comes again may be a second copy.",
        check_first=(
            "Put the artifacts folder's key_index back from a backup; without one this ends once ledger.index_windows "
            "windows have passed."
        ),
    ),
    Doubt.ROW_IDS_REPEAT: ClassText(
        title="Row ids repeat",
        means="Several rows of this window have one row id: each is judged, but nobody can say which one is meant.",
        check_first="Let the contract's row_id name a column that is unique in the whole ledger.",
    ),
    Doubt.PARTNER_NOT_SETTLED: ClassText(
        title="Other side held back",
        means="Items are due, and their other side could not be read up to then: neither missing nor matched.",
        check_first=(
            "Free what holds the side back (see the doubts beside this one); the next run decides them. What has left "
            "the log unread, or may have, stays undecidable."
        ),
    ),
    Doubt.HANGING_TRANSACTION: ClassText(
        title="Hanging transaction",
        means="A producer transaction is open on the partition, and no coordinator will ever end it.",
        check_first=(
            "Save the evidence, then abort it on this partition only: kafka-transactions.sh abort; never "
            "while its coordinator knows it."
        ),
    ),
    Doubt.HELD_BY_PREPARED_TRANSACTION: ClassText(
        title="Held by a prepared transaction",
        means="A prepared two-phase transaction is open on purpose and holds the LSO back.",
        check_first="Ask its owner (an external coordinator) to commit or abort it; never abort it from here.",
    ),
    Doubt.LOG_COMPACTED: ClassText(
        title="Compacted before it was read",
        means="Offsets of the slice were compacted away, so that nobody can say whether their events agree.",
        check_first="Raise min.compaction.lag.ms above the schedule's interval, or take compact out of cleanup.policy.",
    ),
    Doubt.LOG_REWRITTEN: ClassText(
        title="Log rewritten",
        means="Offsets that were read, or were to be read, hold other records now, or may have lost their markers.",
        check_first=(
            "Look for an unclean leader election or a restored disk; read the earlier cuts again (run --reread) "
            "before you trust them."
        ),
    ),
    Doubt.LOG_TRUNCATED: ClassText(
        title="Log truncated",
        means="The log ends below the offset that an earlier run had read.",
        check_first=(
            "Look for an unclean leader election; what was there and acknowledged is lost unless its "
            "producer sends it again."
        ),
    ),
    Doubt.TOPIC_RECREATED: ClassText(
        title="Topic recreated",
        means="The topic was deleted and created again: its offsets begin anew and prove nothing of the old ones.",
        check_first="Find out who did it; then begin a new contract, under a new name, on the new topic.",
    ),
    Doubt.TORN_CUT: ClassText(
        title="Torn cut",
        means="The topic changed while the run read it.",
        check_first="Let the next run judge again; keep partitions and topics as they are while runs are under way.",
    ),
    Doubt.CANARY_MISSED: ClassText(
        title="Canary missed",
        means="A planted fault was not caught: this run's silence about real ones proves nothing.",
        check_first=(
            "Compare the installed version with the one on the executors, and run the tests; report it as a bug."
        ),
    ),
}


NOTICE_TEXTS: Mapping[Notice, ClassText] = {
    Notice.EMPTY_TRANSACTION: ClassText(
        title="Empty transactions",
        means="Producer transactions ended on a partition without a record in it. Kafka allows that.",
        check_first="Nothing, unless there are very many: a producer that begins transactions it does not need.",
    ),
    Notice.LATE_PARTNER: ClassText(
        title="Late partners",
        means="Items found their partner after their deadline, or by a repair of ours, which the sentence tells apart.",
        check_first="Compare partner_grace_seconds with the lag that the pipeline really has. Of repairs: nothing.",
    ),
    Notice.PAIRED_ACROSS_WINDOWS: ClassText(
        title="Paired across windows",
        means="An event and its row were read by different runs. Every schedule has such an edge.",
        check_first="Nothing.",
    ),
    Notice.REPRESENTATION_DIFFERS: ClassText(
        title="Written differently",
        means="Both sides mean the same and write it differently, by a rule that the contract declares.",
        check_first="Nothing.",
    ),
    Notice.OFFSETTING_ERRORS: ClassText(
        title="Errors that cancel out",
        means="Items disagree, and in one currency or more the errors that this run found add up to nothing.",
        check_first="The breaks beside this.",
    ),
    Notice.UNFILTERED_READER: ClassText(
        title="Unfiltered reader",
        means="The ledger's consumer reads uncommitted; no row of an aborted or open event was found in this window.",
        check_first="Set the consumer's isolation.level to read_committed.",
    ),
    Notice.TIMESTAMP_SKEW: ClassText(
        title="Timestamps off",
        means="Records carry timestamps that the window they were written in cannot hold.",
        check_first=(
            "Check the producers' clocks; nothing here is cut by timestamps, but retention and consumers may be."
        ),
    ),
    Notice.HOST_CLOCK_OFF: ClassText(
        title="Clock of a host off",
        means="The host that made the cut has another time than the verdict store, by which everything is dated.",
        check_first="Compare both clocks with one that you trust; nothing of this verdict rests on the host's.",
    ),
    Notice.RETENTION_OVERTAKES: ClassText(
        title="Retention overtakes the reading",
        means="Records that no run has read will expire before the next run has read them.",
        check_first="Run now, or raise retention.ms; what expires unread can never be proven.",
    ),
    Notice.CURSOR_STOPPED: ClassText(
        title="Cursor has stopped",
        means="For several windows nothing more could be read of one side, though more has been written to it.",
        check_first="End what holds it: the sentence names it. Until then nothing behind it is proven.",
    ),
    Notice.BACKLOG_GROWS: ClassText(
        title="Backlog grows",
        means="Each of the last windows left more of one side unread than the one before.",
        check_first="Who keeps transactions open for long on that side: what is read falls further behind.",
    ),
    Notice.PROMISE_AT_RISK: ClassText(
        title="Promise at risk",
        means="A setting does not keep what exactly-once needs.",
        check_first="The config check: each line names the setting, its value and what to set.",
    ),
}
