"""The billing service: reads requests, writes a payment and an invoice for each. One process per request partition."""

import json
import sys

from confluent_kafka import Message

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg, Payment
from lab.services.event_output import EventOutput, Fenced
from lab.services.partition_reader import PartitionReader, source_of
from lab.services.service_protocol import FENCED_EXIT, Barrier, Control


class BillingService:
    """Consume, transform, produce; the mode decides when the progress is saved."""

    def __init__(self, control: Control) -> None:
        self.control = control
        settings = control.settings
        names = settings.names
        self.output = EventOutput(control)
        self.reader = PartitionReader(
            control, group=names.group("billing"), partitions=((names.requests, settings.index),)
        )
        self.to_abort = set(settings.abort_first)
        self.handle = {
            DeliveryMode.AT_MOST_ONCE: self._at_most_once,
            DeliveryMode.AT_LEAST_ONCE: self._at_least_once,
            DeliveryMode.EXACTLY_ONCE: self._exactly_once,
        }[settings.mode]

    def run(self) -> None:
        self.output.open()  # before the progress is read: a predecessor's transaction may still hold it
        self.reader.assign(self.reader.committed())
        self.control.report("ready")
        while not self.control.stopping:
            message = self.reader.next_message()
            if message is None:
                self.reader.answer_syncs()
                continue
            payment = _payment_of(message)
            self.handle(message, payment)
            self.control.barrier(Barrier.AFTER_PROGRESS, payment.payment_id)
            self.reader.finished(message)
        self.reader.close()

    def _at_most_once(self, message: Message, payment: Payment) -> None:
        self.reader.commit(message)
        self._write_legs(message, payment)

    def _at_least_once(self, message: Message, payment: Payment) -> None:
        self._write_legs(message, payment)
        self.reader.commit(message)

    def _exactly_once(self, message: Message, payment: Payment) -> None:
        if str(payment.payment_id) in self.to_abort:
            self.to_abort.remove(str(payment.payment_id))
            self.output.begin()
            self._write_legs(message, payment)
            self.output.abort()
            self.control.report("aborted", subject=str(payment.payment_id))
        self.output.begin()
        self._write_legs(message, payment)
        self.output.commit(self.reader.progress(message), self.reader.consumer)

    def _write_legs(self, message: Message, payment: Payment) -> None:
        self.control.barrier(Barrier.BEFORE_OUTPUT, payment.payment_id)
        self.output.write(payment.event(Leg.PAYMENT), source=source_of(message))
        self.control.barrier(Barrier.AFTER_FIRST_LEG, payment.payment_id)
        self.output.write(payment.event(Leg.INVOICE), source=source_of(message))
        self.control.barrier(Barrier.AFTER_OUTPUT, payment.payment_id)


def _payment_of(message: Message) -> Payment:
    value = message.value()
    assert isinstance(value, bytes)
    return Payment.from_fields(json.loads(value))


def main() -> None:
    try:
        BillingService(Control.open()).run()
    except Fenced:
        sys.exit(FENCED_EXIT)


if __name__ == "__main__":
    main()
