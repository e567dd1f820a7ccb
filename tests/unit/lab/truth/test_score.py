"""The lab's score can fail: what is missed, invented, called otherwise or counted wrong is told, nothing else is."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from lab.faults.event_faults import after_retention
from lab.faults.log_fault_books import CLUSTER_FAULTS, LOG_FAULTS
from lab.faults.stranger_book import offset_named
from lab.rounds.begun_book import standing
from lab.rounds.mixed_round import FAULTS_BY_BOOK, JUDGED_FAULTS, SEEDS_FOR_ALL, draw_cluster_faults, draw_faults
from lab.services.event import Leg, Payment
from lab.truth.score import Counts, Finding, FindingKind, Score, score, verdict_faults
from lab.truth.stored_findings import records_finding, verdict_findings
from tallystick.executor.effects.action_log import LOOK

STRANGERS = {"stranger_among_payouts", "stranger_among_payments", "stranger_at_repairs"}
PAID, OTHER = (
    Payment(payment_id=UUID(int=number), amount_minor=100, currency="EUR", occurred_at=datetime(2026, 3, 1, tzinfo=UTC))
    for number in (1, 2)
)
MISSING = Finding(contract="payouts", kind=FindingKind.BREAK, name="missing_in_topic_never_produced", subject="pay-7")
DOUBLED = Finding(contract="payouts", kind=FindingKind.BREAK, name="duplicate_in_ledger", subject="pay-8", copies=2)
HELD = Finding(contract="payouts", kind=FindingKind.DOUBT, name="held_by_open_transaction", subject="payouts[1]")


def test_what_was_planted_and_nothing_else_agrees() -> None:
    result = score([MISSING, DOUBLED, HELD], [HELD, DOUBLED, MISSING])
    assert result.total == Counts(planted=4, found=4)
    assert result.total.agrees
    assert result.differs == ()


def test_what_is_not_reported_is_missed() -> None:
    result = score([MISSING, HELD], [HELD])
    assert result.by_class[MISSING.name] == Counts(planted=1, missed=1)
    assert result.differs == ("payouts: missing_in_topic_never_produced of pay-7 was planted and not found",)


@pytest.mark.parametrize("invented", [MISSING, HELD, replace(HELD, kind=FindingKind.NOTICE, name="timestamp_skew")])
def test_what_nobody_planted_is_false(invented: Finding) -> None:
    result = score([], [invented])
    assert result.by_class == {invented.name: Counts(false=1)}
    assert not result.total.agrees


def test_another_class_for_the_same_event_is_misclassified_under_the_planted_one() -> None:
    result = score([MISSING], [replace(MISSING, name="missing_in_topic_aborted_only")])
    assert result.by_class == {MISSING.name: Counts(planted=1, misclassified=1)}
    assert "was planted and called missing_in_topic_aborted_only" in result.differs[0]


def test_the_class_of_another_event_or_contract_is_missed_and_false() -> None:
    for other in (replace(MISSING, subject="pay-9"), replace(MISSING, contract="payments")):
        assert score([MISSING], [other]).by_class[MISSING.name] == Counts(planted=1, missed=1, false=1)


def test_a_second_class_for_an_event_that_was_found_is_false() -> None:
    second = replace(MISSING, name="phantom_in_ledger")
    assert score([MISSING], [MISSING, second]).total == Counts(planted=1, found=1, false=1)


@pytest.mark.parametrize(
    ("copies", "counts"),
    [
        (1, Counts(planted=2, found=1, missed=1)),
        (2, Counts(planted=2, found=2)),
        (4, Counts(planted=2, found=2, false=2)),
    ],
)
def test_copies_are_counted(copies: int, counts: Counts) -> None:
    assert score([DOUBLED], [replace(DOUBLED, copies=copies)]).total == counts


def test_copies_found_one_by_one_add_up() -> None:
    one = replace(DOUBLED, copies=1)
    assert score([DOUBLED], [one, one]).total == Counts(planted=2, found=2)


def test_a_doubt_that_stays_for_two_windows_is_one() -> None:
    assert score([HELD], [HELD, HELD]).total == Counts(planted=1, found=1)


def test_a_doubt_about_another_partition_is_missed_and_false() -> None:
    assert score([HELD], [replace(HELD, subject="payouts[0]")]).total == Counts(planted=1, missed=1, false=1)


def test_the_truth_may_leave_the_place_open() -> None:
    anywhere = replace(HELD, subject="")
    assert score([anywhere], [HELD, replace(HELD, subject="payouts[0]")]).total == Counts(planted=1, found=1)
    assert score([anywhere], []).total == Counts(planted=1, missed=1)


def test_evidence_must_say_what_the_truth_says() -> None:
    across = replace(MISSING, proof={"across_windows": True})
    assert score([across], [replace(across, proof={"across_windows": True, "at": "topic:0:7"})]).total.agrees
    for proof in ({}, {"across_windows": False}):
        assert score([across], [replace(across, proof=proof)]).total == Counts(planted=1, misclassified=1)


def test_an_item_that_is_called_undecidable_is_found_only_where_the_truth_says_so() -> None:
    shrug = Finding(contract="payouts", kind=FindingKind.UNDECIDABLE, name="undecidable", subject="pay-7")
    assert score([shrug], [shrug]).total.agrees
    assert score([MISSING], [shrug]).by_class == {MISSING.name: Counts(planted=1, misclassified=1)}
    assert score([shrug], [MISSING]).by_class == {"undecidable": Counts(planted=1, misclassified=1)}


def test_what_a_fault_brings_with_it_may_be_told_and_need_not() -> None:
    brought = Finding(contract="payouts", kind=FindingKind.DOUBT, name="partner_not_settled")
    allowed = {("payouts", "partner_not_settled")}
    assert score([HELD], [HELD, brought], allowed=allowed).total.agrees
    assert score([HELD], [HELD], allowed=allowed).total.agrees
    elsewhere = replace(brought, contract="clean")
    assert score([HELD], [HELD, elsewhere], allowed=allowed).by_class["partner_not_settled"] == Counts(false=1)


def test_an_event_that_a_repair_wrote_is_counted_by_a_reader_of_its_own() -> None:
    events = [PAID.event(Leg.PAYOUT), OTHER.event(Leg.PAYOUT)]
    once, other = (str(event.event_id) for event in events)
    planted = standing("payouts", events, {once: 1, other: 1})
    assert score(planted, standing("payouts", events, Counter({once: 1, other: 1}))).total == Counts(planted=2, found=2)
    for copies, total in ((2, Counts(planted=2, found=2, false=1)), (0, Counts(planted=2, found=1, missed=1))):
        assert score(planted, standing("payouts", events, Counter({once: copies, other: 1}))).total == total


def test_records_that_a_doubt_counts_add_up_and_each_of_them_is_scored() -> None:
    two, three = (records_finding("payouts", "unreadable_payload", records) for records in (2, 3))
    assert score([two, three], [three, two]).total == Counts(planted=5, found=5)
    assert score([two, three], [three]).total == Counts(planted=5, found=3, missed=2)
    assert score([two], [three]).total == Counts(planted=2, found=2, false=1)


def test_of_a_verdict_doubts_notices_and_the_records_that_doubts_count_are_found() -> None:
    doubts = [
        {"doubt": "unreadable_payload", "details": {"records": 3, "places": []}},
        {"doubt": "forged_repair", "details": {"copies": 2, "places": []}},
        {"doubt": "held_by_open_transaction", "details": {"topic": "payouts", "partition": 1, "records": 9}},
    ]
    row = {"contract": "payouts", "doubts": doubts, "notices": [{"notice": "timestamp_skew", "details": {}}]}
    assert [(one.kind, one.name, one.subject, one.copies) for one in verdict_findings(row)] == [
        (FindingKind.DOUBT, "unreadable_payload", "", 1),
        (FindingKind.DOUBT, "forged_repair", "", 1),
        (FindingKind.DOUBT, "held_by_open_transaction", "payouts[1]", 1),
        (FindingKind.NOTICE, "timestamp_skew", "", 1),
        (FindingKind.RECORD, "unreadable_payload_record", "", 3),
        (FindingKind.RECORD, "forged_repair_record", "", 2),
    ]


@pytest.mark.parametrize(
    ("reason", "kafka_offset"),
    [
        (f"{LOOK}: tallystick.compensation.payouts[0] at 17 has the action's key and no seal of an executor", 17),
        (f"{LOOK}: payouts[0] at 17 has the action's header and does not say what the plan says", None),
        (f"{LOOK}: an earlier start has begun it, and records below 17 were deleted since", None),
        ("the event stands: payouts[0] at 17", None),
    ],
)
def test_a_refusal_counts_as_the_strangers_doing_by_the_record_that_it_names(
    reason: str, kafka_offset: int | None
) -> None:
    assert offset_named(reason) == kafka_offset


def test_a_copy_of_what_retention_took_has_no_cause_and_any_other_finding_keeps_its_name() -> None:
    again = replace(MISSING, name="duplicate_in_topic_reprocessed", proof={"across_windows": True})
    assert after_retention(again) == replace(again, name="duplicate_in_topic_cause_unknown")
    for other in (MISSING, HELD, replace(again, proof={}), replace(again, name="duplicate_in_ledger")):
        assert after_retention(other) == other


def test_rounds_add_up() -> None:
    both = score([MISSING], [MISSING]) + score([MISSING, HELD], [HELD])
    assert both.by_class == {MISSING.name: Counts(planted=2, found=1, missed=1), HELD.name: Counts(planted=1, found=1)}
    assert len(both.differs) == 1
    assert sum((both, both), Score()).total.planted == 6


def test_clean_contracts_must_be_matched_each_time_and_broken_ones_broken_once() -> None:
    ended = {"clean": ["MATCHED", "MATCHED"], "payouts": ["BROKEN", "MATCHED"], "reads": ["INCONCLUSIVE"]}
    assert verdict_faults(ended, clean={"clean"}, broken={"payouts"}) == []
    assert len(verdict_faults(ended | {"clean": ["MATCHED", "INCONCLUSIVE"]}, clean={"clean"}, broken=set())) == 1
    assert len(verdict_faults(ended | {"clean": []}, clean={"clean"}, broken=set())) == 1
    assert len(verdict_faults(ended, clean=set(), broken={"reads"})) == 1
    assert len(verdict_faults({}, clean={"clean"}, broken={"payouts"})) == 2


@pytest.mark.parametrize("first_seed", range(1, 21))
def test_five_seeds_in_a_row_draw_every_fault_and_each_round_has_plenty(first_seed: int) -> None:
    rounds = [draw_faults(seed) for seed in range(first_seed, first_seed + SEEDS_FOR_ALL)]
    drawn = {draw.fault.name for each in rounds for draw in each.draws}
    assert drawn == {fault.name for faults in FAULTS_BY_BOOK.values() for fault in faults}
    assert {fault.name for each in rounds for fault in each.log_faults} == {
        fault.name for fault in (*LOG_FAULTS, *JUDGED_FAULTS)
    }
    assert min(len(each) for each in rounds) >= 8
    for each in rounds:
        drawn_here = [draw.fault for draw in each.draws] + [*each.log_faults]
        assert {fault.name for fault in drawn_here} >= STRANGERS
    on_three_brokers = [draw_cluster_faults(seed) for seed in range(first_seed, first_seed + SEEDS_FOR_ALL)]
    drawn = {fault.name for each in on_three_brokers for fault in each.log_faults}
    assert drawn == {fault.name for fault in CLUSTER_FAULTS}


@pytest.mark.parametrize("seed", range(1, 21))
def test_where_retention_takes_what_was_judged_copies_of_it_are_sent_again(seed: int) -> None:
    drawn = draw_faults(seed)
    sent_again = {draw.fault.name for draw in drawn.draws if draw.fault.sends_again}
    assert not drawn.retention or sent_again == {"payout_again_next_window", "payment_again_next_window"}
    assert sum(draw_faults(other).retention for other in range(seed, seed + SEEDS_FOR_ALL)) == 2


def test_a_seed_draws_the_same_faults_again_and_another_seed_others() -> None:
    assert draw_faults(7) == draw_faults(7)
    assert draw_faults(7) != draw_faults(8)
