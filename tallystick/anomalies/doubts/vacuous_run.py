"""Q1: two silences are not an agreement, and one silence is none either."""

from collections.abc import Iterator

from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def vacuous_run(evidence: Evidence) -> Iterator[DoubtFound]:
    """A side without a row, and nothing that came in found its partner among the open items either.

    Two empty sides pass only where the contract says `empty: allowed` and a census was taken.
    """
    topic, ledger = evidence.topic_rows, evidence.ledger_rows
    if topic and ledger:
        return
    if (topic or ledger) and any(outcome.matched for outcome in evidence.outcomes):
        return
    if not topic and not ledger and evidence.contract.empty == "allowed" and evidence.census:
        return
    yield DoubtFound(
        doubt=Doubt.VACUOUS_RUN,
        sentence=f"The topic's slice has {topic} readable records and the ledger's {ledger} rows: "
        "an empty side proves nothing.",
        details={"topic_rows": topic, "ledger_rows": ledger},
    )
