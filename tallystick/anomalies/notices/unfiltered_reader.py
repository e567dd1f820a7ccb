"""A3: the ledger's consumer reads uncommitted, by the contract's own word, and did no harm in this slice.

Harm is a break of its own: a row of an aborted or still open event.
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.aborted_read import was_aborted_only
from tallystick.contract.contract import Contract
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus
from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.open_item import ItemSide
from tallystick.text.verdict_sentence import counted


def unfiltered_reader(
    contract: Contract, census: tuple[PartitionCensus, ...], unmatched: UnmatchedItems
) -> Iterator[NoticeFound]:
    """Report an aborted record in the slice, by the census, where the contract declares a reader of uncommitted
    records.
    """
    if contract.ledger.consumer_isolation != "read_uncommitted" or _did_harm(unmatched):
        return
    aborted = sum(part.aborted for part in census)
    harmless = (
        f"{counted(aborted, 'aborted record')} lay in this window, and no row of an aborted record was found"
        if aborted
        else "no aborted record lay in this window"
    )
    yield NoticeFound(
        notice=Notice.UNFILTERED_READER,
        sentence=f"The ledger's consumer reads uncommitted; {harmless}.",
        details={"consumer_isolation": "read_uncommitted", "aborted_records": aborted},
    )


def _did_harm(unmatched: UnmatchedItems) -> bool:
    rows = unmatched.of(MatchStatus.ORIGIN_ABSENT, ItemSide.LEDGER)
    return any(map(was_aborted_only, rows)) or bool(unmatched.of(MatchStatus.ORIGIN_OPEN, ItemSide.LEDGER))
