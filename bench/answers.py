"""What the measured seconds come to, and whether each answer is what was written. Pure: no clock, no file, no server.

An arm is what bench/arms.py returns, by name: `floor`, `raw`, `ours`, `naive`, `datacompy`, `duckdb`, `bare`, each but
the two floors also as `..._broken` on the table with wrong rows; `ours_planted` and `ours_doubled` on a few faults
among all rows; `command`, which has whole processes only.
A fast answer that is wrong counts for nothing, so `disagreements` holds each arm to what it can know: a join sees which
rows lack a partner and which pairs differ, but no key that stands equally often on both sides; `raw` knows whether it
has read all of both sides.
"""

from collections.abc import Mapping
from typing import Any

Arms = Mapping[str, Mapping[str, Any]]

_IN_SPARK = ("naive", "datacompy")
_OTHERS = (*_IN_SPARK, "duckdb", "bare")
_FLOORS = ("floor", "raw")
_NO_DIFFERENCE = {"missing_in_ledger": 0, "missing_in_topic": 0, "different": 0}
_CLASS_OF = {
    "missing_in_ledger": "missing_in_ledger",
    "missing_in_topic": "phantom_in_ledger",
    "different": "amount_mismatch",
}
"""What is called how by ours, of the kinds that bench/data_set.py writes."""


def ratios(arms: Arms) -> dict[str, float]:
    """Ours over each of the others that ran, by medians of warm runs; cold: whole processes. No unit.

    broken_over_agreeing: ours on the table with wrong rows, over ours on the one that agrees.
    """
    found = {}
    for suffix in ("", "_broken"):
        ours = arms.get(f"ours{suffix}")
        for other in (*_FLOORS, *(f"{name}{suffix}" for name in _OTHERS)):
            if ours is not None and other in arms:
                found[f"ours{suffix}_over_{other}"] = ours["warm_seconds"] / arms[other]["warm_seconds"]
    if "ours" in arms and "ours_broken" in arms:
        found["broken_over_agreeing"] = arms["ours_broken"]["warm_seconds"] / arms["ours"]["warm_seconds"]
    for program in ("ours", "command"):
        if program in arms and "naive" in arms:
            cold, of_naive = (arms[arm]["cold_process_seconds"] for arm in (program, "naive"))
            found[f"{program}_over_naive_cold"] = cold / of_naive
    return {name: round(value, 3) for name, value in found.items()}


def faster_than_ours(arms: Arms) -> list[str]:
    """Which of naive and datacompy was faster than ours on the same table, in a sentence each."""
    return [
        f"{other}: {arms[other]['warm_seconds']:.2f} s; ours needed {arms[f'ours{suffix}']['warm_seconds']:.2f} s"
        for suffix in ("", "_broken")
        for other in (f"{name}{suffix}" for name in _IN_SPARK)
        if other in arms and arms[other]["warm_seconds"] < arms[f"ours{suffix}"]["warm_seconds"]
    ]


def expected_answers(wrong_rows: Mapping[str, int], *, events: int, hot_key_copies: int) -> dict[str, Any]:
    """What each arm has to answer: ours by break class, a join by its three counts, raw by how much it read.

    wrong_rows: of the broken table, by kind. events: and so many rows in the table that agrees. hot_key_copies: so
    often one event stands on both sides, with which a join finds nothing wrong.
    """
    doubled = _duplicates(hot_key_copies)
    of_a_join = _NO_DIFFERENCE | dict(wrong_rows)
    swapped_and_moved = {"amount_mismatch": 3}
    return {
        "raw": {"unread_offsets": 0, "ledger_rows": events},
        "ours": doubled,
        "ours_broken": {_CLASS_OF[kind]: count for kind, count in wrong_rows.items()},
        "ours_planted": swapped_and_moved,
        "ours_doubled": swapped_and_moved | _duplicates(2),
        **dict.fromkeys(_OTHERS, _NO_DIFFERENCE),
        **{f"{name}_broken": of_a_join for name in _OTHERS},
    }


def disagreements(arms: Arms, expected: Mapping[str, Any]) -> list[str]:
    """What an arm answered that is not what was written, in a sentence each."""
    return [
        f"{name}: {arm['answer']}; expected {expected[name]}"
        for name, arm in arms.items()
        if "answer" in arm and not _answers(arm["answer"], expected[name])
    ]


def _answers(answer: Mapping[str, Any], expected: Mapping[str, int]) -> bool:
    if "verdict" not in answer:
        return dict(answer) == dict(expected)
    verdict = "BROKEN" if expected else "MATCHED"
    return (answer["verdict"], dict(answer["breaks"]), answer["doubts"]) == (verdict, dict(expected), [])


def _duplicates(copies: int) -> dict[str, int]:
    """A row that follows a doubled event is that event's duplicate, and no second break."""
    return {"duplicate_in_topic_new_session": copies - 1} if copies > 1 else {}
