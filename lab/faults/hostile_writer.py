"""A stranger who may write to a contract's topics and means harm. What he says of himself is found under his own name;
no verdict on anybody else's money changes, which the score shows: nothing missed, nothing found that is not his.
"""

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace

from confluent_kafka import Message

from lab.faults.swollen_batch import GZIP, LZ4, ZSTD, produce_batch, swollen_batch
from lab.services.event import Event, Leg, Payment
from lab.services.event_format import written_as
from lab.services.raw_producer import open_raw_admin
from lab.services.workload import CURRENCIES, Workload, Writer
from lab.truth.score import Finding, FindingKind
from lab.truth.stored_findings import FORGED_REPAIR, UNREADABLE, records_finding

ACTION_HEADER = "tallystick-action-id"
REVERSES_HEADER = "tallystick-reverses"
STRANGER = "stranger"
ODD_KEYS = (
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
    "k" * 400,
)
"""How match keys begin that look like ours, or that drive whatever shows them."""

BOMBS = ((ZSTD, 64 << 20), (LZ4, 80 << 20), (GZIP, 8 << 20))
"""Codec and bytes once unpacked: more than a run unpacks of so small a batch, and no more than the lab's own readers
take, which are not on their guard.
"""
_ODD_VALUES = 4


def strange_records(desk: Workload, *legs: Leg) -> tuple[Finding, ...]:
    """Whole payments whose events have odd keys, records that are no event, a bomb, and repairs that are not ours."""
    events = strange_events(desk, *legs)
    odd_bytes = _write_odd_bytes(desk, desk.idempotent(STRANGER), desk.payment().event(legs[0]))
    _drop_bomb(desk, desk.names.topic(legs[0]))
    return *events, *odd_bytes, records_finding(desk.contract, UNREADABLE, 1)


def strange_events(desk: Workload, *legs: Leg) -> tuple[Finding, ...]:
    """Those of them that any reader can read: whole payments with odd keys, and repairs that are not ours."""
    writer = desk.idempotent(STRANGER)
    return (*_write_odd_keys(desk, writer, legs), *_forge_repairs(desk, writer, legs))


def _write_odd_keys(desk: Workload, writer: Writer, legs: tuple[Leg, ...]) -> tuple[Finding, ...]:
    keys = []
    for odd in desk.dice.sample(ODD_KEYS, 4):
        payment = desk.payment()
        for leg in legs:
            keys.append(odd_key(odd, leg, desk.dice.getrandbits(128)))
            event = payment.event(leg)
            writer.write(event, value=written_as().write(event.to_fields() | {"event_id": keys[-1]}))
    return tuple(_broken(desk, "foreign_in_topic", key) for key in keys)


def odd_key(odd: str, leg: Leg, number: int) -> str:
    """One that no other event has."""
    return f"{odd} {leg} {uuid.UUID(int=number)}"


def _write_odd_bytes(desk: Workload, writer: Writer, event: Event) -> tuple[Finding, ...]:
    """What no reader can take for an event: keys and headers of every kind, and values that cost."""
    whole, written = event.to_fields(), written_as()
    odd_texts = (
        b"\xff\xfe\x00",
        b"[" * 100_000,
        json.dumps(whole | {"amount_minor": 10**400}).encode(),
        json.dumps(whole | {"amount_minor": "NaN"}).encode(),
        json.dumps(whole | {"event_id": ""}).encode(),
        json.dumps(whole | {"event_id": "k" * 1000}).encode(),
        json.dumps(whole | {"currency": "E" * 10_000}).encode(),
    )
    topic = writer.names.topic(event.leg)
    headers: list[tuple[str, str | bytes | None]] = [("service", b"\xff" * 3000), ("session", None), ("x" * 2000, b"")]
    headers += [("n", b"1")] * 200
    for value in desk.dice.sample((b"", *map(written.around, odd_texts)), _ODD_VALUES):
        writer.producer.produce(topic, key=desk.dice.randbytes(5000), value=value, headers=headers)
    if writer.producer.flush(30.0):
        raise TimeoutError(f"{STRANGER}: unanswered after 30 s")
    return (_doubted(desk, UNREADABLE), records_finding(desk.contract, UNREADABLE, _ODD_VALUES))


def _drop_bomb(desk: Workload, topic: str) -> None:
    partition = desk.dice.randrange(desk.names.partitions[topic])
    bomb = swollen_batch(*desk.dice.choice(BOMBS), timestamp_ms=int(time.time() * 1000))
    with open_raw_admin(desk.addresses.bootstrap_servers) as admin:
        produce_batch(admin, topic, partition, bomb)


def _forge_repairs(desk: Workload, writer: Writer, legs: tuple[Leg, ...]) -> tuple[Finding, ...]:
    """A payment of his own, and an event that takes an honest service's copy back: each says that it is our repair.

    What he takes back is the only copy, which must not be missing then, or one too many, which must not vanish. Both
    payments are in one currency, so that its errors do not add up to nothing.
    """
    currency = desk.dice.choice(CURRENCIES)
    own, honest = desk.payment(currency=currency), desk.payment(currency=currency)
    copies = desk.dice.randint(1, 2)
    for leg in legs:
        writer.write(own.event(leg), headers=_as_ours(desk, f"topic:{writer.names.topic(leg)}:0:0"))
    place = _agree(desk, honest, legs, copies)
    taken_back = replace(honest, amount_minor=-honest.amount_minor).event(legs[0])
    writer.write(taken_back, headers=_as_ours(desk, place))
    return (
        *(_broken(desk, "foreign_in_topic", str(own.event(leg).event_id)) for leg in legs),
        _broken(desk, "duplicate_in_topic_new_session", str(taken_back.event_id), copies=copies),
        _doubted(desk, FORGED_REPAIR),
        records_finding(desk.contract, FORGED_REPAIR, len(legs) + 1),
    )


def _agree(desk: Workload, payment: Payment, legs: tuple[Leg, ...], copies: int) -> str:
    """An honest payment, once in the ledger, its first leg so often in the topic; give where the last copy stands."""
    if legs == (Leg.PAYOUT,):
        source = desk.add_payout(payment).source
    else:
        source = desk.source()
        desk.post(*(payment.event(leg) for leg in legs))
    places: list[str] = []

    def note(_: object, message: Message) -> None:
        places.append(f"topic:{message.topic()}:{message.partition()}:{message.offset()}")

    service = desk.idempotent()
    for leg in (*legs[1:], *legs[:1] * copies):
        service.write(payment.event(leg), source=source, on_delivery=note)
    return places[-1]


def _as_ours(desk: Workload, reverses: str) -> Mapping[str, str]:
    return {ACTION_HEADER: str(uuid.UUID(int=desk.dice.getrandbits(128))), REVERSES_HEADER: reverses}


def _broken(desk: Workload, break_class: str, subject: str, *, copies: int = 1) -> Finding:
    return Finding(contract=desk.contract, kind=FindingKind.BREAK, name=break_class, subject=subject, copies=copies)


def _doubted(desk: Workload, doubt: str) -> Finding:
    return Finding(contract=desk.contract, kind=FindingKind.DOUBT, name=doubt)
