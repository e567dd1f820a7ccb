"""Garbage is searched for seldom where many values are kept, and as before afterwards."""

import gc
import subprocess
import sys

import pytest

from tallystick.host.gc_tuning import relaxed_gc


def test_the_threshold_is_high_inside_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with relaxed_gc():
        assert gc.get_threshold()[0] > 100 * before[0] > 0
    assert gc.get_threshold() == before


def test_it_comes_back_after_an_error_too_and_from_one_inside_another() -> None:
    before = gc.get_threshold()

    @relaxed_gc()
    def fail() -> None:
        raise LookupError

    with relaxed_gc():
        with pytest.raises(LookupError):
            fail()
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


@pytest.mark.parametrize(("within", "frozen"), [("short_process", True), ("relaxed_gc", False)])
def test_only_the_end_of_a_short_process_makes_no_search_of_what_still_lives(within: str, frozen: bool) -> None:
    code = f"""
import gc
from tallystick.host.gc_tuning import {within}
searches = []
with {within}():
    kept = [[] for _ in range(100_000)]
    gc.callbacks.append(lambda phase, _: searches.append(len(gc.get_objects()) > len(kept)))
more = [[] for _ in range(10_000)]
print(gc.get_threshold()[0] < 1_000_000, any(searches), gc.get_freeze_count() > len(kept))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["True", str(not frozen), str(frozen)]
