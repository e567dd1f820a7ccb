"""The truth of a mixed round: what was planted where, written by the lab and read by nobody but the score."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.truth.score import Finding


@dataclass(frozen=True, kw_only=True)
class PlantedFault:
    """One finding that must be made, and the fault that left it."""

    fault: str
    finding: Finding


@dataclass(frozen=True, kw_only=True)
class RoundTruth:
    """clean: contracts where nothing is wrong. allowed: (contract, class) that may be told besides."""

    seed: int
    contracts: tuple[str, ...]
    clean: tuple[str, ...]
    allowed: tuple[tuple[str, str], ...]
    planted: tuple[PlantedFault, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(one.finding for one in self.planted)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")
