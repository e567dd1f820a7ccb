"""Which records of the progress topic prove that an action was published: only ours, whatever else stands there."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.compensation.plan import Plan, PlanItem
from tallystick.compensation.progress_record import (
    ExecutorKey,
    ProgressFound,
    action_of_key,
    judge_progress,
    progress_record,
    read_record,
    sealed_plans,
    topics_of,
)
from tests.planned_items import ITEM

KEY = ExecutorKey(b"k" * 32)
OTHER = replace(ITEM, action_id=UUID(int=2), match_key="ev-2")
PLAN = Plan(contract="payouts", contract_fingerprint="f", cut_n=4, dry_run=False, items=(ITEM, OTHER), left_out=())
NEXT = replace(PLAN, cut_n=5)
WITHOUT = replace(PLAN, items=(OTHER,))
PUBLISHED, NOTHING = ProgressFound(published=True), ProgressFound()


def sealed(item: PlanItem = ITEM, *, plan: Plan = PLAN, key: ExecutorKey = KEY, reopened: int = 0) -> bytes:
    return progress_record(key, plan, item, reopened=reopened)[1]


def with_fields(**fields: Any) -> bytes:
    return json.dumps(json.loads(sealed()) | fields).encode()


def without_seal() -> bytes:
    """As release 0.1.0 wrote it."""
    value = json.loads(sealed())
    del value["seal"]
    return json.dumps(value).encode()


def judged(*values: bytes, first_offset: int = 7, **how: Any) -> ProgressFound:
    records = [read_record("progress[0]", first_offset + n, value) for n, value in enumerate(values)]
    return judge_progress(ITEM, records, **{"key": KEY, "planned": topics_of([PLAN, NEXT, WITHOUT])} | how)


def test_a_record_of_ours_proves_that_its_action_was_published_and_no_record_proves_nothing() -> None:
    assert judged(sealed()) == PUBLISHED
    assert judged() == NOTHING


def test_a_plan_of_before_that_has_the_same_action_counts_too() -> None:
    assert judged(sealed(plan=NEXT)) == PUBLISHED


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "has no value, so it deletes what stood before"),
        (b"hello", "is none that an executor writes"),
        (b"{}", "is none that an executor writes"),
        (b"[]", "is none that an executor writes"),
        (b"null", "is none that an executor writes"),
        (b"\xff\xfe", "is none that an executor writes"),
        (b'{"zz":' + b"[" * 2000 + b"]" * 2000 + b"}", "is none that an executor writes"),
        (
            b'{"zz":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "has 200,007 bytes, and no executor writes more than 4,096",
        ),
        (with_fields(plan_id=7), "is none that an executor writes"),
        (with_fields(seal="\u00e9"), "not the seal of this store's executor for it"),
        (without_seal(), "no seal of an executor, as anybody may write it, and release 0.1.0 did"),
        (with_fields(plan_hash="0" * 64), "not the seal of this store's executor for it"),
        (with_fields(plan_id=str(NEXT.plan_id)), "not the seal of this store's executor for it"),
        (with_fields(topic="anything"), "not the seal of this store's executor for it"),
        (sealed(OTHER), "not the seal of this store's executor for it"),
        (sealed(key=ExecutorKey(b"x" * 32)), "not the seal of this store's executor for it"),
        (sealed(reopened=1), "not the seal of this store's executor for it"),
        (sealed(replace(ITEM, topic="anything")), "names another topic than payouts"),
        (sealed(plan=WITHOUT), f"names plan {WITHOUT.plan_id}, which has no such action"),
        (sealed(plan=replace(PLAN, cut_n=9)), "which an executor of this store has carried out and the store does not"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_any_other_record_under_its_key_is_named_with_its_place_and_proves_nothing(value: bytes, says: str) -> None:
    found = judged(value)
    assert not found.published
    assert found.doubt.startswith("progress[0] at 7 has the action's key and ")
    assert says in found.doubt


def test_one_that_counts_proves_it_whatever_stands_before_or_behind_it() -> None:
    for values in ((b"hello", sealed()), (sealed(), b""), (without_seal(), sealed(), with_fields(topic="x"))):
        assert judged(*values) == PUBLISHED


def test_the_last_one_that_does_not_count_is_named() -> None:
    assert "at 8 has the action's key and has no value" in judged(b"hello", b"").doubt


def test_what_a_person_has_looked_at_is_void_and_what_comes_later_is_not() -> None:
    assert judged(b"hello", sealed(), void_before=9) == NOTHING
    assert judged(b"hello", void_before=8) == NOTHING
    assert "at 8" in judged(b"hello", b"hello", void_before=8).doubt
    assert judged(b"hello", sealed(), void_before=8) == PUBLISHED


def test_a_record_of_before_an_action_was_reopened_counts_no_more_but_a_person_has_to_look() -> None:
    assert "not the seal of this store's executor for it" in judged(sealed(), reopened=1).doubt
    assert judged(sealed(reopened=1), reopened=1) == PUBLISHED


def test_only_plans_that_a_seal_stands_for_are_looked_up() -> None:
    values = (sealed(), sealed(plan=NEXT), with_fields(plan_id=str(WITHOUT.plan_id)), b"hello", without_seal())
    records = [read_record("progress[0]", n, value) for n, value in enumerate(values)]
    assert sealed_plans(records, KEY, ITEM.action_id, reopened=0) == {PLAN.plan_id, NEXT.plan_id}


@pytest.mark.parametrize(
    "key", [b"", b"hello", b"\xff" * 36, str(UUID(int=255)).upper().encode(), UUID(int=1).hex.encode(), b"{}"], ids=repr
)
def test_a_key_that_no_executor_writes_is_about_no_action(key: bytes) -> None:
    assert action_of_key(key) is None


def test_the_key_of_a_record_of_ours_names_its_action() -> None:
    assert action_of_key(progress_record(KEY, PLAN, ITEM, reopened=0)[0]) == ITEM.action_id


@given(st.binary(max_size=100) | st.text(max_size=50).map(json.dumps).map(str.encode))
def test_no_bytes_without_the_executors_key_count_or_raise(value: bytes) -> None:
    found = judged(value)
    assert not found.published
    assert found.doubt


def said(value: bytes) -> dict[str, Any]:
    """The record's fields. A letter of a UUID may be large or small: it is the same one (RFC 9562, section 4)."""
    document: dict[str, Any] = json.loads(value)
    return {**document, "plan_id": UUID(document["plan_id"])}


@given(st.integers(0, len(sealed()) - 1), st.integers(1, 255))
@example(sealed().index(b"5bf0") + 1, ord("b") ^ ord("B"))
def test_no_record_of_ours_that_was_changed_in_one_byte_counts_for_another_action_or_topic(n: int, by: int) -> None:
    """Only spaces between its fields may differ, and how a letter is written."""
    value = bytearray(sealed())
    value[n] ^= by
    if judged(bytes(value)).published:
        assert said(bytes(value)) == said(sealed())


def test_a_key_is_not_shown() -> None:
    assert "k" * 8 not in repr(KEY)


def test_a_record_of_ours_has_no_problem_and_one_of_the_greatest_length_is_read() -> None:
    assert read_record("progress[0]", 7, sealed()).problem == ""
    assert read_record("progress[0]", 7, b"x" * 4_096).problem == "is none that an executor writes"
    assert read_record("progress[0]", 7, b"x" * 4_097).problem.startswith("has 4,097 bytes")


def test_the_first_record_of_a_partition_counts() -> None:
    assert judged(sealed(), first_offset=0) == PUBLISHED
    assert judged(sealed(), first_offset=0, void_before=1) == NOTHING
