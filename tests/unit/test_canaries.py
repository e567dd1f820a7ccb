"""What every run plants, and that a run which does not catch it says so."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tallystick.canaries import canary_events, canary_rows, missed_canaries
from tallystick.classes import CLASSES
from tallystick.contract import Contract
from tallystick.evidence import Evidence
from tallystick.pairing import Copy
from tallystick.run_result import ItemSide
from tallystick.slice_scan import CANARY, CANARY_PARTITION, CanaryScan, ledger_item_id, topic_item_id

from .builders import L2T, T2L, TOPIC, contract_of, evidence_of, offsets

LEGS = {"payout": TOPIC, "fee": "billing.fees"}
CONTRACTS = pytest.mark.parametrize(
    "contract",
    [contract_of(L2T), contract_of(T2L), contract_of(T2L, legs=LEGS)],
    ids=["ledger_to_topic", "topic_to_ledger", "two legs"],
)


def all_copies(contract: Contract) -> list[Copy]:
    """Every planted copy that can be read, as the scan would bring it home if it brought all."""
    fields, copies = contract.event, []
    for event in canary_events(contract):
        try:
            document = json.loads(event.value)
        except ValueError:
            continue
        copies.append(
            Copy(
                side=ItemSide.TOPIC,
                item_id=topic_item_id(event.topic, CANARY_PARTITION, event.kafka_offset),
                match_key=document[fields.match_key],
                transaction_key=document[fields.transaction_key],
                leg=document[fields.leg],
                amount_minor=document[fields.amount_minor],
                currency=document[fields.currency],
                order=event.kafka_offset,
            )
        )
    for row in canary_rows(contract):
        copies.append(
            Copy(
                side=ItemSide.LEDGER,
                item_id=ledger_item_id(row.row_id),
                match_key=row.match_key,
                transaction_key=row.transaction_key,
                leg=row.leg,
                amount_minor=row.amount_minor,
                currency=row.currency,
                order=0,
            )
        )
    return copies


def good_scan(contract: Contract) -> CanaryScan:
    """What a scan that works brings home."""
    copies = all_copies(contract)
    simple = {f"{CANARY}equal", f"{CANARY}torn", *(f"{CANARY}equal-{leg}" for leg in contract.legs)}
    torn = [copy for copy in copies if copy.side is ItemSide.TOPIC and copy.transaction_key == f"{CANARY}torn"]
    return CanaryScan(
        copies=tuple(copy for copy in copies if copy.match_key not in simple),
        incomplete=tuple(torn),
        unreadable=1,
    )


def missed(contract: Contract, scan: CanaryScan, classes: Sequence[object] = CLASSES) -> tuple[str, ...]:
    evidence: Evidence = evidence_of(contract=contract)
    return missed_canaries(evidence, scan, classes=classes)


@CONTRACTS
def test_a_run_that_works_catches_every_canary(contract: Contract) -> None:
    assert missed(contract, good_scan(contract)) == ()


@CONTRACTS
def test_each_copy_that_does_not_come_home_is_missed(contract: Contract) -> None:
    scan = good_scan(contract)
    for copy in scan.copies:
        less = replace(scan, copies=tuple(one for one in scan.copies if one is not copy))
        assert f"{copy.match_key.removeprefix(CANARY)} (scan)" in missed(contract, less)


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
    assert missed(contract, replace(scan, copies=rounded)) == ("amount (scan)", "amount (rules)")


@CONTRACTS
def test_an_unreadable_record_that_is_dropped_is_missed(contract: Contract) -> None:
    scan = replace(good_scan(contract), unreadable=0)
    assert missed(contract, scan) == ("unreadable (scan)", "unreadable_payload (rules)")


def test_a_torn_canary_that_looks_whole_is_missed() -> None:
    contract = contract_of(T2L, legs=LEGS)
    assert missed(contract, replace(good_scan(contract), incomplete=())) == ("torn (scan)", "torn (rules)")


@CONTRACTS
def test_a_rule_that_is_left_out_is_missed(contract: Contract) -> None:
    scan = good_scan(contract)
    fired = 0
    for rule in CLASSES:
        without = [one for one in CLASSES if one is not rule]
        fired += bool(missed(contract, scan, without))
    assert fired >= 7


@CONTRACTS
def test_planted_events_lie_where_no_topic_has_a_record(contract: Contract) -> None:
    assert CANARY_PARTITION < 0
    assert {event.topic for event in canary_events(contract)} <= set(contract.topics)
    assert len({event.kafka_offset for event in canary_events(contract)}) == len(canary_events(contract))
    assert offsets(0, 1).partition >= 0
