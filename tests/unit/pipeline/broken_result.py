"""A run's result with breaks, as it is written to a file."""

from tallystick.model.verdict import Verdict
from tests.run_results import run_result
from tests.unit.alerting.run_alerts import MISSING
from tests.unit.conftest import item_break

RESULT = run_result(
    "payouts",
    7,
    verdict=Verdict.BROKEN,
    breaks=(item_break(1, MISSING, "ev-1", 700, "EUR", "payout", "it is not there"),),
)
