"""A stranger who may write to a contract's topics and means harm. What he says of himself is found under his own name;
no verdict on anybody else's money changes, which the score shows: nothing missed, nothing found that is not his.
"""

import json
import uuid
from typing import Any

from lab.services.event import Event, Leg
from lab.services.workload import Workload, Writer
from lab.truth.score import Finding, Kind

STRANGER = "stranger"
_KEYS = (
    "tallystick-canary-1",
    "no key, row 7",
    "billing\x1fpayout",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "=HYPERLINK(0)",
    "\u202egnp.exe",
    "\u009b2J",
    "{{ dag.dag_id }}",
    "'; drop table audit; --",
    "k" * 1000,
)
"""Match keys that look like ours, or that drive whatever shows them."""


def strange_records(desk: Workload, *legs: Leg) -> tuple[Finding, ...]:
    """Whole payments whose events have odd keys, and records that are no event."""
    writer, keys = desk.idempotent(STRANGER), []
    for odd in desk.dice.sample(_KEYS, 4):
        payment = desk.payment()
        for leg in legs:
            keys.append(f"{odd} {leg} {uuid.UUID(int=desk.dice.getrandbits(128))}")
            _write_under(writer, payment.event(leg), keys[-1])
    _write_odd(desk, writer, desk.payment().event(legs[0]))
    return (
        *(Finding(contract=desk.contract, kind=Kind.BREAK, name="foreign_in_topic", subject=key) for key in keys),
        Finding(contract=desk.contract, kind=Kind.DOUBT, name="unreadable_payload"),
    )


def _write_under(writer: Writer, event: Event, key: str) -> None:
    writer.write(event, value=json.dumps(json.loads(event.to_json()) | {"event_id": key}).encode())


def _write_odd(desk: Workload, writer: Writer, event: Event) -> None:
    """What no reader can take for an event: keys and headers of every kind, and values that cost."""
    whole: dict[str, Any] = json.loads(event.to_json())
    odd_values = (
        b"",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        json.dumps(whole | {"amount_minor": 10**400}).encode(),
        json.dumps(whole | {"amount_minor": "NaN"}).encode(),
        json.dumps(whole | {"event_id": ""}).encode(),
        json.dumps(whole | {"currency": "E" * 10_000}).encode(),
    )
    topic = writer.names.topic(event.leg)
    for value in desk.dice.sample(odd_values, 4):
        headers = [("service", b"\xff" * 3000), ("session", None), ("x" * 2000, b""), *[("n", b"1")] * 200]
        writer.producer.produce(topic, key=desk.dice.randbytes(5000), value=value, headers=headers)
    if writer.producer.flush(30.0):
        raise TimeoutError(f"{STRANGER}: unanswered after 30 s")
