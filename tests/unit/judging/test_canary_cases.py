"""Every class has its canary, and a rule that fires on everything is told by its twin."""

from collections.abc import Sequence

import pytest

from tallystick.anomalies.registry import RULES, AnomalyRule
from tallystick.contract.contract import Contract
from tallystick.judging.canary_cases import CASES
from tallystick.judging.canary_evidence import calm_evidence
from tallystick.matching.evidence import Evidence
from tests.unit.builders import L2T, T2L, contract_of, evidence_of
from tests.unit.judging.canary_scans import good_scan, missed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.names[0])
def test_a_rule_that_is_left_out_is_missed(rule: AnomalyRule) -> None:
    without = [one for one in RULES if one is not rule]
    told = {name for contract in (contract_of(L2T), contract_of(T2L)) for name in missed_in(contract, without)}
    assert {f"{name} (class)" for name in rule.names} <= told


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.names[0])
def test_a_rule_that_fires_on_everything_is_told_by_its_twin_or_by_the_others(rule: AnomalyRule) -> None:
    always = AnomalyRule(names=rule.names, letters=rule.letters, rule=lambda: rule.judge(firing(rule)))
    for contract in (contract_of(L2T), contract_of(T2L)):
        assert missed_in(contract, [always if one is rule else one for one in RULES])


def test_every_class_of_the_registry_has_its_canary() -> None:
    assert {case.name for case in CASES} == {name for rule in RULES for name in rule.names}


def firing(rule: AnomalyRule) -> Evidence:
    """The evidence of the rule's first case, under the direction that knows it."""
    case = next(one for one in CASES if one.name in rule.names)
    contract = contract_of(case.only[0] if case.only else L2T)
    return case.fires(calm_evidence(evidence_of(contract=contract)), good_scan(contract).copies)


def missed_in(contract: Contract, classes: Sequence[AnomalyRule]) -> tuple[str, ...]:
    return missed(contract, good_scan(contract), classes)
