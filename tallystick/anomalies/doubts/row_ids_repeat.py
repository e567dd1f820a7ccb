"""Q2: several rows of the slice have one row id.

Items, breaks and repairs name a row by its id, so which of these rows they mean nobody can say. Where the database
rules it out by a unique index nothing is counted. Not to be mistaken for a match key that stands twice, which is a
duplicate.
"""

from collections.abc import Iterator

from tallystick.contract.contract import Contract
from tallystick.matching.evidence import ScanOddities
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def row_ids_repeat(contract: Contract, oddities: ScanOddities) -> Iterator[DoubtFound]:
    """One for all of them, with the first few ids."""
    repeated = oddities.repeated_row_ids
    if repeated:
        column = contract.ledger.columns.row_id
        named = ", ".join(one or "NULL" for one in repeated)
        yield DoubtFound(
            doubt=Doubt.ROW_IDS_REPEAT,
            sentence=f"ledger: several rows of this slice have one {column}, which the contract names row_id: such as "
            f"{named}. Each of them was judged, but a break or a repair cannot say which one it means.",
            details={"row_ids": list(repeated)},
        )
