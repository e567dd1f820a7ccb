"""A run's result with breaks, as it is written to a file."""

from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tests.unit.alerting.run_alerts import FIGURES, MISSING
from tests.unit.conftest import item_break

RESULT = RunResult(
    contract="payouts",
    cut_n=7,
    verdict=Verdict.BROKEN,
    doubts=(),
    breaks=(item_break(1, MISSING, "ev-1", 700, "EUR", "payout", "it is not there"),),
    items=(),
    figures=FIGURES,
    digest="d",
)
