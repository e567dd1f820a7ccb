"""Each verdict has an exit code of its own, and of several codes the worst is told."""

from tallystick.model.exit_code import ExitCode, exit_code_of, worst_of
from tallystick.model.verdict import Verdict


def test_every_verdict_has_a_code_of_its_own_that_nothing_else_has() -> None:
    assert [exit_code_of(verdict) for verdict in Verdict] == [0, 3, 1]
    assert len({int(code) for code in ExitCode}) == len(ExitCode)


def test_the_worst_of_several_codes_is_the_money_that_is_wrong() -> None:
    matched, inconclusive, refused, bug, broken = (ExitCode(code) for code in (0, 3, 2, 70, 1))
    rising = [matched, inconclusive, refused, bug, broken]
    for position, worst in enumerate(rising, start=1):
        assert worst_of(rising[:position]) == worst_of(reversed(rising[:position])) == worst
