"""Q2: the ledger is not what earlier cuts read, or not the same server any more."""

from collections.abc import Iterator

from tallystick.break_class import Doubt
from tallystick.evidence import Evidence
from tallystick.run_result import DoubtFound


def ledger_rewritten(evidence: Evidence) -> Iterator[DoubtFound]:
    """On an append-only table the rows older than the slice are what all earlier cuts read, no more and no fewer.

    An UPDATE, DELETE or rewrite moves rows between slices, which would read as missing or duplicate. Source: PostgreSQL
    manual, system columns: xmin is the transaction that wrote this version of the row.
    """
    if evidence.older_rows is None or evidence.older_rows_expected is None:
        return
    if evidence.older_rows != evidence.older_rows_expected:
        yield DoubtFound(
            doubt=Doubt.LEDGER_REWRITTEN,
            sentence=f"ledger: {evidence.older_rows} rows are older than this slice, earlier cuts read "
            f"{evidence.older_rows_expected}: rows were updated, deleted or rewritten, so the slice by xmin proves "
            "nothing.",
            details={"older_rows": evidence.older_rows, "expected": evidence.older_rows_expected},
        )


def ledger_failed_over(evidence: Evidence) -> Iterator[DoubtFound]:
    """Another system or timeline may give transaction ids out again: the slice must not be trusted."""
    before, now = evidence.previous_ledger, evidence.cut.ledger_slice.snapshot
    if before is None:
        return
    if (before.system_identifier, before.timeline) != (now.system_identifier, now.timeline):
        yield DoubtFound(
            doubt=Doubt.LEDGER_FAILED_OVER,
            sentence=f"ledger: system {now.system_identifier} on timeline {now.timeline}, the previous cut read system "
            f"{before.system_identifier} on timeline {before.timeline}: transaction ids may have been given out again.",
            details={"timeline": now.timeline, "previous_timeline": before.timeline},
        )
