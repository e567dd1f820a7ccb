"""What really happened in a round, written down for the tests and the demo. The reconciler never reads it."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg


class Fault(StrEnum):
    """What the lab does to the services and the servers."""

    ACK_LOST = "ack_lost"
    CLIENT_KILLED = "client_killed"
    CONSUMER_CRASHED = "consumer_crashed"
    ZOMBIE = "zombie"
    OPEN_TRANSACTION = "open_transaction"
    ABORTED_TRANSACTIONS = "aborted_transactions"
    LONG_DATABASE_TRANSACTION = "long_database_transaction"
    SAVEPOINT_ROWS = "savepoint_rows"
    PLANTED = "planted"  # set up on its own, outside a round


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """One disagreement that is really there.

    Of a duplicate: `amount_minor` is one extra copy's, `copies` the number of extra copies. Of a torn payment: the
    event is the missing leg's, the amount the present leg's. Of a mismatch: amount and currency are the topic's.
    Of what is wrong with the log and no event in particular: the event's fields are empty, and `place` says where.
    """

    contract: str  # payments or payouts
    break_class: str
    event_id: str
    payment_id: str
    leg: str
    amount_minor: int
    currency: str
    copies: int
    fault: Fault
    place: str = ""  # topic[partition]; always of a fault of the log

    @classmethod
    def of(
        cls, event: Event, break_class: str, fault: Fault, *, copies: int = 1, place: tuple[str, int] | None = None
    ) -> "Anomaly":
        return cls(
            contract=_contract(event.leg),
            break_class=break_class,
            event_id=str(event.event_id),
            payment_id=str(event.payment.payment_id),
            leg=str(event.leg),
            amount_minor=event.payment.amount_minor,
            currency=event.payment.currency,
            copies=copies,
            fault=fault,
            place=_named(place) if place else "",
        )

    @classmethod
    def of_log(cls, leg: Leg, place: tuple[str, int], break_class: str, fault: Fault) -> "Anomaly":
        return cls(
            contract=_contract(leg),
            break_class=break_class,
            event_id="",
            payment_id="",
            leg=str(leg),
            amount_minor=0,
            currency="",
            copies=1,
            fault=fault,
            place=_named(place),
        )


def _named(place: tuple[str, int]) -> str:
    return f"{place[0]}[{place[1]}]"


def _contract(leg: Leg) -> str:
    return "payouts" if leg is Leg.PAYOUT else "payments"


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What the lab believes it wrote. Money is in minor units, by currency."""

    requests_sent: int
    events_by_topic: dict[str, int]  # committed copies
    postings: int
    payout_rows: int
    requested_minor: dict[str, int]
    paid_out_minor: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Truth:
    """One round: the faults that really fired, and every disagreement they left."""

    mode: DeliveryMode
    seed: int
    namespace: str
    faults_fired: dict[str, int]
    anomalies: tuple[Anomaly, ...]
    totals: Totals

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Truth":
        fields = json.loads(path.read_text())
        fields["mode"] = DeliveryMode(fields["mode"])
        fields["totals"] = Totals(**fields["totals"])
        fields["anomalies"] = tuple(
            Anomaly(**{**anomaly, "fault": Fault(anomaly["fault"])}) for anomaly in fields["anomalies"]
        )
        return cls(**fields)
