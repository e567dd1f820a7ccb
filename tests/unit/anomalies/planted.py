"""A rule's planted cases, and the five claims that every one of them is held to.

A rule's test file plants a pair for each name the rule gives: `class TestPlanted(PlantedCases)` with its `pairs`.
"""

from dataclasses import dataclass
from importlib import import_module

import pytest

from tallystick.anomalies.registry import RULES
from tallystick.judging.canary_cases import name_of
from tallystick.judging.judge import judge
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import Break
from tallystick.model.verdict import Verdict
from tests.unit.anomalies.told_evidence import kept, told_of

Name = BreakClass | Doubt | Notice


@dataclass(frozen=True, kw_only=True)
class Pair:
    """fires: evidence that proves the class and nothing else but what it is about. twin: the same but for one fact.

    The twin is what the class must be told apart from; `twin_is` says what it is instead, if anything.
    """

    name: Name
    fires: Evidence
    twin: Evidence
    twin_is: frozenset[Name] = frozenset()
    about: frozenset[Name] = frozenset()


class PlantedCases:
    """Every class fires on its planted case, and stays silent on its twin, one fact away."""

    pairs: tuple[Pair, ...]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.parametrize("pair", self.pairs, ids=[str(pair.name) for pair in self.pairs])

    def test_the_planted_case_fires_and_nothing_else_does(self, pair: Pair) -> None:
        assert found_in(pair.fires) == {pair.name} | pair.about

    def test_its_twin_one_fact_away_does_not(self, pair: Pair) -> None:
        assert found_in(pair.twin) == pair.twin_is
        assert pair.name not in pair.twin_is

    def test_a_break_makes_the_run_broken_a_doubt_inconclusive_and_a_notice_nothing(self, pair: Pair) -> None:
        kinds = {type(one) for one in (pair.name, *pair.about)}
        least = Verdict.INCONCLUSIVE if Doubt in kinds else Verdict.MATCHED
        assert verdict_of(pair.fires) is (Verdict.BROKEN if BreakClass in kinds else least)

    def test_a_class_yields_only_the_names_it_stands_for(self, pair: Pair) -> None:
        for rule in RULES:
            assert {name_of(one) for one in rule.judge(pair.fires)} <= set(rule.names)

    def test_its_evidence_has_the_keys_and_values_that_are_shown(self, pair: Pair) -> None:
        place = next(n for n, one in enumerate(self.pairs) if one is pair)
        assert told_of(pair.fires) == kept()[type(self).__module__.rpartition(".")[2]][place]


def planted_beside(rule_module: str) -> list[Name]:
    """Return the names that a rule's own test file plants a case of."""
    folder, _, module = rule_module.removeprefix("tallystick.").rpartition(".")
    return [pair.name for pair in import_module(f"tests.unit.{folder}.test_{module}").TestPlanted.pairs]


def found_in(evidence: Evidence) -> set[Name]:
    """Return the names of all that the whole registry finds."""
    return {name_of(found) for rule in RULES for found in rule.judge(evidence)}


def found_breaks(evidence: Evidence) -> list[Break]:
    """Return the breaks that the whole registry finds."""
    return [found for rule in RULES for found in rule.judge(evidence) if isinstance(found, Break)]


def verdict_of(evidence: Evidence) -> Verdict:
    """Return the verdict of a run that paired nine rows beside this evidence."""
    return judge(evidence, matched_rows=9, matched_money={}, content_digests={}, look_ups={}, carried=()).verdict
