"""A service's writing side: one event at a time, each acknowledged before the next, under the mode's promise."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event
from lab.services.kafka_clients import new_producer
from lab.services.service_protocol import STUCK_EXIT, Control

_TIMEOUT_SECONDS = 30.0
_STUCK_SECONDS = 15.0


class DeliveryFailed(RuntimeError):
    """The broker did not take a message although the mode retries."""


class Fenced(RuntimeError):
    """A successor with the same transactional id is in charge; this process must write no more."""


@dataclass
class EventOutput:
    """Writes events; in exactly_once mode inside producer transactions, whose id is the service's client id."""

    control: Control

    def __post_init__(self) -> None:
        settings = self.control.settings
        self._transactional = settings.mode is DeliveryMode.EXACTLY_ONCE
        self._producer: Producer = new_producer(
            settings.output_bootstrap_servers,
            settings.mode,
            client_id=settings.client_id,
            transactional_id=settings.client_id if self._transactional else None,
        )

    def open(self) -> None:
        """Take over the transactional id: ends what a predecessor left open, and fences it. No-op in other modes."""
        if self._transactional:
            with _never_stuck():
                _repeat_while_retriable(lambda: self._producer.init_transactions(_TIMEOUT_SECONDS))

    def begin(self) -> None:
        self._producer.begin_transaction()

    def write(self, event: Event, *, source: str) -> None:
        """Write one event and wait for its fate. Raises Fenced, or DeliveryFailed.

        At most once, a failure is only reported: the service believes the event lost, and nobody will try again.
        Exactly once, a failure that is not fatal shows itself at the commit.
        """
        try:
            error = self._send(event, source)
        except KafkaException as exception:  # fatal errors break out of produce and flush
            raise Fenced(str(exception)) if _is_fenced(exception.args[0]) else exception from None
        if error is None:
            return
        if self.control.settings.mode is not DeliveryMode.AT_MOST_ONCE:
            raise DeliveryFailed(str(error))
        self.control.report("delivery_failed", subject=str(event.event_id), error=error.name())

    def commit(self, progress: list[TopicPartition], consumer: Consumer) -> None:
        """End the producer transaction; the progress of the consumer's group becomes visible with the events."""
        group = consumer.consumer_group_metadata()
        with _never_stuck():
            _repeat_while_retriable(
                lambda: self._producer.send_offsets_to_transaction(progress, group, _TIMEOUT_SECONDS)
            )
            _repeat_while_retriable(self._producer.commit_transaction)

    def abort(self) -> None:
        """End the producer transaction without effect. Flush first: an abort amid sending can turn fatal."""
        self._producer.flush(_TIMEOUT_SECONDS)
        _repeat_while_retriable(self._producer.abort_transaction)

    def _send(self, event: Event, source: str) -> KafkaError | None:
        errors: list[KafkaError] = []
        # No callback beside a fatal error: the client would raise a SystemError for being called with one pending.
        note = None if self._transactional else lambda error, _: errors.append(error) if error else None
        self._producer.produce(
            self.control.settings.names.topic(event.leg),
            key=event.message_key,
            value=event.to_value(),
            headers={"session": self.control.session, "source": source, **event.headers},
            on_delivery=note,
        )
        if self._producer.flush(_TIMEOUT_SECONDS):
            raise DeliveryFailed(f"no answer for {event.leg} within {_TIMEOUT_SECONDS:.0f} s")
        return errors[0] if errors else None


@contextmanager
def _never_stuck() -> Iterator[None]:
    """End this process where the block hangs, as whatever supervises a service would; a successor goes on.

    When a coordinator dies, librdkafka may hang for minutes whatever time-out it has (librdkafka issues 5456, 5511).
    """
    watchdog = threading.Timer(_STUCK_SECONDS, os._exit, [STUCK_EXIT])
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _repeat_while_retriable(call: Callable[[], object], attempts_max: int = 20) -> None:
    """Make a transactional call that librdkafka lets us resume. Raises Fenced, or KafkaException."""
    for attempt in range(attempts_max):
        try:
            call()
            return
        except KafkaException as exception:
            error = exception.args[0]
            if _is_fenced(error):
                raise Fenced(str(error)) from exception
            if not error.retriable() or attempt + 1 == attempts_max:
                raise


def _is_fenced(error: KafkaError) -> bool:
    return error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
