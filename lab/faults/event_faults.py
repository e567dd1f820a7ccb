"""Faults of single events, done for real: each leaves one known disagreement among traffic that agrees.

A fault may have a second half, which comes after a window was judged.

One file, since it is a list: a function for each fault of an event, and the table that names them.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from confluent_kafka import Consumer, TopicPartition

from lab.faults.hostile_writer import ACTION_HEADER, strange_records
from lab.services.event import Event, Leg, Payment, partition_of
from lab.services.event_format import written_as
from lab.services.group_member import open_member, slow_member, take_one
from lab.services.kafka_clients import new_consumer
from lab.services.partition_reader import save_progress
from lab.services.workload import Workload, Writer
from lab.truth.score import Finding, FindingKind
from lab.truth.stored_findings import FORGED_REPAIR, UNREADABLE, records_finding

CAUSE_UNKNOWN = "duplicate_in_topic_cause_unknown"
_NEW_SESSION = "duplicate_in_topic_new_session"
_REPROCESSED = "duplicate_in_topic_reprocessed"

Later = Callable[[], tuple[Finding, ...]]


@dataclass(frozen=True)
class Planted:
    """What a fault has left so far, and what is still to come once a window has been judged.

    counted: what comes behind the last window; what a reader of the lab's own finds then, beside what the store holds.
    """

    findings: tuple[Finding, ...] = ()
    later: Later | None = None
    counted: Callable[[], tuple[Finding, ...]] | None = None


@dataclass(frozen=True)
class KeyFault:
    """One fault, of one contract. sends_again: a copy of what an earlier window has judged. always: in every round."""

    plant: Callable[[Workload], Planted]
    slow: bool = False  # it waits for a time-out of the broker's
    sends_again: bool = False
    always: bool = False

    @property
    def name(self) -> str:
        return self.plant.__name__


def broken(desk: Workload, break_class: str, *events: Event, copies: int = 1, **proof: object) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            contract=desk.contract,
            kind=FindingKind.BREAK,
            name=break_class,
            subject=str(event.event_id),
            copies=copies,
            proof=proof,
        )
        for event in events
    )


def after_retention(finding: Finding) -> Finding:
    """The same where retention has taken all that earlier windows judged: the first copy would have told the cause."""
    if finding.name.startswith("duplicate_in_topic_") and finding.proof.get("across_windows"):
        return replace(finding, name=CAUSE_UNKNOWN)
    return finding


def _noticed(desk: Workload, notice: str) -> Finding:
    return Finding(contract=desk.contract, kind=FindingKind.NOTICE, name=notice)


def _told_of_record(desk: Workload, doubt: str) -> tuple[Finding, ...]:
    """A doubt about the contract that counts one record more."""
    return (
        Finding(contract=desk.contract, kind=FindingKind.DOUBT, name=doubt),
        records_finding(desk.contract, doubt, 1),
    )


# Payouts: an outbox row first, then its event.


def never_produced(desk: Workload) -> Planted:
    """A relay that saved its progress and never wrote the event."""
    row = desk.add_payout(desk.payment())
    return Planted(broken(desk, "missing_in_topic_never_produced", row.event))


def aborted_only(desk: Workload) -> Planted:
    """The event stands only in aborted transactions: tried, aborted, given up."""
    row = desk.add_payout(desk.payment())
    for _ in range(desk.dice.randint(1, 2)):
        desk.publish(row.event, source=row.source, commit=False)
    return Planted(broken(desk, "missing_in_topic_aborted_only", row.event))


def payout_retried(desk: Workload) -> Planted:
    """The broker's answer was lost on the way, and a relay without idempotence sent again."""
    row = desk.add_payout(desk.payment())
    _lose_ack_of(desk, row.event, row.source)
    return Planted(broken(desk, "duplicate_in_topic_no_idempotence", row.event))


