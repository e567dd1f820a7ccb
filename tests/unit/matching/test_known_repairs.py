"""A header or a column counts as our repair only where the store knows the action, and what it was to do."""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.kafka_log.log_walk import Outcome
from tallystick.matching.known_repairs import action_ids_of, believed_records, believed_rows, repairs_by_id
from tallystick.matching.match_case import LookupHit, RecordLocation
from tallystick.model.break_history import KnownRepair
from tallystick.model.open_item import ItemSide
from tests.unit.builders import TOPIC, event, record_of

ACTION = "130e5ce5-6658-50c6-8945-99b412ca8480"
ANOTHER = "7b0e5ce5-6658-50c6-8945-99b412ca8480"
REPUBLISHED = KnownRepair(action_id=ACTION, kind="republish", match_key="ev-1", topic=TOPIC, reverses="")
REVERSED = replace(REPUBLISHED, kind="reverse", reverses=event(9).item_id)
NEGATED = replace(REVERSED, amounts_minor=(-1_000,))
POSTED = replace(REPUBLISHED, kind="post")
COUNTERPOSTED = replace(REPUBLISHED, kind="counterpost", reverses="ledger:7")


def record(action_id: str = ACTION, reverses: str = "", **changes: Any) -> Any:
    headers = {"tallystick-action-id": action_id, "service": "s"} if action_id else {"service": "s"}
    return replace(record_of(event(20)), headers=headers, reverses=reverses, **changes)


@pytest.mark.parametrize(
    ("said", "known", "is_ours"),
    [
        (record(), REPUBLISHED, True),
        (record(ANOTHER), REPUBLISHED, False),
        (record("a-1"), REPUBLISHED, False),
        (record(), replace(REPUBLISHED, match_key="ev-2"), False),
        (record(), replace(REPUBLISHED, topic="billing.fees"), False),
        (record(), replace(REPUBLISHED, topic="billing.fees", kind="trigger"), True),
        (record(reverses=event(9).item_id), REVERSED, True),
        (record(reverses=event(8).item_id), REVERSED, False),
        (record(reverses=event(9).item_id, amount_minor=-1_000), NEGATED, True),
        (record(reverses=event(9).item_id, amount_minor=1_000), NEGATED, False),
        (record(reverses=event(9).item_id, amount_minor=None), NEGATED, False),
        (record(), REVERSED, False),
        (record(reverses=event(9).item_id), REPUBLISHED, False),
        (record("", reverses=event(9).item_id), REVERSED, False),
    ],
)
def test_a_record_is_our_repair_by_what_its_action_was_to_do(said: Any, known: KnownRepair, is_ours: bool) -> None:
    found = believed_records({said.item_id: said}, repairs_by_id([known]))
    if is_ours:
        assert (found.records, found.forged) == ({said.item_id: said}, ())
        return
    (left,) = found.records.values()
    assert (left.action_id, left.reverses, left.header("service")) == ("", "", "s")
    assert found.forged == (said.item_id,)


def test_an_ordinary_record_is_none_and_an_aborted_forgery_is_nothing_to_tell() -> None:
    plain, aborted = record(""), record(outcome=Outcome.ABORTED)
    assert believed_records({plain.item_id: plain}, {}).forged == ()
    found = believed_records({aborted.item_id: aborted}, {})
    assert (found.forged, found.records[aborted.item_id].action_id) == ((), "")


def test_a_run_of_a_release_that_kept_no_actions_is_judged_as_it_was_then() -> None:
    said, row = record(), row_of(action_id=ACTION)
    assert believed_records({said.item_id: said}, None).records == {said.item_id: said}
    assert believed_rows({"ev-1": (row,)}, None).lookup_hits == {"ev-1": (row,)}


def row_of(**detail: str) -> LookupHit:
    return LookupHit(
        side=ItemSide.LEDGER, place=RecordLocation.SLICE, item_id="ledger:8", detail={"transaction_id": 3} | detail
    )


@pytest.mark.parametrize(
    ("row", "known", "is_ours"),
    [
        (row_of(action_id=ACTION), POSTED, True),
        (row_of(action_id=ACTION), replace(POSTED, match_key="ev-2"), False),
        (row_of(action_id=ANOTHER), POSTED, False),
        (row_of(action_id=ACTION, reverses="ledger:7"), COUNTERPOSTED, True),
        (row_of(action_id=ACTION, reverses="ledger:6"), COUNTERPOSTED, False),
        (row_of(reverses="ledger:7"), POSTED, True),
        (row_of(), POSTED, True),
    ],
    ids=["ours", "another key", "unknown", "takes back", "takes another one back", "the owner's own", "ordinary"],
)
def test_a_row_is_our_repair_by_what_its_action_was_to_do(row: LookupHit, known: KnownRepair, is_ours: bool) -> None:
    found = believed_rows({"ev-1": (row,)}, repairs_by_id([known]))
    (left,) = found.lookup_hits["ev-1"]
    if is_ours:
        assert (left, found.forged) == (row, ())
        return
    assert "action_id" not in left.detail
    assert left.detail.get("reverses") == row.detail.get("reverses")
    assert found.forged == ("ledger:8",)


def test_forged_rows_of_all_keys_are_told_once_each_and_in_order() -> None:
    forged, other = row_of(action_id=ANOTHER), replace(row_of(action_id=ANOTHER), item_id="ledger:7")
    found = believed_rows({"ev-1": (forged, row_of()), "ev-2": (other,), "ev-3": (forged,)}, repairs_by_id([POSTED]))
    assert found.forged == ("ledger:7", "ledger:8")


def test_only_what_names_an_action_is_asked_for() -> None:
    records = {"a": record(), "b": record("")}
    assert action_ids_of(records, {"ev-1": (row_of(action_id=ANOTHER), row_of())}) == {ACTION, ANOTHER}
