"""The places whose writers a run asks for."""

from tallystick.judging.record_origins import origins_needed


def wanted(evidence: object, *repaired: str) -> set[str]:
    return set(
        origins_needed(
            evidence.contract,
            evidence.outcomes,
            evidence.incomplete,
            evidence.census,
            evidence.deadlines,
            repaired=repaired,
        )
    )
