"""What is said of a whole class is true of each of its breaks, also of the odd ones."""

from dataclasses import replace

from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import BreakClass
from tallystick.report.break_story import explain
from tests.unit.anomalies.builders import COPY, ORIGINAL, by_action, doubled
from tests.unit.anomalies.planted import found_breaks
from tests.unit.builders import L2T, T2L, contract_of, event, evidence_of, record_of, row
from tests.unit.report.told_breaks import sentences, told


def story_of(evidence: Evidence, break_class: BreakClass) -> str:
    """All sentences about the one break of this class."""
    (one,) = [found for found in found_breaks(evidence) if found.break_class is break_class]
    return " ".join(sentence for said in sentences(explain(told(one))).values() for sentence in said)


def test_a_second_row_that_the_topic_followed_is_not_said_to_have_fewer_events() -> None:
    both_twice = evidence_of(row(1), row(2), event(11), event(12), direction=L2T)
    followed = story_of(both_twice, BreakClass.DUPLICATE_IN_LEDGER)
    assert "the other side followed it" in followed
    assert "than there are committed events" not in followed
    assert "fewer committed copies" not in followed
    alone = story_of(evidence_of(row(1), row(2), event(11), direction=T2L), BreakClass.DUPLICATE_IN_LEDGER)
    assert "the other side followed it" not in alone
    for story in (followed, alone):
        assert "The ledger holds more rows for the event than it should." in story
        assert "the topic has no other that it could follow, or it came after the row." in story


def test_copies_of_one_producer_id_are_not_said_to_have_two() -> None:
    records = [record_of(copy, producer_id=7) for copy in (ORIGINAL, COPY)]
    one_id = story_of(doubled(original=records[0], copy=records[1]), BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION)
    assert one_id.count("was written by producer 7, epoch 0, sequence 1") == 2
    assert "the copies do not share a producer id, epoch and sequence." in one_id
    assert "producer id and sequence of the copies differ" not in one_id


def test_an_action_that_stands_twice_beside_the_original_repeats_itself_and_not_the_original() -> None:
    copies = [event(11), event(12), event(13)]
    records = {copy.item_id: record_of(copy, producer_id=7) for copy in copies}
    ours = {copy.item_id: by_action(records[copy.item_id], "a-1") for copy in copies[1:]}
    evidence = evidence_of(row(1), *copies, record_origins=records | ours)
    twice = story_of(evidence, BreakClass.COMPENSATED_TWICE)
    assert "The copy that it repeats is offset 12 of billing.payouts[0]." in twice
    assert "offset 11 " not in twice
    beside = story_of(evidence, BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED)
    assert "The copy that it repeats is offset 11 of billing.payouts[0]." in beside
    assert "stands on the log once" not in beside
    assert "It is not a repair made twice" not in beside
    assert "The two copies are not one repair made twice: one of them carries the header" in beside
    assert "are not one repair made twice" not in twice


def test_an_event_under_the_wrong_leg_is_not_said_to_be_alone_beside_the_right_one() -> None:
    contract = contract_of(T2L, legs={"payment": "billing.payments", "invoice": "billing.invoices"})
    wrong, right = (
        event(offset, topic=topic, leg="payment")
        for offset, topic in ((11, "billing.invoices"), (12, "billing.payments"))
    )
    evidence = evidence_of(wrong, right, replace(row(1), leg="payment"), direction=T2L, contract=contract)
    assert "billing.payments:0:12 repeats" in story_of(evidence, BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN)
    misrouted = story_of(evidence, BreakClass.MISROUTED_IN_TOPIC)
    assert "the topic of its own leg has none" not in misrouted
    assert "where the topic of its own leg has one as well, that one is told as the second." in misrouted


def test_a_row_without_an_amount_is_not_said_to_name_money_or_to_agree_in_currency() -> None:
    without = story_of(evidence_of(row(1, amount_minor=0, currency=""), event(11)), BreakClass.AMOUNT_MISMATCH)
    assert "It says no whole amount of a currency." in without
    assert "0 minor units" not in without
    assert "pair by key and currency" not in without
    assert "agree in currency if the row says one" in without
    nothing = story_of(evidence_of(row(1, amount_minor=0), event(11)), BreakClass.AMOUNT_MISMATCH)
    assert "It says 0.00 EUR." in nothing
    no_currency = story_of(evidence_of(row(1, currency=""), event(11)), BreakClass.CURRENCY_MISMATCH)
    assert "It says 1,000 minor units of an unknown currency." in no_currency


def test_a_whole_without_an_amount_is_not_said_to_name_money() -> None:
    summed = contract_of(T2L, match={"many_to_one": "events"})
    parts = event(11, amount_minor=600), event(12, amount_minor=400)
    told_of: dict[str, str] = {}
    for name, whole in {"none": row(1, amount_minor=0, currency=""), "nothing": row(1, amount_minor=0)}.items():
        evidence = evidence_of(*parts, whole, direction=T2L, contract=summed)
        told_of[name] = story_of(evidence, BreakClass.GROUP_SUM_MISMATCH)
    assert "ledger:1 says no whole amount of a currency, and its 2 parts are 1000 EUR together" in told_of["none"]
    assert "10.00 EUR: match key ev-1" in told_of["none"]
    assert "says 0" not in told_of["none"]
    assert "of that currency" not in told_of["none"]
    assert "ledger:1 says 0 EUR, and its 2 parts are 1000 together: 1000 too much" in told_of["nothing"]