def payout_sent_by_hand(desk: Workload) -> Planted:
    """A second process sent it again, and knows no input."""
    row = desk.add_payout(desk.payment())
    desk.idempotent().write(row.event, source=row.source)
    desk.idempotent().write(row.event)
    return Planted(broken(desk, _NEW_SESSION, row.event))


def payout_resent(desk: Workload) -> Planted:
    """The application called send again: the same producer, another sequence number."""
    row = desk.add_payout(desk.payment())
    writer = desk.idempotent()
    copies = desk.dice.randint(1, 2)
    for _ in range(1 + copies):
        writer.write(row.event, source=row.source)
    return Planted(broken(desk, _NEW_SESSION, row.event, copies=copies))


def payout_by_zombie(desk: Workload) -> Planted:
    """Two generations of one transactional id each committed the event: the progress was not in the transaction."""
    row = desk.add_payout(desk.payment())
    _write_in_two_generations(desk, [row.event], row.source)
    return Planted(broken(desk, "duplicate_in_topic_zombie", row.event))


def payout_reprocessed(desk: Workload) -> Planted:
    """The outbox cursor was set back: another process published the row again, a little differently."""
    row = desk.add_payout(desk.payment())
    desk.idempotent().write(row.event, source=row.source)
    again = replace(row.payment, occurred_at=datetime.now(UTC) + timedelta(seconds=1))
    desk.idempotent().write(again.event(Leg.PAYOUT), source=row.source)
    return Planted(broken(desk, _REPROCESSED, row.event))


def payout_again_next_window(desk: Workload) -> Planted:
    """The copy comes after the original's window was judged."""
    row = desk.add_payout(desk.payment())
    desk.publish(row.event, source=row.source)

    def again() -> tuple[Finding, ...]:
        desk.idempotent().write(row.event)
        return broken(desk, _NEW_SESSION, row.event, across_windows=True)

    return Planted(later=again)


def payout_with_a_forged_header(desk: Workload) -> Planted:
    """Somebody published it under the header of a repair that nobody has begun, beside the relay's own copy."""
    row = desk.add_payout(desk.payment())
    _forge(desk, row.event)
    desk.publish(row.event, source=row.source)
    return Planted((*broken(desk, _NEW_SESSION, row.event), *_told_of_record(desk, FORGED_REPAIR)))


def row_written_twice(desk: Workload) -> Planted:
    """The payout desk wrote the row twice; the relay publishes each row, or each key."""
    payment = desk.payment()
    rows = [desk.add_payout(payment) for _ in range(2)]
    for row in rows[: desk.dice.randint(1, 2)]:
        desk.publish(row.event, source=row.source)
    return Planted(broken(desk, "duplicate_in_ledger", payment.event(Leg.PAYOUT)))


def payout_rolled_back(desk: Workload) -> Planted:
    """A dual write: the event is committed, then its ledger transaction is rolled back."""
    with desk.connection.transaction(force_rollback=True):
        row = desk.add_payout(desk.payment())
        desk.publish(row.event, source=row.source)
    return Planted(broken(desk, "phantom_in_topic", row.event))


def payout_of_another_service(desk: Workload) -> Planted:
    """A load test writes to the real topic, under its own name."""
    event = desk.payment().event(Leg.PAYOUT)
    desk.idempotent("loadtest").write(event)
    return Planted(broken(desk, "foreign_in_topic", event))


def payout_misrouted(desk: Workload) -> Planted:
    """The relay sent it to a topic that nobody posts from."""
    row = desk.add_payout(desk.payment())
    desk.idempotent().write(row.event, source=row.source, topic=desk.stray_topic)
    return Planted(broken(desk, "misrouted_in_topic", row.event))


