"""A repair that the verdict store knows of."""

from collections.abc import Mapping
from dataclasses import dataclass


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
