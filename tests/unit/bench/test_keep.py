"""What is kept of a release's benchmark: medians and ratios with what they were measured on, and no wrong answer."""

from typing import Any

import pytest

from bench.keep import OtherVersion, WrongAnswers, kept_measurement, kept_promises, measured_version

ON = {"versions": {"tallystick": "1.2.3", "pyspark": "4.1.3"}, "cores": 2, "memory_gib": 23.4}
FIGURES: dict[str, Any] = {
    "size": {"events": 1000},
    "times": 2,
    "wrong_rows": {"different": 3},
    "arms": {
        "floor": {"seconds": [1.0, 2.0], "warm_seconds": 1.5},
        "ours": {
            "seconds": [9.0, 3.004],
            "warm_seconds": 3.004,
            "cold_process_seconds": 12.0,
            "peak_mib": 900,
            "answer": {"verdict": "MATCHED"},
        },
        "command": {"seconds": [14.0, 13.0], "cold_process_seconds": 13.5, "reached": {"Spark called": 2.5}},
    },
    "ratios": {"ours_over_floor": 2.003},
    "disagreements": [],
    "seconds": 60.0,
    **ON,
}


def test_medians_and_ratios_are_kept_with_what_they_were_measured_on() -> None:
    assert kept_measurement(FIGURES) == {
        "size": {"events": 1000},
        "times": 2,
        "ratios": {"ours_over_floor": 2.003},
        "arms": {
            "floor": {"warm_seconds": 1.5},
            "ours": {"warm_seconds": 3.0, "cold_process_seconds": 12.0, "peak_mib": 900},
            "command": {"cold_process_seconds": 13.5, "reached": {"Spark called": 2.5}},
        },
        **ON,
    }


def test_figures_with_a_wrong_answer_are_refused() -> None:
    with pytest.raises(WrongAnswers, match="ours: nothing"):
        kept_measurement(FIGURES | {"disagreements": ["ours: nothing"]})


def test_figures_of_one_version_are_kept_under_it() -> None:
    kept = kept_measurement(FIGURES)
    assert measured_version({"side_by_side": kept}) == "1.2.3"
    assert measured_version({"side_by_side": kept, "shapes": {"plain": kept}, "exactly_once": kept}) == "1.2.3"


def test_figures_of_two_versions_are_refused() -> None:
    kept = kept_measurement(FIGURES)
    older = kept | {"versions": {"tallystick": "1.2.2"}}
    for mixed in ({"shapes": {"plain": older}}, {"exactly_once": older}):
        with pytest.raises(OtherVersion, match=r"1\.2\.2"):
            measured_version({"side_by_side": kept} | mixed)


def test_of_the_price_of_exactly_once_medians_and_differences_are_kept() -> None:
    prices = {"medians": {"acks=1": 9.0}, "below_percent": {"transactional below acks=1": 20.0}}
    measured = {
        "mib": 4,
        "messages": {"1024 B": {"records_per_second": {"acks=1": [9.0]}, **prices}},
        "seconds": 9,
        **ON,
    }
    assert kept_promises(measured) == {"mib": 4, "messages": {"1024 B": prices}, **ON}
