"""Growth of time with the rows is told so that 1 is linear, and the larger size's memory stands beside it."""

from io import StringIO
from typing import Any

from rich.console import Console

from bench.growth import growth, table_of


def figures(events: int, *, floor: float, ours: float, peak_mib: int) -> dict[str, Any]:
    arms = {"floor": {"warm_seconds": floor}, "ours": {"warm_seconds": ours, "peak_mib": peak_mib}}
    return {"size": {"events": events}, "arms": arms, "ratios": {"ours_over_floor": ours / floor}}


def test_ten_times_the_seconds_for_ten_times_the_rows_is_linear_and_more_is_above_one() -> None:
    smaller = figures(3, floor=4.0, ours=6.0, peak_mib=900)
    assert growth([smaller, figures(30, floor=40.0, ours=60.0, peak_mib=1)], 10) == {"floor": 1.0, "ours": 1.0}
    assert growth([smaller, figures(30, floor=20.0, ours=90.0, peak_mib=1)], 10) == {"floor": 0.5, "ours": 1.5}


def test_each_size_has_a_line_with_its_memory() -> None:
    measured = [
        figures(3_000, floor=4.0, ours=6.0, peak_mib=900),
        figures(30_000, floor=40.0, ours=54.0, peak_mib=4567),
    ]
    told = StringIO()
    Console(width=120, file=told).print(table_of(measured, growth(measured, 10)))
    smaller, larger, grown = [line for line in told.getvalue().splitlines() if "0" in line]
    assert "3,000" in smaller and "1.50" in smaller and "900" in smaller
    assert "30,000" in larger and "1.35" in larger and "4,567" in larger
    assert "1.00" in grown and "0.90" in grown
