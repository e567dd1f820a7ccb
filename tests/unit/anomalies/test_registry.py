"""The registry as a whole: each name is judged by one rule, has its planted pair beside it, and none is forgotten."""

from tallystick.anomalies.registry import RULES
from tallystick.judging.judge import judge
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.verdict import Verdict
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import found_in, planted_beside, verdict_of


def test_every_name_of_the_registry_has_its_pair() -> None:
    files = {rule.rule.__module__: planted_beside(rule.rule.__module__) for rule in RULES}
    for rule in RULES:
        assert set(rule.names) <= set(files[rule.rule.__module__])
    planted = [name for names in files.values() for name in names]
    assert sorted(planted) == sorted(name for rule in RULES for name in rule.names)


def test_every_break_and_every_doubt_is_in_the_registry_but_those_of_cuts_that_no_scan_judges() -> None:
    unscanned = {Doubt.BASELINE, Doubt.CUT_CLOSED}
    assert {*BreakClass, *Doubt} - {name for rule in RULES for name in rule.names} == unscanned


def test_no_name_is_judged_by_two_rules() -> None:
    names = [name for rule in RULES for name in rule.names]
    assert len(names) == len(set(names))


def test_clean_evidence_is_matched() -> None:
    assert found_in(CLEAN) == set()
    assert verdict_of(CLEAN) is Verdict.MATCHED


def test_no_classes_prove_nothing() -> None:
    result = judge(CLEAN, matched_rows=9, matched_money={}, content_digests={}, look_ups={}, carried=(), classes=())
    assert result.verdict is Verdict.INCONCLUSIVE
