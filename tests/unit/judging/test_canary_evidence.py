"""Canaries are judged on calm evidence, whatever the run's own is."""

from tallystick.anomalies.notices.host_clock_off import host_clock_off
from tallystick.anomalies.registry import findings_of
from tallystick.judging.canary_evidence import calm_evidence
from tests.unit.builders import cut_of, evidence_of


def test_canaries_are_judged_as_if_the_host_were_right() -> None:
    assert not list(findings_of(host_clock_off, calm_evidence(evidence_of(cut=cut_of(host_ahead_ms=10**6)))))
