"""Faults that need a past: what becomes of a row or an event after a window has judged it.

Each in a namespace and under a contract of its own, as in `log_books`: what an owner does to a judged row is told of
the whole ledger, and would hide the faults of other books. Beside each stands a payout that agrees, in every window.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from psycopg import sql

from lab.faults.event_faults import CAUSE_UNKNOWN, Planted, both_legs, broken
from lab.faults.log_fault_books import LogBook, LogFault
from lab.servers.log_ends import LogEnds
from lab.services.event import Leg
from lab.services.kafka_clients import new_admin
from lab.services.ledger import Ledger, PayoutRow
from lab.services.workload import Workload
from lab.truth.score import Finding, FindingKind

_BY_XMIN = {"slice_by": "xmin"}

Findings = tuple[Finding, ...]


def row_touched(book: LogBook) -> Planted:
    """An owner updates a judged row: by xmin it comes in again."""
    row = pay_out(book)

    def touch(desk: Workload) -> Findings:
        Ledger(desk.names).mark_sent(desk.connection, row)
        return doubt(book, "ledger_rewritten"), _undecidable(book, row)

    return Planted(later=_later(book, touch))


def row_touched_after_expiry(book: LogBook) -> Planted:
    """The same once retention has taken the event that every run had read: nobody may call it never produced."""
    row = pay_out(book)

    def touch(desk: Workload) -> Findings:
        _expire(desk, Leg.PAYOUT)
        Ledger(desk.names).mark_sent(desk.connection, row)
        return doubt(book, "ledger_rewritten"), _undecidable(book, row)

    return Planted(later=_later(book, touch))


def row_removed(book: LogBook) -> Planted:
    """An owner deletes a judged row."""
    row = pay_out(book)

    def remove(desk: Workload) -> Findings:
        _delete(desk, row)
        return (doubt(book, "ledger_rewritten"),)

    return Planted(later=_later(book, remove))


def paid_again_after_archiving(book: LogBook) -> Planted:
    """An owner archives a judged row, and later the payout is made once more on both sides."""
    row = pay_out(book)

    def pay_again(desk: Workload) -> Findings:
        _delete(desk, row)
        again = desk.add_payout(row.payment)
        desk.publish(again.event, source=again.source)
        twice = broken(desk, "duplicate_in_topic_new_session", again.event, across_windows=True)
        doubts = [doubt(book, name) for name in ("ledger_rewritten", "partner_not_settled")]
        return *twice, *doubts, _undecidable(book, again)

    return Planted(later=_later(book, pay_again))


def leg_again_after_expiry(book: LogBook) -> Planted:
    """One leg of a judged payment is sent again once retention has taken both: a duplicate, and nothing is torn."""
    with open_desk(book, "first") as desk:
        legs, source = both_legs(desk.payment()), desk.source()
        desk.publish(*legs, source=source)
        desk.post(*legs)

    def send_again(desk: Workload) -> Findings:
        for leg in (Leg.PAYMENT, Leg.INVOICE):
            _expire(desk, leg)
        desk.publish(legs[0], source=source)
        return broken(desk, CAUSE_UNKNOWN, legs[0], across_windows=True)

    return Planted(later=_later(book, send_again))


LEDGER_FAULTS = (
    LogFault(plant=row_touched, fields=_BY_XMIN),
    LogFault(plant=row_touched_after_expiry, fields=_BY_XMIN),
    LogFault(plant=row_removed),
    LogFault(plant=paid_again_after_archiving),
    LogFault(plant=leg_again_after_expiry, leg=Leg.PAYMENT),
)


def pay_out(book: LogBook) -> PayoutRow:
    """A payout that stands on both sides."""
    with open_desk(book, "first") as desk:
        row = desk.add_payout(desk.payment())
        desk.publish(row.event, source=row.source)
        return row


def _later(book: LogBook, strike: Callable[[Workload], Findings]) -> Callable[[], Findings]:
    """The fault's second half, once a window has been judged, and a payout that agrees beside it."""

    def again() -> Findings:
        with open_desk(book, "later") as desk:
            found = strike(desk)
        book.agree()
        return found

    return again


@contextmanager
def open_desk(book: LogBook, seed: str) -> Iterator[Workload]:
    with Workload.open(book.stack, book.name, "relay", f"{book.dice.getrandbits(32)}:{seed}") as desk:
        yield desk


def _expire(desk: Workload, leg: Leg) -> None:
    """Retention takes all that the leg's topic holds."""
    admin, topic = new_admin(desk.addresses.bootstrap_servers), desk.names.topic(leg)
    places = [(topic, number) for number in range(desk.names.partitions[topic])]
    log_ends = LogEnds(admin)
    log_ends.wait_until_decided(places)
    log_ends.expire(log_ends.stable_ends(places))


def _delete(desk: Workload, row: PayoutRow) -> None:
    statement = sql.SQL("DELETE FROM {}.payout WHERE entry_id = %s").format(sql.Identifier(desk.names.schema))
    desk.connection.execute(statement, (row.entry_id,))


def _undecidable(book: LogBook, row: PayoutRow) -> Finding:
    return Finding(
        contract=book.name,
        kind=FindingKind.UNDECIDABLE,
        name=str(FindingKind.UNDECIDABLE),
        subject=str(row.event.event_id),
    )


def doubt(book: LogBook, name: str) -> Finding:
    return Finding(contract=book.name, kind=FindingKind.DOUBT, name=name)
