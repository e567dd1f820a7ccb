"""The outbox relay: publishes the ledger's payouts to their topic. One process.

At most once it marks a row as sent before it writes; at least once, after. Exactly once, its cursor is a transaction id
of the ledger, saved in the producer transaction itself: it reads only rows of ended database transactions, so that none
can commit behind the cursor, and the `sent` flag is information for people.
"""

import sys

import psycopg
from confluent_kafka import TopicPartition

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg
from lab.services.event_output import EventOutput, Fenced
from lab.services.ledger import Ledger, PayoutRow, horizon_xid
from lab.services.partition_reader import PartitionReader
from lab.services.service_protocol import FENCED_EXIT, Barrier, Control

RELAY = "relay"
_PAUSE_SECONDS = 0.02  # between two looks at an outbox that was empty


class Relay:
    """Poll the outbox, publish; the mode decides where the progress is saved."""

    def __init__(self, control: Control) -> None:
        self.control = control
        settings = control.settings
        names = settings.names
        self.ledger = Ledger(names)
        self.connection = psycopg.connect(settings.ledger_dsn, autocommit=True, application_name=settings.name)
        self.output = EventOutput(control)
        # The cursor is kept as the offset of a consumer group that reads nothing.
        self.cursor_place = (names.topic(Leg.PAYOUT), 0)
        self.cursor_group = PartitionReader(control, group=names.group(RELAY), partitions=(self.cursor_place,))
        self.cursor_xid = 0
        self.to_abort = set(settings.abort_first)
        self.step = {
            DeliveryMode.AT_MOST_ONCE: self._at_most_once,
            DeliveryMode.AT_LEAST_ONCE: self._at_least_once,
            DeliveryMode.EXACTLY_ONCE: self._exactly_once,
        }[settings.mode]

    def run(self) -> None:
        self.output.open()  # before the cursor is read: a predecessor's transaction may still hold it
        if self.control.settings.mode is DeliveryMode.EXACTLY_ONCE:
            self.cursor_xid = self.cursor_group.committed().get(self.cursor_place, 0)
            self.ledger.mark_sent_below(self.connection, self.cursor_xid)
        self.control.report("ready")
        while not self.control.stopping:
            syncs = self.control.take("sync")  # taken before the look, so the look covers them
            while self.step():
                pass
            for command in syncs:
                self.control.report("synced", number=command["number"])
            self.control.wait_for_command(_PAUSE_SECONDS)
        self.cursor_group.close()
        self.connection.close()

    def _at_most_once(self) -> bool:
        rows = self.ledger.unsent_payouts(self.connection)
        for row in rows:
            self.ledger.mark_sent(self.connection, row)
            self.control.barrier(Barrier.BEFORE_OUTPUT, row.payment.payment_id)
            self.output.write(row.event, source=row.source)
        return bool(rows)

    def _at_least_once(self) -> bool:
        rows = self.ledger.unsent_payouts(self.connection)
        for row in rows:
            self.control.barrier(Barrier.BEFORE_OUTPUT, row.payment.payment_id)
            self.output.write(row.event, source=row.source)
            self.control.barrier(Barrier.AFTER_OUTPUT, row.payment.payment_id)
            self.ledger.mark_sent(self.connection, row)
        return bool(rows)

    def _exactly_once(self) -> bool:
        """Publish the rows of each ended database transaction in one producer transaction, cursor included."""
        end_xid = horizon_xid(self.connection)
        rows = self.ledger.settled_payouts(self.connection, start_xid=self.cursor_xid, horizon_xid=end_xid)
        for xid in sorted({row.written_xid for row in rows}):
            together = [row for row in rows if row.written_xid == xid]
            if any(str(row.payment.payment_id) in self.to_abort for row in together):
                self._abort_once(together)
            self._publish(together, next_xid=xid + 1)
        return bool(rows)

    def _publish(self, rows: list[PayoutRow], *, next_xid: int) -> None:
        self.output.begin()
        for row in rows:
            self.control.barrier(Barrier.BEFORE_OUTPUT, row.payment.payment_id)
            self.output.write(row.event, source=row.source)
            self.control.barrier(Barrier.AFTER_OUTPUT, row.payment.payment_id)
        self.output.commit([TopicPartition(*self.cursor_place, next_xid)], self.cursor_group.consumer)
        self.cursor_xid = next_xid
        for row in rows:
            self.control.barrier(Barrier.AFTER_PROGRESS, row.payment.payment_id)
            self.ledger.mark_sent(self.connection, row)

    def _abort_once(self, rows: list[PayoutRow]) -> None:
        self.output.begin()
        for row in rows:
            self.to_abort.discard(str(row.payment.payment_id))
            self.output.write(row.event, source=row.source)
        self.output.abort()
        self.control.report("aborted", subject=str(rows[0].payment.payment_id))


def main() -> None:
    try:
        Relay(Control.open()).run()
    except Fenced:
        sys.exit(FENCED_EXIT)


if __name__ == "__main__":
    main()
