"""On no shape may another program be faster than ours, and no answer may be wrong."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.shapes import measured_before, problems, shapes, table_of


def figures(*, naive: float = 9.0, disagreements: tuple[str, ...] = ()) -> dict[str, Any]:
    arms = {
        "floor": {"warm_seconds": 1.25},
        "ours": {"warm_seconds": 3.0, "peak_mib": 1234},
        "naive": {"warm_seconds": naive},
    }
    return {"arms": arms, "disagreements": list(disagreements)}


def test_shapes_that_are_quicker_and_right_fail_by_nothing() -> None:
    assert problems({"plain": figures(), "wide": figures()}) == []


def test_a_program_that_is_faster_on_one_shape_is_told_with_the_shape() -> None:
    assert problems({"plain": figures(), "wide": figures(naive=2.0)}) == ["wide: naive: 2.00 s; ours needed 3.00 s"]


def test_a_wrong_answer_on_one_shape_is_told_with_the_shape() -> None:
    wrong = figures(disagreements=("ours: nothing; expected all",))
    assert problems({"plain": wrong, "wide": figures()}) == ["plain: ours: nothing; expected all"]


def test_each_shape_differs_from_the_plain_one_in_one_thing_beside_its_events() -> None:
    sizes = {name: shape.size for name, shape in shapes(300_000).items()}
    plain = vars(sizes["plain"])
    differences = {
        name: {field for field, value in vars(size).items() if value != plain[field]} - {"events"}
        for name, size in sizes.items()
    }
    assert differences == {
        "plain": set(),
        "10 KB payloads": {"filler_bytes"},
        "90 % on one partition": {"hot_partition_percent"},
        "1,000 partitions": {"partitions"},
        "one key 2,000 times": {"hot_key_copies"},
    }


def test_a_shape_has_a_line_for_each_ledger_and_says_who_did_not_run() -> None:
    both = figures()
    both["arms"] |= {f"{name}_broken": arm for name, arm in both["arms"].items() if name != "floor"}
    told = StringIO()
    Console(width=200, file=told).print(table_of({"plain": both, "wide": figures()}))
    first, second, third = [line for line in told.getvalue().splitlines() if "1.25" in line]
    assert "plain" in first and "one row of a hundred wrong" in second and "wide" in third
    assert all("not run" in line and "1,234" in line for line in (first, second, third))


def test_shapes_that_are_not_measured_again_stay_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.shapes.FIGURES", tmp_path / "shapes.json")
    assert measured_before() == {}
    (tmp_path / "shapes.json").write_text(json.dumps({"shapes": {"plain": figures()}, "problems": [], "seconds": 9}))
    assert measured_before() == {"plain": figures()}
