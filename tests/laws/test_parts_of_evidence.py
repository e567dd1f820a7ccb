"""Each rule says in its parameters which parts of the evidence it needs, and is given no others."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cached_property
from typing import Any, get_type_hints

import pytest

from tallystick.anomalies.registry import RULES, AnomalyRule, findings_of
from tallystick.matching.evidence import Evidence
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tests.unit.builders import cut_of, evidence_of


def kinds_of_parts() -> dict[str, Any]:
    """By name what a part is; of a part that is made of others what that gives."""
    kinds = get_type_hints(Evidence)
    made = {name: one.fget for name, one in vars(Evidence).items() if isinstance(one, property)}
    made |= {name: one.func for name, one in vars(Evidence).items() if isinstance(one, cached_property)}
    return {one.name: kinds[one.name] for one in fields(Evidence)} | {
        name: get_type_hints(make)["return"] for name, make in made.items()
    }


def misnamed(rule: Callable[..., Any]) -> dict[str, Any]:
    """Parameters that are no part of the evidence, or one of another kind."""
    asked = {name: kind for name, kind in get_type_hints(rule).items() if name != "return"}
    return {name: kind for name, kind in asked.items() if kinds_of_parts().get(name) != kind}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.names[0])
def test_a_rule_asks_for_parts_by_their_names_and_kinds(rule: AnomalyRule) -> None:
    assert misnamed(rule.rule) == {}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.names[0])
def test_no_rule_asks_for_all_the_evidence(rule: AnomalyRule) -> None:
    assert 0 < len(get_type_hints(rule.rule)) - 1 <= 6
    assert Evidence not in get_type_hints(rule.rule).values()


def test_another_kind_and_another_name_are_told() -> None:
    def of_another_kind(cut: int, outcome: Cut) -> Iterator[DoubtFound]:
        yield from ()

    assert misnamed(of_another_kind) == {"cut": int, "outcome": Cut}
    with pytest.raises(AttributeError, match="outcome"):
        list(findings_of(of_another_kind, evidence_of()))


def test_a_rule_is_given_what_it_names() -> None:
    def closed(cut: Cut) -> Iterator[DoubtFound]:
        yield DoubtFound(doubt=Doubt.CUT_CLOSED, sentence=str(cut.n))

    (found,) = findings_of(closed, evidence_of(cut=cut_of(n=17)))
    assert found.sentence == "17"
