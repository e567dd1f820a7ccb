"""All that one run's classes judge by, prepared and read-only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tallystick.contract import Contract
from tallystick.cut import Cut, LedgerSnapshot
from tallystick.ledger_reader import HorizonHolder
from tallystick.log_record import LogRecord
from tallystick.pairing import Deadlines, Fate, KeyOutcome, Residue, Sighting
from tallystick.run_result import ItemSide, OpenItem, PartitionCensus
from tallystick.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class LegsCase:
    """A business transaction of which this cut and the open items know some legs, but not all.

    seen: leg to (minor units, currency, item id). sightings: what the log holds of the absent legs, by leg.
    """

    transaction_key: str
    seen: Mapping[str, tuple[int, str, str]]
    sightings: Mapping[str, tuple[Sighting, ...]] = field(default_factory=dict)
    carried: OpenItem | None = None


@dataclass(frozen=True, kw_only=True)
class UnreadableRecord:
    """A readable offset whose value is not what the contract says. Position only, no payload."""

    topic: str
    partition: int
    kafka_offset: int


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One run's evidence. identities: who produced a topic copy, by item id, for breaks that need it."""

    contract: Contract
    cut: Cut
    previous_ledger: LedgerSnapshot | None
    census: tuple[PartitionCensus, ...]
    topic_rows: int
    ledger_rows: int
    older_rows: int | None
    older_rows_expected: int | None
    unreadable_count: int
    unreadable_sample: tuple[UnreadableRecord, ...]
    outcomes: tuple[KeyOutcome, ...]
    incomplete: tuple[LegsCase, ...]
    identities: Mapping[str, LogRecord]
    horizon_holder: HorizonHolder | None
    deadlines: Deadlines
    surroundings: Surroundings = field(default_factory=Surroundings)

    def residues(self, fate: Fate, side: ItemSide) -> tuple[Residue, ...]:
        """The copies of one side with one fate."""
        return tuple(
            residue
            for outcome in self.outcomes
            for residue in outcome.residues
            if residue.fate is fate and residue.copy.side is side
        )
