"""The story of a break: every figure that proves it, in sentences, and nothing that a stranger could smuggle in."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tallystick.documents.run import story_document
from tallystick.model.break_history import EarlierRepair
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.report.break_story import explain, tell_breaks
from tallystick.text.finding_guide import BREAK_TEXTS
from tallystick.text.ruled_out import RULED_OUT
from tests.unit.builders import NOON
from tests.unit.report.told_breaks import a_break, item, sentences, told

COPY = {
    "at": "topic:billing.payouts:0:17",
    "producer_id": 4001,
    "producer_epoch": 3,
    "sequence": 5,
    "transactional": True,
    "outcome": "committed",
    "session": "relay-2",
    "source": "in:0:4",
    "span": {
        "first_offset": 15,
        "first_is_certain": True,
        "marker": "commit",
        "marker_offset": 18,
        "marker_epoch": 4,
        "marker_timestamp_ms": 1_772_366_400_000,
    },
}
ORIGINAL = COPY | {"at": "topic:billing.payouts:0:11", "producer_id": -1, "transactional": False, "span": None}


def test_a_story_names_money_offsets_epochs_markers_and_times() -> None:
    found = a_break(
        at="topic:billing.payouts:0:17",
        original="topic:billing.payouts:0:11",
        partner="ledger:815",
        copy_identity=COPY,
        original_identity=ORIGINAL,
        found_elsewhere=[
            {"at": "ledger:816", "place": "earlier_slice", "transaction_id": 5012},
            {"at": "topic:billing.payouts:0:9", "place": "aborted", "producer_id": 4001, "producer_epoch": 2},
        ],
    )
    story = explain(told(found))
    assert (story.title, story.run, story.amount) == (
        "Duplicate in topic: input handled twice",
        "billing_payouts/3",
        "1,234.56 EUR",
    )
    assert sentences(story) == {
        "What happened": ("It stands twice.", BREAK_TEXTS[found.break_class].means),
        "At stake": ("1,234.56 EUR: match key ev-1, leg payout of pay-1.",),
        "What the ledger says": (
            "It is paired with row 815.",
            "Row 816 was read by an earlier cut, written by database transaction 5012.",
        ),
        "What the log says": (
            "The copy in question is offset 17 of billing.payouts[0].",
            "The copy that it repeats is offset 11 of billing.payouts[0].",
            "Offset 9 of billing.payouts[0] was aborted, written by producer 4001 epoch 2.",
            "The topic could be read completely up to 2026-03-01 12:00:30 UTC.",
        ),
        "Writers": (
            "Offset 17 of billing.payouts[0] was written by producer 4001, epoch 3, sequence 5, inside a producer "
            "transaction (committed); session relay-2, source in:0:4.",
            "That transaction begins at offset 15 and ends with the commit marker at offset 18, epoch 4, "
            "at 2026-03-01 12:00:00 UTC by the leader's clock.",
            "Offset 11 of billing.payouts[0] was written by a producer without idempotence, so without a producer id; "
            "session relay-2, source in:0:4.",
        ),
        "What was ruled out": RULED_OUT[found.break_class],
        "History": (
            "It was proven by run billing_payouts/3, for 2026-03-01 11:00:00 to 12:00:00 UTC, judged as of "
            "2026-03-01 12:01:00 UTC.",
        ),
        "Check first": (BREAK_TEXTS[found.break_class].check_first,),
    }


def test_a_life_is_told_from_first_sight_to_its_end() -> None:
    story = explain(
        told(
            a_break(),
            item(ItemState.OPEN, "within the partner's grace"),
            item(ItemState.BROKEN, "phantom_in_topic"),
            item(ItemState.CLEARED, "its partner came", cleared_by="ledger:9"),
        )
    )
    assert sentences(story)["History"][1:] == (
        "Offset 17 of billing.payouts[0] was first seen by cut 2, marked at 2026-03-01 12:00:00 UTC, and due at "
        "2026-03-01 12:01:00 UTC.",
        "Cut 2, at 2026-03-01 12:00:00 UTC, left it open: within the partner's grace.",
        "Cut 3, at 2026-03-01 13:00:00 UTC, found it broken: phantom_in_topic.",
        "Cut 4, at 2026-03-01 14:00:00 UTC, cleared it: its partner came (by row 9).",
    )


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (
            {"first_offset": 15, "first_is_certain": False, "marker": None},
            "That transaction is seen from offset 15 and has not ended on this partition.",
        ),
        (
            {
                "first_offset": 15,
                "first_is_certain": True,
                "marker": "abort",
                "marker_offset": 20,
                "marker_epoch": 4,
                "marker_timestamp_ms": -1,
            },
            "That transaction begins at offset 15 and ends with the abort marker at offset 20, epoch 4.",
        ),
    ],
    ids=["open", "aborted, without a time"],
)
def test_a_transaction_is_told_by_how_it_ended(span: dict[str, Any], expected: str) -> None:
    story = explain(told(a_break(identity=COPY | {"span": span})))
    assert sentences(story)["Writers"][1] == expected


def test_a_writer_that_left_the_log_is_said_to_be_unknown() -> None:
    story = explain(told(a_break(copy_identity=COPY | {"span": None}, original_identity=None)))
    assert sentences(story)["Writers"][-1] == "The writer of the other copy is not known: the copy had left the log."


def test_a_story_says_how_many_copies_it_does_not_name() -> None:
    in_part, whole = (sentences(explain(told(one))) for one in (a_break(found_elsewhere_unnamed=1_980), a_break()))
    assert "1,980 more copies of its key were found and are not listed here" in in_part["At stake"][1]
    assert len(whole["At stake"]) == 1


def test_every_leg_of_a_torn_transaction_names_its_place_and_its_writer() -> None:
    found = a_break(
        BreakClass.TORN_TRANSACTION,
        seen_legs={"payout": "topic:billing.payouts:0:17"},
        identities={"topic:billing.payouts:0:17": COPY},
    )
    story = sentences(explain(told(found)))
    assert "Its payout leg is offset 17 of billing.payouts[0]." in story["What the log says"]
    assert story["Writers"][0].startswith("Offset 17 of billing.payouts[0] was written by producer 4001")


def test_a_strangers_text_cannot_drive_a_terminal() -> None:
    hostile = "\x1b[31m\u202e"
    found = replace(
        a_break(at=f"topic:{hostile}:0:1", identity=COPY | {"session": hostile}, seen_legs={hostile: hostile}),
        match_key=hostile,
        story=hostile,
    )
    text = repr(explain(told(found, item(ItemState.OPEN, hostile))))
    assert "\x1b" not in text
    assert "\\x1b" not in text
    assert "\u202e" not in text


def test_a_story_about_an_input_topic_speaks_of_inputs_and_offsets() -> None:
    at = {"at": "topic:billing.payouts:0:17", "found_elsewhere": [{"at": "ledger:billing.in:1:4", "place": "pending"}]}
    of_rows = told(a_break(BreakClass.PHANTOM_IN_TOPIC, **at))
    of_inputs = sentences(explain(replace(of_rows, of_inputs=True)))
    assert any("input topic" in one for one in of_inputs["What was ruled out"])
    assert "Offset 4 of billing.in[1] lies beyond this cut." in of_inputs["What the input topic says"]
    assert "What the ledger says" in sentences(explain(of_rows))


def test_a_report_tells_the_steps_of_its_own_run(broken_run: StoredRun) -> None:
    first = broken_run.result.breaks[0]
    mine, other = item(ItemState.BROKEN), replace(item(ItemState.BROKEN), break_id=UUID(int=999))
    run = replace(
        broken_run,
        result=replace(
            broken_run.result,
            items=(replace(mine, break_id=first.break_id), other),
            look_ups={"topic_settled_until_utc": "2026-03-01T12:00:00+00:00", "ledger_settled_until_utc": None},
        ),
    )
    found = tell_breaks(run, [first])[first.break_id]
    assert [(step.cut_n, step.item.break_id) for step in found.life] == [(7, first.break_id)]
    assert (found.topic_settled_until_utc, found.ledger_settled_until_utc) == (NOON, None)


def test_a_story_for_machines_has_the_sentences_and_the_life() -> None:
    document = story_document(told(a_break(), item(ItemState.BROKEN, "why")))
    assert document["run"] == "billing_payouts/3"
    assert document["paragraphs"][0]["heading"] == "What happened"
    assert document["life"] == [
        {
            "cut": 2,
            "judged_as_of_utc": "2026-03-01T12:00:00Z",
            "item_id": "topic:billing.payouts:0:17",
            "state": "broken",
            "reason": "why",
            "cleared_by": "",
            "written_off": None,
        }
    ]


def test_an_earlier_repair_of_the_key_is_told_beside_the_writers() -> None:
    repair = EarlierRepair(action_id=UUID(int=9), break_class=BreakClass.MISSING_IN_LEDGER, done_utc=NOON)
    plain = told(a_break(BreakClass.DUPLICATE_IN_LEDGER, at="ledger:8"))
    sentence = (
        "Compensation 00000000-0000-0000-0000-000000000009 repaired missing_in_ledger of this key, done by "
        "2026-03-01 12:00:00 UTC: one copy may be ours, and another the late original."
    )
    assert sentences(explain(replace(plain, repairs=(repair,))))["Writers"] == (sentence,)
    assert "Writers" not in sentences(explain(plain))


def test_a_sentence_of_ours_is_told_to_its_end_and_a_strangers_text_is_not() -> None:
    long = "It names " + ", ".join(f"offset {n}" for n in range(60)) + " and 7 more."
    found = replace(a_break(), story=long, match_key="k" * 400)
    heard = sentences(explain(told(found, item(ItemState.BROKEN))))
    assert heard["What happened"][0] == long
    assert "(400 characters)" in heard["At stake"][0]
