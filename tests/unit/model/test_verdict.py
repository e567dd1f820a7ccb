"""The greatest verdict wins, each has an exit code of its own, and the worst code is told."""

import pytest

from tallystick.model.verdict import ExitCode, Verdict, exit_code_of, merge_verdicts, worst_of


@pytest.mark.parametrize(
    ("verdicts", "merged"),
    [
        ([], Verdict.INCONCLUSIVE),
        ([Verdict.MATCHED], Verdict.MATCHED),
        ([Verdict.INCONCLUSIVE, Verdict.MATCHED], Verdict.INCONCLUSIVE),
        ([Verdict.BROKEN, Verdict.MATCHED, Verdict.INCONCLUSIVE], Verdict.BROKEN),
    ],
)
def test_the_greatest_verdict_wins_and_none_proves_nothing(verdicts: list[Verdict], merged: Verdict) -> None:
    assert merge_verdicts(verdicts) is merged


def test_every_verdict_has_a_code_of_its_own_that_nothing_else_has() -> None:
    assert [exit_code_of(verdict) for verdict in Verdict] == [0, 3, 1]
    assert len({int(code) for code in ExitCode}) == len(ExitCode)


def test_the_worst_of_several_codes_is_the_money_that_is_wrong() -> None:
    matched, inconclusive, refused, bug, broken = (ExitCode(code) for code in (0, 3, 2, 70, 1))
    rising = [matched, inconclusive, refused, bug, broken]
    for position, worst in enumerate(rising, start=1):
        assert worst_of(rising[:position]) == worst_of(reversed(rising[:position])) == worst
