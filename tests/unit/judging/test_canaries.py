"""What every run plants, and that a run which does not catch it says so."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

import pytest

from tallystick.anomalies.registry import RULES, AnomalyRule
from tallystick.contract.contract import Contract
from tallystick.judging.canaries import canary_events, canary_rows, missed_canaries
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.matching.evidence import Evidence
from tallystick.matching.scan_result import CANARY, CANARY_PARTITION
from tallystick.model.cut import FileChange, LedgerFile
from tallystick.model.finding_names import BreakClass
from tests.unit.builders import (
    L2T,
    T2L,
    T2T,
    TOPIC,
    contract_of,
    cut_of,
    evidence_of,
    ledger_at,
    ledger_slice_of,
    offsets,
)
from tests.unit.event_payloads import SAID, as_said
from tests.unit.judging.canary_scans import all_copies, good_scan, missed

LEGS = {"payout": TOPIC, "fee": "billing.fees"}
CONTRACTS = pytest.mark.parametrize(
    "contract",
    [
        contract_of(L2T),
        contract_of(T2L),
        contract_of(T2L, legs=LEGS),
        contract_of(T2T),
        contract_of(T2L, match={"many_to_one": "events"}),
        contract_of(L2T, match={"many_to_one": "rows"}),
    ],
    ids=["ledger_to_topic", "topic_to_ledger", "two legs", "topic_to_topic", "events to a row", "rows to an event"],
)


@CONTRACTS
def test_a_run_that_works_catches_every_canary(contract: Contract) -> None:
    assert missed(contract, good_scan(contract)) == ()


@CONTRACTS
def test_each_copy_that_does_not_come_home_is_missed(contract: Contract) -> None:
    scan = good_scan(contract)
    for copy in scan.copies:
        less = replace(scan, copies=tuple(one for one in scan.copies if one is not copy))
        assert f"{copy.match_key.removeprefix(CANARY) or 'row-without-key'} (scan)" in missed(contract, less)


@CONTRACTS
def test_a_scan_that_calls_a_clean_pair_exceptional_is_told(contract: Contract) -> None:
    scan = good_scan(contract)
    pair = tuple(copy for copy in all_copies(contract) if copy.match_key == f"{CANARY}equal")
    assert len(pair) == 2
    assert missed(contract, replace(scan, copies=scan.copies + pair)) == ("equal (scan)",)


@CONTRACTS
def test_an_amount_read_through_a_double_is_missed(contract: Contract) -> None:
    scan = good_scan(contract)
    rounded = tuple(
        replace(copy, amount_minor=int(float(copy.amount_minor))) if copy.match_key.endswith("amount") else copy
        for copy in scan.copies
    )
    assert missed(contract, replace(scan, copies=rounded))[:3] == (
        "amount (scan)",
        "amount (rules)",
        "amount_mismatch (class)",
    )


@CONTRACTS
def test_an_unreadable_record_that_is_dropped_is_missed(contract: Contract) -> None:
    scan = replace(good_scan(contract), unreadable=0)
    assert missed(contract, scan) == ("unreadable (scan)", "unreadable_payload (rules)")


def test_a_torn_canary_that_looks_whole_is_missed() -> None:
    contract = contract_of(T2L, legs=LEGS)
    assert missed(contract, replace(good_scan(contract), incomplete=())) == ("torn (scan)", "torn (rules)")


@CONTRACTS
def test_planted_events_lie_where_no_topic_has_a_record(contract: Contract) -> None:
    assert CANARY_PARTITION < 0
    assert {event.topic for event in canary_events(contract)} <= set(contract.topics)
    assert len({event.kafka_offset for event in canary_events(contract)}) == len(canary_events(contract))
    assert offsets(0, 1).partition >= 0


@CONTRACTS
def test_a_ledger_that_gives_ids_out_again_hides_no_canary(contract: Contract) -> None:
    """Its horizon stands below the cut; the planted cut, which has none of that, is calm all the same."""
    fallen = replace(ledger_slice_of(300, 300), snapshot=ledger_at(290))
    assert missed_canaries(evidence_of(contract=contract, cut=cut_of(ledger_slice=fallen)), good_scan(contract)) == ()


@CONTRACTS
def test_a_ledger_whose_files_changed_hides_no_canary(contract: Contract) -> None:
    gone = FileChange(before=LedgerFile(path="a.parquet", size_bytes=1, modified_ns=1), after=None)
    changed = replace(ledger_slice_of(200, 300), changed=(gone,))
    assert missed_canaries(evidence_of(contract=contract, cut=cut_of(ledger_slice=changed)), good_scan(contract)) == ()


@pytest.mark.parametrize(
    "kind",
    [
        {"kind": "jdbc", "order_by": "entry_id", "overlap": 10},
        {"kind": "parquet", "quiet_seconds": 60},
        {"kind": "iceberg"},
    ],
)
@CONTRACTS
def test_every_kind_of_ledger_catches_them(contract: Contract, kind: dict[str, object]) -> None:
    other = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=kind)})
    assert missed(other, good_scan(other)) == ()


# What is planted, literally.

BIG = 9_007_199_254_740_992
"""2**53."""


def test_events_are_planted_on_the_first_legs_topic_and_one_of_a_whole_transaction_on_each_other_one() -> None:
    planted = [(event.topic, event.kafka_offset, event.value) for event in canary_events(contract_of(T2L, legs=LEGS))]
    said = [(topic, number, json.loads(value)) for topic, number, value in planted[:-1]]
    assert [(topic, number, *document.values()) for topic, number, document in said] == [
        ("billing.fees", 0, "tallystick-canary-whole", "tallystick-canary-equal", "fee", 100, "EUR"),
        ("billing.fees", 1, "tallystick-canary-whole", "tallystick-canary-event-alone", "fee", 100, "EUR"),
        ("billing.fees", 2, "tallystick-canary-whole", "tallystick-canary-event-twice", "fee", 100, "EUR"),
        ("billing.fees", 3, "tallystick-canary-whole", "tallystick-canary-event-twice", "fee", 100, "EUR"),
        ("billing.fees", 4, "tallystick-canary-whole", "tallystick-canary-row-twice", "fee", 100, "EUR"),
        ("billing.fees", 5, "tallystick-canary-whole", "tallystick-canary-amount", "fee", BIG, "EUR"),
        ("billing.fees", 6, "tallystick-canary-whole", "tallystick-canary-currency", "fee", 100, "EUR"),
        ("billing.fees", 7, "tallystick-canary-torn", "tallystick-canary-torn", "fee", 100, "EUR"),
        (TOPIC, 8, "tallystick-canary-whole", "tallystick-canary-equal-payout", "payout", 100, "EUR"),
    ]
    assert list(said[0][2]) == ["payment_id", "event_id", "leg", "amount_minor", "currency"]
    assert planted[-1] == ("billing.fees", 9, b"canary: no JSON")


def test_rows_are_planted_with_the_keys_of_the_events_and_one_without_any() -> None:
    assert [astuple(row)[:-1] for row in canary_rows(contract_of(T2L, legs=LEGS))] == [
        ("tallystick-canary-0", "tallystick-canary-equal", "tallystick-canary-whole", "fee", 100, "EUR"),
        ("tallystick-canary-1", "tallystick-canary-row-alone", "tallystick-canary-whole", "fee", 100, "EUR"),
        ("tallystick-canary-2", "tallystick-canary-event-twice", "tallystick-canary-whole", "fee", 100, "EUR"),
        ("tallystick-canary-3", "", "tallystick-canary-whole", "fee", 100, "EUR"),
        ("tallystick-canary-4", "tallystick-canary-row-twice", "tallystick-canary-whole", "fee", 100, "EUR"),
        ("tallystick-canary-5", "tallystick-canary-row-twice", "tallystick-canary-whole", "fee", 100, "EUR"),
        ("tallystick-canary-6", "tallystick-canary-amount", "tallystick-canary-whole", "fee", BIG + 1, "EUR"),
        ("tallystick-canary-7", "tallystick-canary-currency", "tallystick-canary-whole", "fee", 100, "USD"),
        ("tallystick-canary-8", "tallystick-canary-torn", "tallystick-canary-torn", "fee", 100, "EUR"),
        ("tallystick-canary-9", "tallystick-canary-equal-payout", "tallystick-canary-whole", "payout", 100, "EUR"),
    ]


@pytest.mark.parametrize("event", [{"record": "key"}, {"header": "note"}, "note"], ids=str)
@pytest.mark.parametrize("second", [{"abs": 1}, {"exact": "number"}, {"within": "1s"}], ids=str)
def test_columns_that_read_one_place_by_several_rules_plant_one_text(event: Any, second: dict[str, Any]) -> None:
    rules = {"one": {"exact": "text", "event": event}, "two": {**second, "event": event}}
    contract = contract_of(T2L, compare=rules)
    decoder, payloads = EventDecoder(contract.event), [one.value for one in canary_events(contract)]
    said = [row[SAID.index("compared_text")] for row in as_said(decoder, payloads, decoder.read_each(payloads)) if row]
    assert Counter(said).keys() == {row.compared_text for row in canary_rows(contract)} - {'{"one":null,"two":null}'}


def test_a_contract_of_one_leg_has_nothing_torn_planted() -> None:
    contract = contract_of(L2T)
    assert {row.transaction_key for row in canary_rows(contract)} == {"tallystick-canary-whole"}
    assert len(canary_events(contract)) == 8


def test_events_are_planted_in_the_contracts_own_form() -> None:
    fields = {"amount_unit": "major", "ordering_key": "account", "sequence": "number", "match_key": "id"}
    values = [event.value for event in canary_events(contract_of(L2T, event=fields))]
    one = json.loads(values[0])
    assert one == {
        "account": "tallystick-canary-equal",
        "number": 1,
        "payment_id": "tallystick-canary-whole",
        "id": "tallystick-canary-equal",
        "leg": "payout",
        "amount_minor": "1.00",
        "currency": "EUR",
    }
    assert b'"90071992547409.92"' in values[5]


def test_events_are_planted_in_the_only_currency_there_is_and_without_what_no_event_has() -> None:
    for code, amount in (("USD", "1.00"), ("KWD", "0.100"), ("JPY", "100")):
        fields = {"amount_unit": "major", "currency": {"constant": code}, "leg": {"constant": "payout"}}
        contract = contract_of(L2T, event=fields)
        assert json.loads(canary_events(contract)[0].value) == {
            "payment_id": "tallystick-canary-whole",
            "event_id": "tallystick-canary-equal",
            "amount_minor": amount,
        }
        other = "EUR" if code == "USD" else "USD"
        assert Counter(row.currency for row in canary_rows(contract)) == {code: 7, other: 1}


def test_where_one_key_of_the_payload_is_both_it_says_which_event_it_is() -> None:
    both = contract_of(L2T, event={"match_key": "id", "transaction_key": "id"})
    assert json.loads(canary_events(both)[0].value)["id"] == "tallystick-canary-equal"


# What is missed.


@CONTRACTS
def test_each_class_that_no_rule_judges_is_missed_by_its_name(contract: Contract) -> None:
    names = missed(contract, good_scan(contract), classes=[])
    assert [name for name in names if name.endswith("(rules)")] == [
        f"{name} (rules)"
        for name in (
            *("event-alone", "row-alone", "event-twice", "row-twice", "row-without-key", "amount", "currency"),
            *("unreadable_payload", *["torn"] * (len(contract.legs) > 1)),
        )
    ]
    assert {"amount_mismatch (class)", "missing_in_ledger (class)"} & set(names)
    assert not [name for name in names if name.endswith("(scan)")]


@CONTRACTS
def test_two_unreadable_records_of_one_planted_are_told(contract: Contract) -> None:
    assert "unreadable (scan)" in missed(contract, replace(good_scan(contract), unreadable=2))


@CONTRACTS
def test_a_copy_that_comes_home_twice_is_told(contract: Contract) -> None:
    scan = good_scan(contract)
    again = next(copy for copy in scan.copies if copy.match_key.endswith("row-alone"))
    assert "row-alone (scan)" in missed(contract, replace(scan, copies=(*scan.copies, again)))


def test_a_transaction_that_looks_torn_and_is_not_is_told() -> None:
    contract = contract_of(T2L, legs=LEGS)
    scan = good_scan(contract)
    whole = tuple(copy for copy in all_copies(contract) if copy.match_key == f"{CANARY}equal")[:1]
    assert "torn (scan)" in missed(contract, replace(scan, incomplete=scan.incomplete + whole))
    one_leg = contract_of(L2T)
    assert "torn (scan)" in missed(one_leg, replace(good_scan(one_leg), incomplete=whole))


def test_a_rule_that_finds_another_class_besides_is_told() -> None:
    """A planted pair of equal copies must have none."""
    contract = contract_of(L2T)
    mismatch = next(rule for rule in RULES if BreakClass.AMOUNT_MISMATCH in rule.names)

    class AlsoEqual(AnomalyRule):
        def judge(self, evidence: Evidence) -> Iterator[Any]:
            for found in super().judge(evidence):
                yield replace(found, match_key="tallystick-canary-equal")

    also = AlsoEqual(names=mismatch.names, letters="", rule=mismatch.rule)
    assert "equal (rules)" in missed(contract, good_scan(contract), classes=[*RULES, also])
