"""What each natural fault is, and what it is given to happen in."""

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.natural.steered_producer import SteeredProducer, open_steered_producer
from lab.servers import process
from lab.servers.stack import LabStack
from lab.services.event import Event, Payment
from lab.services.workload import CURRENCIES
from lab.truth.score import Finding, FindingKind

_AMOUNT_MIN, _AMOUNT_MAX = 100_000, 499_999  # of six digits: so are all events of one size


@dataclass(frozen=True, kw_only=True)
class NaturalBook:
    """One namespace, prepared and idle, under a contract of the same name. jars: the Kafka that the fault is of."""

    stack: LabStack
    name: str
    dice: random.Random
    jars: Path
    folder: Path

    @contextmanager
    def producer(self, client_id: str, jars: Path | None = None, **settings: str) -> Iterator[SteeredProducer]:
        """Kafka's own producer of that version, behind the proxy; _ stands for the dot in names of settings."""
        told = {name.replace("_", "."): value for name, value in settings.items()}
        near = {"bootstrap.servers": self.stack.proxied_bootstrap_servers, "client.id": client_id, "linger.ms": "0"}
        with open_steered_producer(
            near | told, session=client_id, jars=jars or self.jars, log=self.folder / f"{client_id}.log"
        ) as producer:
            yield producer

    def breaks(self, name: str, *events: Event) -> tuple[Finding, ...]:
        return tuple(self._finding(FindingKind.BREAK, name, str(event.event_id)) for event in events)

    def doubt(self, name: str, place: tuple[str, int]) -> Finding:
        return self._finding(FindingKind.DOUBT, name, f"{place[0]}[{place[1]}]")

    def _finding(self, kind: FindingKind, name: str, subject: str) -> Finding:
        return Finding(contract=self.name, kind=kind, name=name, subject=subject)


@dataclass(frozen=True, kw_only=True)
class Happened:
    """What happened, as the log and the writer of the books tell it; due: how the reconciler has to call it."""

    on_the_log: str
    due: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class NaturalFault:
    """One fault of real software. contract: by the namespace's name. unseen: what of it nobody can see, and why.

    allowed: classes that the fault may bring with it.
    """

    happen: Callable[[NaturalBook], Happened]
    issue: str
    made_with: str
    contract: Callable[[str], Mapping[str, Any]]
    unseen: str = ""
    allowed: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.happen.__name__


def payment_of_one_size(dice: random.Random) -> Payment:
    """Draw a payment whose events have all the same number of bytes."""
    return Payment(
        payment_id=uuid.UUID(int=dice.getrandbits(128), version=4),
        amount_minor=dice.randint(_AMOUNT_MIN, _AMOUNT_MAX),
        currency=dice.choice(CURRENCIES),
        occurred_at=datetime.now(UTC).replace(microsecond=0),
    )


def wait_seconds(seconds: float) -> None:
    """For what is a matter of time alone: the age of a batch."""
    end = time.monotonic() + seconds
    process.wait_until(lambda: time.monotonic() >= end, what=f"{seconds} s")
