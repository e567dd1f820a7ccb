"""What a run did not prove is no assertion that succeeded."""

from collections import Counter
from dataclasses import replace

from tallystick.documents.lineage_assertions import assertions_of
from tallystick.model.finding_names import BreakClass
from tallystick.model.stored_run import StoredRun


def said(run: StoredRun) -> dict[str, tuple[bool, str]]:
    return {one.name.removeprefix("tallystick."): (one.success, one.actual) for one in assertions_of(run.result)}


def test_a_matched_run_proves_each_class_absent(matched_run: StoredRun) -> None:
    found = said(matched_run)
    assert found.pop("verdict") == (True, "MATCHED")
    assert found == {f"break.{one}": (True, "0") for one in BreakClass}


def test_breaks_are_counted_by_class_and_the_other_classes_are_proven_absent(broken_run: StoredRun) -> None:
    run = replace(broken_run, result=replace(broken_run.result, doubts=()))
    assert run.result.breaks
    counts = Counter(found.break_class for found in run.result.breaks)
    found = said(run)
    assert found.pop("verdict") == (False, "BROKEN")
    assert found == {f"break.{one}": (not counts[one], str(counts[one])) for one in BreakClass}


def test_beside_a_doubt_nothing_is_proven_absent(inconclusive_run: StoredRun) -> None:
    result = inconclusive_run.result
    assert result.doubts
    assert said(inconclusive_run) == {
        "verdict": (False, "INCONCLUSIVE"),
        **{f"doubt.{found.doubt}": (False, "1") for found in result.doubts},
        **{f"break.{one}": (False, str(n)) for one, n in Counter(b.break_class for b in result.breaks).items()},
    }
