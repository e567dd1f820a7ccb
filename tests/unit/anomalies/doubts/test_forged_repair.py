"""C3: a repair that the store knows nothing of."""

from tallystick.anomalies.doubts.forged_repair import forged_repair
from tallystick.anomalies.registry import findings_of
from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.FORGED_REPAIR,
            fires=with_facts(CLEAN, forged_repairs=("topic:billing.payouts:0:14",)),
            twin=with_facts(CLEAN, forged_repairs=()),
        ),
    )


def test_all_are_counted_and_the_first_five_are_named() -> None:
    copies = tuple(f"topic:billing.payouts:0:{n}" for n in range(10, 16))
    (found,) = findings_of(forged_repair, with_facts(CLEAN, forged_repairs=copies))
    assert (found.details["copies"], found.details["places"]) == (6, list(copies[:5]))
    assert copies[4] in found.sentence and copies[5] not in found.sentence
