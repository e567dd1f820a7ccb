"""What the lab's messages say: a request, and the events that answer it."""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from lab.services.event_format import written_as


class Leg(StrEnum):
    """One expected record of a business transaction; each leg has a topic of its own."""

    PAYMENT = "payment"
    INVOICE = "invoice"
    PAYOUT = "payout"


@dataclass(frozen=True, kw_only=True)
class Payment:
    """One business transaction. Money is in minor units of its currency."""

    payment_id: uuid.UUID
    amount_minor: int
    currency: str
    occurred_at: datetime  # aware, UTC
    account: str | None = None  # orders its payments by sequence; both or none
    sequence: int | None = None

    def event(self, leg: Leg) -> "Event":
        return Event(payment=self, leg=leg)

    def with_money(self, *, amount_minor: int | None = None, currency: str | None = None) -> "Payment":
        """Give the same payment with other money, as a faulty service would write it."""
        return replace(self, amount_minor=amount_minor or self.amount_minor, currency=currency or self.currency)

    def to_fields(self) -> dict[str, str | int]:
        """Give the JSON fields, which are also the value of a request."""
        order: dict[str, str | int] = {}
        if self.account is not None:
            order = {"account": self.account, "sequence": self.sequence or 0}
        return {
            "payment_id": str(self.payment_id),
            "amount_minor": self.amount_minor,
            "currency": self.currency,
            "occurred_at": self.occurred_at.isoformat(),
            **order,
        }

    @classmethod
    def from_fields(cls, fields: dict[str, str | int]) -> "Payment":
        return cls(
            payment_id=uuid.UUID(str(fields["payment_id"])),
            amount_minor=int(fields["amount_minor"]),
            currency=str(fields["currency"]),
            occurred_at=datetime.fromisoformat(str(fields["occurred_at"])),
            account=str(fields["account"]) if "account" in fields else None,
            sequence=int(fields["sequence"]) if "sequence" in fields else None,
        )


@dataclass(frozen=True, kw_only=True)
class Event:
    """One leg of a payment, as it stands in a topic and in the ledger."""

    payment: Payment
    leg: Leg

    @property
    def event_id(self) -> uuid.UUID:
        """The match key: UUIDv5(payment_id, leg)."""
        return uuid.uuid5(self.payment.payment_id, self.leg)

    @property
    def message_key(self) -> bytes:
        return str(self.payment.payment_id).encode()

    def to_fields(self) -> dict[str, str | int]:
        fields = self.payment.to_fields()
        ordered = {"event_id": str(self.event_id), "payment_id": fields.pop("payment_id"), "leg": str(self.leg)}
        return ordered | fields

    def to_value(self) -> bytes:
        """Return a record's value, in the format in which this process writes events."""
        return written_as().write(self.to_fields())

    @property
    def headers(self) -> dict[str, str]:
        """What of the event stands in its record's headers, in the format in which this process writes events."""
        return written_as().headers(str(self.leg))

    @classmethod
    def from_value(cls, value: bytes) -> "Event":
        fields = written_as().read(value)
        return cls(payment=Payment.from_fields(fields), leg=Leg(fields["leg"]))


def partition_of(message_key: bytes, partition_count: int) -> int:
    """Give the partition that Java's and librdkafka's `murmur2` partitioners choose for a key."""
    return (_murmur2(message_key) & 0x7FFFFFFF) % partition_count


def _murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 (org.apache.kafka.common.utils.Utils.murmur2)."""
    mixer, mask = 0x5BD1E995, 0xFFFFFFFF
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * mixer & mask
        word = (word ^ word >> 24) * mixer & mask
        value = (value * mixer & mask) ^ word
    if tail := data[whole:]:
        value = (value ^ int.from_bytes(tail, "little")) * mixer & mask
    value = (value ^ value >> 13) * mixer & mask
    return value ^ value >> 15
