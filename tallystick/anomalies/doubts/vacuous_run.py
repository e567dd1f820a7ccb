"""Q1: two silences are not an agreement, and one silence is none either."""

from collections.abc import Iterator

from tallystick.contract.contract import Contract
from tallystick.matching.evidence import SideTotals
from tallystick.matching.match_case import MatchResult
from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def vacuous_run(
    contract: Contract, census: tuple[PartitionCensus, ...], totals: SideTotals, outcomes: tuple[MatchResult, ...]
) -> Iterator[DoubtFound]:
    """A side without a row, and nothing that came in found its partner among the open items either.

    Two empty sides pass only where the contract says `empty: allowed` and a census was taken.
    """
    topic, ledger = totals.topic_rows, totals.ledger_rows
    if topic and ledger:
        return
    if (topic or ledger) and any(outcome.agreeing for outcome in outcomes):
        return
    if not topic and not ledger and contract.empty == "allowed" and census:
        return
    yield DoubtFound(
        doubt=Doubt.VACUOUS_RUN,
        sentence=f"The topic's slice has {topic} readable records and the ledger's {ledger} rows: "
        "an empty side proves nothing.",
        details={"topic_rows": topic, "ledger_rows": ledger},
    )
