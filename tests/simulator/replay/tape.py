"""What a simulated schedule did to the world, in order, in words that real servers can be told.

Services, people and the scheduler are on the tape; the product is not: it is run again, by the same steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from tallystick.model.offsets import TopicPartition
from tests.simulator.world.batches import Record
from tests.simulator.world.clock import Clock
from tests.simulator.world.database import Row


class LogEnds(NamedTuple):
    """One partition's log."""

    log_start: int
    lso: int
    end: int


class Opened(NamedTuple):
    """A service's producer starts under its transactional id, and ends what was open there."""

    producer: str


class Published(NamedTuple):
    """One record, in the producer's transaction; None: outside of any."""

    producer: str | None
    place: TopicPartition
    record: Record
    offset: int


class Ended(NamedTuple):
    """A producer's transaction ends on all its partitions."""

    producer: str
    commit: bool


class LogsStand(NamedTuple):
    """All that was said until now has reached the logs."""

    logs: Mapping[TopicPartition, LogEnds]


class Retained(NamedTuple):
    """Retention takes what lies below."""

    place: TopicPartition
    offset: int


class Recreated(NamedTuple):
    topic: str


class RowIn(NamedTuple):
    """A row comes. written_xid is None where the column's default says it."""

    writer: str
    row: Row


class RowChanged(NamedTuple):
    """A row is updated; columns: those that get another value."""

    writer: str
    row_id: int
    columns: Mapping[str, Any]


class RowOut(NamedTuple):
    writer: str
    row_id: int


class Said(NamedTuple):
    """A writer says a word about its database transaction: savepoint, release, prepare, commit, rollback."""

    writer: str
    word: str


class SetAside(NamedTuple):
    """A prepared transaction has another name from here on: its writer begins a new one."""

    writer: str
    aside: str


class Rewritten(NamedTuple):
    """Each row of the table gets the id of who rewrites it."""


class Crashed(NamedTuple):
    """The ledger's server is killed, and starts again."""


class SwitchedOver(NamedTuple):
    """The ledger goes on under another timeline; sessions and what they had open are gone."""


class Led(NamedTuple):
    """Partitions get another leader epoch."""


class WindowDue(NamedTuple):
    """The scheduler's turn. told: what came of it, by contract and cut."""

    told: list[Any]


class BothSidesHold(NamedTuple):
    """All is over. events: key, money, and whether a repair wrote it, of each that is read; rows: all there are."""

    events: list[Any]
    rows: list[Any]


class PersonDid(NamedTuple):
    """A person's turn. told: what came of it."""

    name: str
    a: int
    b: int
    told: list[Any]


Entry = (
    Opened
    | Published
    | Ended
    | LogsStand
    | Retained
    | Recreated
    | RowIn
    | RowChanged
    | RowOut
    | Said
    | SetAside
    | Rewritten
    | Crashed
    | SwitchedOver
    | Led
    | WindowDue
    | PersonDid
    | BothSidesHold
)


class Moment(NamedTuple):
    """An entry, when it was, and how many lines the story had by then."""

    at: datetime
    lines: int
    entry: Entry


@dataclass
class Tape:
    """clock: the simulated world's. story: its lines, as they are told."""

    clock: Clock
    story: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        self.moments.append(Moment(self.clock.now, len(self.story), entry))
