"""A fast answer that is wrong counts for nothing; and which figure is divided by which."""

from typing import Any

import pytest

from bench.answers import disagreements, expected_answers, faster_than_ours, ratios

WRONG_ROWS = {"missing_in_ledger": 5, "missing_in_topic": 2, "different": 3}
NO_DIFFERENCE = {"missing_in_ledger": 0, "missing_in_topic": 0, "different": 0}


def by_ours(**breaks: int) -> dict[str, Any]:
    return {"verdict": "BROKEN" if breaks else "MATCHED", "breaks": breaks, "doubts": [], "digest": "d"}


RIGHT = {
    "floor": {"warm_seconds": 2.0},
    "raw": {"warm_seconds": 1.0, "answer": {"unread_offsets": 0, "ledger_rows": 900}},
    "ours": {"warm_seconds": 3.0, "cold_process_seconds": 12.0, "answer": by_ours()},
    "naive": {"warm_seconds": 8.0, "cold_process_seconds": 10.0, "answer": NO_DIFFERENCE},
    "datacompy": {"warm_seconds": 60.0, "answer": NO_DIFFERENCE},
    "duckdb": {"warm_seconds": 4.0, "answer": NO_DIFFERENCE},
    "bare": {"warm_seconds": 2.5, "answer": NO_DIFFERENCE},
    "command": {"cold_process_seconds": 13.0},
    "ours_broken": {
        "warm_seconds": 4.0,
        "answer": by_ours(missing_in_ledger=5, phantom_in_ledger=2, amount_mismatch=3),
    },
    "naive_broken": {"warm_seconds": 10.0, "answer": WRONG_ROWS},
    "datacompy_broken": {"warm_seconds": 80.0, "answer": WRONG_ROWS},
    "duckdb_broken": {"warm_seconds": 5.0, "answer": WRONG_ROWS},
    "bare_broken": {"warm_seconds": 3.2, "answer": WRONG_ROWS},
    "ours_planted": {"warm_seconds": 5.0, "answer": by_ours(amount_mismatch=3)},
    "ours_doubled": {"warm_seconds": 5.0, "answer": by_ours(amount_mismatch=3, duplicate_in_topic_new_session=1)},
}
EXPECTED = expected_answers(WRONG_ROWS, events=900, hot_key_copies=1)


def changed(name: str, **changes: Any) -> dict[str, Any]:
    return {**RIGHT, name: RIGHT[name] | changes}


def test_right_answers_disagree_with_nothing() -> None:
    assert disagreements(RIGHT, EXPECTED) == []


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ours", by_ours(amount_mismatch=1)),
        ("ours", by_ours() | {"verdict": "INCONCLUSIVE"}),
        ("ours", by_ours() | {"doubts": ["vacuous_run"]}),
        ("naive", NO_DIFFERENCE | {"different": 1}),
        ("datacompy", NO_DIFFERENCE | {"missing_in_topic": 1}),
        ("raw", {"unread_offsets": 1, "ledger_rows": 900}),
        ("raw", {"unread_offsets": 0, "ledger_rows": 899}),
        ("duckdb", NO_DIFFERENCE | {"missing_in_ledger": 1}),
        ("bare", {}),
        ("ours_broken", by_ours(missing_in_ledger=5, phantom_in_ledger=3, amount_mismatch=2)),
        ("naive_broken", WRONG_ROWS | {"different": 2}),
        ("datacompy_broken", NO_DIFFERENCE),
        ("duckdb_broken", WRONG_ROWS | {"different": 2}),
        ("bare_broken", NO_DIFFERENCE),
        ("ours_planted", by_ours(amount_mismatch=1)),
        ("ours_doubled", by_ours(amount_mismatch=3)),
    ],
)
def test_a_wrong_answer_is_told_with_what_was_written(name: str, answer: dict[str, Any]) -> None:
    (told,) = disagreements(changed(name, answer=answer), EXPECTED)
    assert told.startswith(f"{name}: ") and str(EXPECTED[name]) in told


def test_of_a_hot_key_ours_tells_each_copy_and_a_join_none() -> None:
    expected = expected_answers({}, events=900, hot_key_copies=100)
    arms = {
        "ours": {"answer": by_ours(duplicate_in_topic_new_session=99)},
        "naive": {"answer": NO_DIFFERENCE},
        "datacompy": {"answer": NO_DIFFERENCE},
    }
    assert disagreements(arms, expected) == []
    assert disagreements(arms | {"ours": {"answer": by_ours()}}, expected) != []


def test_each_arm_is_divided_by_what_read_the_same_table() -> None:
    assert ratios(RIGHT) == {
        "ours_over_floor": 1.5,
        "ours_over_raw": 3.0,
        "ours_over_naive": 0.375,
        "ours_over_datacompy": 0.05,
        "ours_over_duckdb": 0.75,
        "ours_over_bare": 1.2,
        "ours_broken_over_floor": 2.0,
        "ours_broken_over_raw": 4.0,
        "ours_broken_over_naive_broken": 0.4,
        "ours_broken_over_datacompy_broken": 0.05,
        "ours_broken_over_duckdb_broken": 0.8,
        "ours_broken_over_bare_broken": 1.25,
        "broken_over_agreeing": 1.333,
        "ours_over_naive_cold": 1.2,
        "command_over_naive_cold": 1.3,
    }


def test_an_arm_that_was_left_out_has_no_ratio() -> None:
    some = {name: RIGHT[name] for name in ("floor", "ours", "naive")}
    assert set(ratios(some)) == {"ours_over_floor", "ours_over_naive", "ours_over_naive_cold"}


def test_who_is_faster_than_ours_in_spark_is_named_and_bare_java_is_not() -> None:
    assert faster_than_ours(RIGHT) == []
    (told,) = faster_than_ours(changed("naive", warm_seconds=2.9))
    assert told == "naive: 2.90 s; ours needed 3.00 s"
    (told,) = faster_than_ours(changed("datacompy_broken", warm_seconds=3.9))
    assert told == "datacompy_broken: 3.90 s; ours needed 4.00 s"
