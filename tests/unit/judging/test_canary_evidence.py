"""Canaries are judged on calm evidence, whatever the run's own is."""

from dataclasses import replace

from tallystick.anomalies.doubts.ledger_changed import ledger_ids_reused
from tallystick.anomalies.notices.host_clock_off import host_clock_off
from tallystick.anomalies.registry import findings_of
from tallystick.judging.canary_evidence import calm_evidence
from tallystick.model.cut import LedgerAnchor
from tests.unit.builders import cut_of, evidence_of, ledger_slice_of


def test_canaries_are_judged_as_if_the_host_were_right() -> None:
    assert not list(findings_of(host_clock_off, calm_evidence(evidence_of(cut=cut_of(host_ahead_ms=10**6)))))


def test_canaries_are_judged_as_if_the_ledger_had_lost_nothing() -> None:
    lost = (LedgerAnchor(position=7, row_id="a", key_checksum=1),)
    evidence = evidence_of(cut=cut_of(ledger_slice=replace(ledger_slice_of(200, 300), lost=lost)))
    assert list(findings_of(ledger_ids_reused, evidence))
    assert not list(findings_of(ledger_ids_reused, calm_evidence(evidence)))
