"""What `make adopt` tried is a row for each combination; a command that fails is told with its last lines."""

import sys

import pytest
from adopt import table
from adopter import AdoptionFailed, run


def test_a_combination_is_a_row_and_what_was_not_tried_says_so() -> None:
    old, new = {"python": "3.11", "airflow": "3.2.2"}, {"python": "3.13", "airflow": "3.3.2", "pyspark": "4.1.4"}
    tried: list[dict[str, object]] = [
        {"what": "pip install", "versions": old, "ok": False, "seconds": 1, "said": ""},
        {"what": "pip install", "versions": new, "ok": True, "seconds": 1, "said": ""},
        {"what": "pip check", "versions": new, "ok": True, "seconds": 1, "said": ""},
    ]
    assert table(tried).splitlines()[2:] == [
        "| 3.11 | 3.2.2 | **no** |  | not tried |",
        "| 3.13 | 3.3.2 | yes | 4.1.4 | yes |",
    ]


def test_a_command_that_fails_is_told_and_one_that_may_end_so_is_not() -> None:
    command = [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"]
    with pytest.raises(AdoptionFailed, match="ended with 3: the reason"):
        run(command)
    assert run(command, codes=(0, 3)) == "the reason\n"


def test_no_command_knows_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "checkout")
    assert run([sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"]) == "None\n"
