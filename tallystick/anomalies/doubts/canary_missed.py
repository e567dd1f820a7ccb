"""Q1: a planted fault went through the run's own scan and rules and was not caught, or a clean pair was."""

from collections.abc import Iterator

from tallystick.matching.evidence import ScanOddities
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def canary_missed(oddities: ScanOddities) -> Iterator[DoubtFound]:
    """One for all of them: whatever else the run says, its silence proves nothing."""
    missed = oddities.missed_canaries
    if missed:
        yield DoubtFound(
            doubt=Doubt.CANARY_MISSED,
            sentence=f"Planted faults were not caught as they must be: {', '.join(missed)}.",
            details={"missed": list(missed)},
        )
