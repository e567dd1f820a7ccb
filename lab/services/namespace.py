"""One name for everything a workload owns, so that several can share the lab's servers."""

import re
from dataclasses import dataclass

from lab.services.event import Leg

REQUEST_PARTITIONS = PAYMENT_PARTITIONS = 3
INVOICE_PARTITIONS = PAYOUT_PARTITIONS = 2


@dataclass(frozen=True)
class Namespace:
    """Names topics, consumer groups, transactional ids and the ledger's schema after one word."""

    name: str = "billing"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", self.name):
            raise ValueError(f"namespace: expected lower-case letters, digits and _, got {self.name!r}")

    @property
    def schema(self) -> str:
        return self.name

    @property
    def requests(self) -> str:
        return f"{self.name}.requests"

    def topic(self, leg: Leg) -> str:
        """Name the topic that holds this leg's events: `payments`, `invoices`, `payouts`."""
        return f"{self.name}.{leg}s"

    def group(self, service: str) -> str:
        return f"{self.name}.{service}"

    @property
    def partitions(self) -> dict[str, int]:
        """Give the topics and their partition counts."""
        return {
            self.requests: REQUEST_PARTITIONS,
            self.topic(Leg.PAYMENT): PAYMENT_PARTITIONS,
            self.topic(Leg.INVOICE): INVOICE_PARTITIONS,
            self.topic(Leg.PAYOUT): PAYOUT_PARTITIONS,
        }

    @property
    def places(self) -> list[tuple[str, int]]:
        """List every partition: (topic, number)."""
        return [(topic, number) for topic, count in self.partitions.items() for number in range(count)]