def payout_amount_wrong(desk: Workload) -> Planted:
    row = desk.add_payout(desk.payment())
    wrong = replace(row.payment, amount_minor=row.payment.amount_minor // 10)
    desk.publish(wrong.event(Leg.PAYOUT), source=row.source)
    return Planted(broken(desk, "amount_mismatch", row.event))


def payout_currency_wrong(desk: Workload) -> Planted:
    row = desk.add_payout(desk.payment())
    desk.publish(replace(row.payment, currency="CHF").event(Leg.PAYOUT), source=row.source)
    return Planted(broken(desk, "currency_mismatch", row.event))


def payouts_offset(desk: Workload) -> Planted:
    """Two wrong amounts that add up to nothing: totals agree, items do not. In a currency that no other fault has."""
    currency = desk.dice.choice(("DKK", "NOK", "SEK"))
    rows = [desk.add_payout(desk.payment(currency=currency)) for _ in range(2)]
    for row, error in zip(rows, (-7, 7), strict=True):
        wrong = replace(row.payment, amount_minor=row.payment.amount_minor + error)
        desk.publish(wrong.event(Leg.PAYOUT), source=row.source)
    breaks = broken(desk, "amount_mismatch", *(row.event for row in rows))
    return Planted((*breaks, _noticed(desk, "offsetting_errors")))


def payouts_out_of_order(desk: Workload) -> Planted:
    """Two relays at work on one account: the later payout of an account stands before the earlier one."""
    account = str(uuid.UUID(int=desk.dice.getrandbits(128), version=4))
    payments = [desk.payment(account=account, sequence=number) for number in (1, 2, 3)]
    sources = [desk.add_payout(payment).source for payment in payments]
    writers = [desk.idempotent(), desk.idempotent()]
    for number, writer in ((0, writers[0]), (2, writers[1]), (1, writers[0])):
        writer.write(payments[number].event(Leg.PAYOUT), source=sources[number], partition=0)
    return Planted(broken(desk, "out_of_order_in_topic", payments[1].event(Leg.PAYOUT)))


def payout_clock_wrong(desk: Workload) -> Planted:
    """A relay on a machine whose clock is days behind."""
    row = desk.add_payout(desk.payment())
    created = datetime.now(UTC) - timedelta(days=3)
    desk.idempotent().write(row.event, source=row.source, timestamp=int(created.timestamp() * 1000))
    return Planted((_noticed(desk, "timestamp_skew"),))


def payout_unreadable(desk: Workload) -> Planted:
    """A committed record that is no event, or that different readers would read differently."""
    event = desk.payment().event(Leg.PAYOUT)
    whole, event_id = json.dumps(event.to_fields()).encode(), str(event.event_id).encode()
    poison = desk.dice.choice(
        (
            b"\x00\x01 not an event",
            whole + b" x",
            whole + whole,
            whole.replace(event_id, b"\\u0000"),
            whole.replace(event_id, b"\\ud800"),
            whole.replace(event_id, b"caf\xe9"),
            whole.replace(event_id, b"k" * 6000),
            whole[:-1] + b', "notes": ' + b"[" * 5000 + b"]" * 5000 + b"}",
            whole.replace(b'"amount_minor": ', b'"amount_minor": 9223372036854775808'),
        )
    )
    desk.idempotent().write(event, value=written_as().around(poison))
    return Planted(_told_of_record(desk, UNREADABLE))


def stranger_among_payouts(desk: Workload) -> Planted:
    return Planted(strange_records(desk, Leg.PAYOUT))


# Payments: two events first, then their postings.


def stranger_among_payments(desk: Workload) -> Planted:
    return Planted(strange_records(desk, Leg.PAYMENT, Leg.INVOICE))


def never_posted(desk: Workload) -> Planted:
    """A poster that saved its progress and died before it posted one leg."""
    payment, invoice = both_legs(desk.payment())
    desk.publish(payment, invoice)
    lost, posted = desk.dice.sample([payment, invoice], 2)
    desk.post(posted)
    return Planted(broken(desk, "missing_in_ledger", lost))


def posted_by_hand(desk: Workload) -> Planted:
    event = desk.payment().event(desk.dice.choice((Leg.PAYMENT, Leg.INVOICE)))
    desk.post(event)
    return Planted(broken(desk, "phantom_in_ledger", event))


def posted_twice(desk: Workload) -> Planted:
    """A poster that died after it posted and before it saved its progress."""
    payment, invoice = both_legs(desk.payment())
    desk.publish(payment, invoice)
    desk.post(payment, invoice)
    copies = desk.dice.randint(1, 2)
    for _ in range(copies):
        desk.post(payment)
    return Planted(broken(desk, "duplicate_in_ledger", payment, copies=copies))


def leg_lost(desk: Workload) -> Planted:
    """A billing service that died between the legs of a payment, its progress already saved."""
    legs = both_legs(desk.payment())
    seen, lost = desk.dice.sample(legs, 2)
    desk.publish(seen)
    desk.post(seen)
    return Planted(broken(desk, "torn_transaction", lost))


def aborted_payment_posted(desk: Workload) -> Planted:
    """A poster that reads uncommitted posted what was then aborted, and nobody wrote it again."""
    legs = both_legs(desk.payment())
    desk.publish(*legs, commit=False)
    desk.post(*legs)
    return Planted(broken(desk, "aborted_read_in_ledger", *legs))


def payment_retried(desk: Workload) -> Planted:
    """The broker's answer was lost on the way, and a service without idempotence sent again."""
    payment, invoice = both_legs(desk.payment())
    _lose_ack_of(desk, payment, desk.source())
    desk.publish(invoice)
    _post_consumed(desk, [payment], [invoice])
    return Planted(broken(desk, "duplicate_in_topic_no_idempotence", payment))


def payment_resent(desk: Workload) -> Planted:
    """The application called send again: the same producer, another sequence number."""
    payment, invoice = both_legs(desk.payment())
    writer, source = desk.idempotent(), desk.source()
    for event in (payment, invoice, payment):
        writer.write(event, source=source)
    _post_consumed(desk, [payment], [invoice])
    return Planted(broken(desk, _NEW_SESSION, payment))


def payment_by_zombie(desk: Workload) -> Planted:
    """Two generations of one transactional id each committed the payment: the progress was not in the transaction."""
    legs = both_legs(desk.payment())
    _write_in_two_generations(desk, legs, desk.source())
    _post_consumed(desk, legs)
    return Planted(broken(desk, "duplicate_in_topic_zombie", *legs))


def group_rewound(desk: Workload) -> Planted:
    """Somebody set the group's offsets back, and the next process handled the request again."""
    payment = desk.payment()
    with _request(desk, payment) as (topic, source):
        group = f"{topic}.group"
        for _ in range(2):
            consumer = new_consumer(desk.addresses.bootstrap_servers, client_id=group, group=group, read_committed=True)
            try:
                _commit(consumer, topic, 0)
                consumer.assign([TopicPartition(topic, 0, 0)])
                take_one(consumer)
                _answer(desk.idempotent(), payment, source)
                _commit(consumer, topic, 1)
            finally:
                consumer.close()
    _post_consumed(desk, both_legs(payment))
    return Planted(broken(desk, _REPROCESSED, *both_legs(payment)))


def poll_timed_out(desk: Workload) -> Planted:
    """A consumer took longer than its poll time-out after its output: the group gave the request to another one."""
    payment = desk.payment()
    with _request(desk, payment) as (topic, source), slow_member(desk.addresses.bootstrap_servers, topic) as slow:
        _answer(desk.idempotent(), payment, source)
        successor = open_member(desk.addresses.bootstrap_servers, topic)
        try:
            successor.subscribe([topic])
            take_one(successor)
            _answer(desk.idempotent(), payment, source)
            _commit(successor, topic, 1)
        finally:
            successor.close()
        if slow.may_commit():
            raise RuntimeError("the slow consumer could commit: its partition was never taken from it")
    _post_consumed(desk, both_legs(payment))
    return Planted(broken(desk, _REPROCESSED, *both_legs(payment)))


def payment_again_next_window(desk: Workload) -> Planted:
    """The request is handled again after its payment's window was judged."""
    legs, source = both_legs(desk.payment()), desk.source()
    desk.publish(*legs, source=source)
    desk.post(*legs)

    def again() -> tuple[Finding, ...]:
        desk.publish(*legs, source=source)
        return broken(desk, _REPROCESSED, *legs, across_windows=True)

    return Planted(later=again)


def payment_of_another_service(desk: Workload) -> Planted:
    """A load test writes to the real topics, under its own name; the poster knows it and posts nothing."""
    legs = both_legs(desk.payment())
    writer = desk.idempotent("loadtest")
    for event in legs:
        writer.write(event)
    return Planted(broken(desk, "foreign_in_topic", *legs))


def payment_misrouted(desk: Workload) -> Planted:
    """One leg stands in a topic of no leg, from which it was posted all the same."""
    payment, invoice = both_legs(desk.payment())
    desk.publish(invoice)
    desk.idempotent().write(payment, source=desk.source(), topic=desk.stray_topic)
    desk.post(payment, invoice)
    return Planted(broken(desk, "misrouted_in_topic", payment))


def leg_in_wrong_topic(desk: Workload) -> Planted:
    """The payment leg stands in the topic of the invoices."""
    payment, invoice = both_legs(desk.payment())
    desk.publish(invoice)
    desk.idempotent().write(payment, source=desk.source(), topic=desk.names.topic(Leg.INVOICE))
    desk.post(payment, invoice)
    return Planted(broken(desk, "misrouted_in_topic", payment))


def posting_amount_wrong(desk: Workload) -> Planted:
    """A poster that drops the last digit."""
    payment = desk.payment()
    wrong = replace(payment, amount_minor=payment.amount_minor // 10)
    return _posted_wrongly(desk, payment, wrong, "amount_mismatch")


def posting_currency_wrong(desk: Workload) -> Planted:
    """A poster that books every payment in Swiss francs."""
    payment = desk.payment()
    return _posted_wrongly(desk, payment, replace(payment, currency="CHF"), "currency_mismatch")


# Reads: one leg, of which some events are in transactions that stay open over the window.


def open_payment_posted(desk: Workload) -> Planted:
    """A poster that reads uncommitted posted what was still open; then it commits, or aborts."""
    event, partition = _payment_and_partition(desk)
    writer = desk.transactional()
    writer.producer.begin_transaction()
    writer.write(event, source=desk.source())
    desk.post(event)

    def end() -> tuple[Finding, ...]:
        _end(writer, commit=desk.dice.random() < 0.5)
        return ()

    return Planted((*broken(desk, "open_read_in_ledger", event), _held(desk, partition)), end)


def open_payment_waits(desk: Workload) -> Planted:
    """The same open transaction, and a poster that waits for its end: held, never missing."""
    event, partition = _payment_and_partition(desk)
    writer = desk.transactional()
    writer.producer.begin_transaction()
    writer.write(event, source=desk.source())

    def end() -> tuple[Finding, ...]:
        _end(writer, commit=True)
        desk.post(event)
        return ()

    return Planted((_held(desk, partition),), end)


PAYOUT_FAULTS = (
    KeyFault(never_produced),
    KeyFault(aborted_only),
    KeyFault(payout_retried),
    KeyFault(payout_sent_by_hand),
    KeyFault(payout_resent),
    KeyFault(payout_by_zombie),
    KeyFault(payout_reprocessed),
    KeyFault(payout_again_next_window, sends_again=True),
    KeyFault(payout_with_a_forged_header),
    KeyFault(row_written_twice),
    KeyFault(payout_rolled_back),
    KeyFault(payout_of_another_service),
    KeyFault(payout_misrouted),
    KeyFault(payout_amount_wrong),
    KeyFault(payout_currency_wrong),
    KeyFault(payouts_offset),
    KeyFault(payouts_out_of_order),
    KeyFault(payout_clock_wrong),
    KeyFault(payout_unreadable),
    KeyFault(stranger_among_payouts, always=True),
)

PAYMENT_FAULTS = (
    KeyFault(never_posted),
    KeyFault(posted_by_hand),
    KeyFault(posted_twice),
    KeyFault(leg_lost),
    KeyFault(aborted_payment_posted),
    KeyFault(payment_retried),
    KeyFault(payment_resent),
    KeyFault(payment_by_zombie),
    KeyFault(group_rewound),
    KeyFault(poll_timed_out, slow=True),
    KeyFault(payment_again_next_window, sends_again=True),
    KeyFault(payment_of_another_service),
    KeyFault(payment_misrouted),
    KeyFault(leg_in_wrong_topic),
    KeyFault(posting_amount_wrong),
    KeyFault(posting_currency_wrong),
    KeyFault(stranger_among_payments, always=True),
)

READ_FAULTS = (KeyFault(open_payment_posted), KeyFault(open_payment_waits))


def both_legs(payment: Payment) -> list[Event]:
    return [payment.event(leg) for leg in (Leg.PAYMENT, Leg.INVOICE)]


def _lose_ack_of(desk: Workload, event: Event, source: str) -> None:
    client_id = desk.names.group(f"retrying-{event.event_id}")
    writer = desk.retrying(client_id)
    desk.addresses.proxy.arm(client_id)
    writer.write(event, source=source)
    desk.addresses.proxy.wait_fired(client_id, 1)


def _write_in_two_generations(desk: Workload, events: list[Event], source: str) -> None:
    transactional_id = desk.names.group(f"zombie-{events[0].event_id}")
    for _ in range(2):
        writer = desk.transactional(transactional_id)
        with writer.transaction():
            for event in events:
                writer.write(event, source=source)


def _forge(desk: Workload, event: Event) -> None:
    """Write an event as a compensation does: with an action's id, and without the service's name."""
    writer = desk.transactional()
    action_id = uuid.uuid5(event.event_id, "action")
    with writer.transaction():
        writer.write(event, headers={ACTION_HEADER: str(action_id)})


def _post_consumed(desk: Workload, doubled: Sequence[Event], single: Sequence[Event] = ()) -> None:
    """Post what was consumed: a poster that knows the key posts it once, any other follows the topic."""
    desk.post(*doubled, *single)
    if desk.dice.random() < 0.5:
        desk.post(*doubled)


def _posted_wrongly(desk: Workload, payment: Payment, wrong: Payment, break_class: str) -> Planted:
    legs = both_legs(payment)
    desk.publish(*legs)
    desk.post(wrong.event(Leg.PAYMENT), legs[1])
    return Planted(broken(desk, break_class, legs[0]))


@contextmanager
def _request(desk: Workload, payment: Payment) -> Iterator[tuple[str, str]]:
    """A request in a topic of its own: (topic, where the request stands)."""
    topic = desk.make_topic(f"{desk.names.name}.request-{payment.payment_id}")
    desk.idempotent().write(payment.event(Leg.PAYMENT), topic=topic)
    yield topic, f"{topic}:0:0"


def _commit(consumer: Consumer, topic: str, kafka_offset: int) -> None:
    save_progress(consumer, [TopicPartition(topic, 0, kafka_offset)])


def _answer(writer: Writer, payment: Payment, source: str) -> None:
    for event in both_legs(payment):
        writer.write(event, source=source)


def _payment_and_partition(desk: Workload) -> tuple[Event, str]:
    event = desk.payment().event(Leg.PAYMENT)
    topic = desk.names.topic(Leg.PAYMENT)
    return event, f"{topic}[{partition_of(event.message_key, desk.names.partitions[topic])}]"


def _held(desk: Workload, partition: str) -> Finding:
    return Finding(contract=desk.contract, kind=FindingKind.DOUBT, name="held_by_open_transaction", subject=partition)


def _end(writer: Writer, *, commit: bool) -> None:
    if commit:
        writer.producer.commit_transaction(30.0)
    else:
        writer.producer.abort_transaction(30.0)
