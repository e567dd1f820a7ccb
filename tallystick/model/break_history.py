"""A break with its life and with earlier repairs of its key, and the names of what becomes of it and of its key."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import OpenItem, WriteOff


class BreakState(StrEnum):
    """The present state of a break. NOT_TRACKED: no item answers for it, so that no later run says."""

    OPEN = "open"
    REPAIR_NOT_CONFIRMED = "repair_not_confirmed"
    """An action was done, and no later run has found its effect yet."""
    REPAIRED = "repaired"
    RESOLVED = "resolved"
    SUPERSEDED = "superseded"
    """Its item answers for another break by now."""
    WRITTEN_OFF = "written_off"
    UNDECIDABLE = "undecidable"
    NOT_TRACKED = "not_tracked"


class HopState(StrEnum):
    """The state of a key at one contract. NOT_SEEN: asked, and nothing is there; NOT_ASKED: nobody can say."""

    MATCHED = "matched"
    BROKEN = "broken"
    CLOSED = "closed"
    """It had a break that is repaired, resolved or written off."""
    WAITING = "waiting"
    UNDECIDABLE = "undecidable"
    UNPROVEN = "unproven"
    """A cut has read it, and its run proves nothing."""
    NOT_JUDGED = "not_judged"
    NOT_SEEN = "not_seen"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, kw_only=True)
class LifeStep:
    """One row of an item that the break is about: its state as the run of cut_n left it.

    written_off: set where not the run wrote it but a person, after that run.
    """

    cut_n: int
    judged_utc: datetime
    item: OpenItem
    written_off: WriteOff | None = None


@dataclass(frozen=True, kw_only=True)
class EarlierRepair:
    """A compensation of another break of the same key: what it wrote may be one of the copies."""

    action_id: UUID
    break_class: BreakClass
    done_utc: datetime


@dataclass(frozen=True, kw_only=True)
class ToldBreak:
    """A break with what stands around it in the store. life: in order of the cuts.

    *_settled_until_utc: up to when either side was whole in the run that found it; None where nobody knew.
    """

    item_break: Break
    contract: str
    cut_n: int
    window_start_utc: datetime
    window_end_utc: datetime
    judged_utc: datetime
    topic_settled_until_utc: datetime | None
    ledger_settled_until_utc: datetime | None
    life: tuple[LifeStep, ...]
    of_inputs: bool = False
    """Does an input topic play the ledger's part?"""
    repairs: tuple[EarlierRepair, ...] = ()


class ExecutedRepair(NamedTuple):
    """An action that was done for good, by a plan that was drawn from a cut's run: what it wrote is in no earlier cut.

    known_utc: since when what it wrote is known to stand; of one that was reopened: since it was done again.
    """

    action_id: UUID
    planned_from_cut: int
    known_utc: datetime


@dataclass(frozen=True, kw_only=True)
class KnownRepair:
    """An action that was begun or is done. kind: as the plan has it. reverses: item id of what it takes back, or "".

    amounts_minor: what an event of it that takes another back may say; None: not kept, by a run of a release that took
    either sign for ours, and of no such event.
    """

    action_id: str
    kind: str
    match_key: str
    topic: str
    reverses: str
    amounts_minor: tuple[int, ...] | None = None


Repairs = Mapping[str, KnownRepair] | None
"""By action id. None: not kept, by a run of a release that believed every header."""
