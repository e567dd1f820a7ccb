"""The till: writes payment requests, batch by batch when the lab asks. One process, never faulted."""

import json

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Payment
from lab.services.kafka_clients import new_producer
from lab.services.service_protocol import Control

_TIMEOUT_SECONDS = 30.0


def main() -> None:
    """Write each batch with an idempotent producer, so that requests themselves are there exactly once."""
    control = Control.open()
    settings = control.settings
    producer = new_producer(settings.bootstrap_servers, DeliveryMode.EXACTLY_ONCE, client_id=settings.client_id)
    control.report("ready")
    while not control.stopping:
        for command in control.take("write"):
            for fields in settings.work[command["batch"]]:
                payment = Payment.from_fields(fields)
                producer.produce(
                    settings.names.requests,
                    key=str(payment.payment_id).encode(),
                    value=json.dumps(payment.to_fields()).encode(),
                    headers={"session": control.session},
                )
            if producer.flush(_TIMEOUT_SECONDS):
                raise TimeoutError(f"requests unanswered after {_TIMEOUT_SECONDS:.0f} s")
            control.report("written", batch=command["batch"])
        control.wait_for_command()


if __name__ == "__main__":
    main()
