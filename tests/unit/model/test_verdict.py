"""The greatest verdict wins."""

import pytest

from tallystick.model.verdict import Verdict, merge_verdicts


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
