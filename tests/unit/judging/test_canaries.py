"""What every run plants, and that a run which does not catch it says so."""

from dataclasses import replace

import pytest

from tallystick.contract.contract import Contract
from tallystick.judging.canaries import canary_events, missed_canaries
from tallystick.matching.scan_result import CANARY, CANARY_PARTITION
from tallystick.model.cut import FileChange, LedgerFile
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
from tests.unit.judging.canary_scans import all_copies, good_scan, missed

LEGS = {"payout": TOPIC, "fee": "billing.fees"}
CONTRACTS = pytest.mark.parametrize(
    "contract",
    [contract_of(L2T), contract_of(T2L), contract_of(T2L, legs=LEGS), contract_of(T2T)],
    ids=["ledger_to_topic", "topic_to_ledger", "two legs", "topic_to_topic"],
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
    "kind", [{"kind": "jdbc", "order_by": "entry_id", "overlap": 10}, {"kind": "parquet", "quiet_seconds": 60}]
)
@CONTRACTS
def test_every_kind_of_ledger_catches_them(contract: Contract, kind: dict[str, object]) -> None:
    other = contract.model_copy(update={"ledger": contract.ledger.model_copy(update=kind)})
    assert missed(other, good_scan(other)) == ()
