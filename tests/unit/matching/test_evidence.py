"""What one run's evidence says of copies and records, and that a part that nobody gave holds nothing."""

from dataclasses import replace

from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import (
    BLED_RECORDS,
    EarlierRun,
    Evidence,
    LegsCase,
    LookedUp,
    ScanOddities,
    SideTotals,
    UnmatchedItems,
    UnreadableRecord,
    bled_item_ids,
)
from tallystick.matching.match_case import MatchStatus, UnmatchedItem
from tallystick.model.census_values import BledBatch
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.partner_lag import Grace
from tests.unit.anomalies.builders import bled
from tests.unit.anomalies.copies import item_at
from tests.unit.builders import IN_TOPIC, LEDGER, contract_of, cut_of, deadlines_of, event, evidence_of, row
from tests.unit.judging.origins import wanted


def test_records_that_bled_are_asked_for_as_far_as_their_batches_are_named() -> None:
    assert wanted(bled(event(11), row(1))) == {item_at(11)}
    part = bled(event(11)).census[0]
    batch = BledBatch(
        kafka_offset_start=0, kafka_offset_end=10**6, producer_id=7, producer_epoch=0, span_epoch=1, marker_offset=None
    )
    assert len(list(bled_item_ids([part.__class__(**{**vars(part), "bled": (batch,)})]))) == BLED_RECORDS


def test_rows_without_an_event_are_those_of_the_ledger_that_have_no_partner() -> None:
    evidence = evidence_of(
        row(1, key="ev-1"), event(12, key="ev-2"), row(3, key="ev-3"), event(13, "ev-3", amount_minor=7)
    )
    assert evidence.unmatched.rows_without_event == {("pay-of-ev-1", "payout"): row(1, key="ev-1")}


def test_of_a_copy_that_bled_nothing_else_is_said_but_that_it_differs_from_its_row() -> None:
    """The other side of the key, and another fate, are another question."""
    outcomes = evidence_of(event(11), event(12, key="ev-2")).outcomes
    unequal = UnmatchedItem(copy=event(11), fate=MatchStatus.UNEQUAL, reason=reason_of(ReasonCode.FIELDS_DIFFER))
    outcomes = (*outcomes, replace(outcomes[0], residues=(unequal,)))
    found = UnmatchedItems(outcomes=outcomes, bled={event(11).item_id})
    assert [one.copy for one in found.of(MatchStatus.ORIGIN_ABSENT, IN_TOPIC)] == [event(12, key="ev-2")]
    assert found.of(MatchStatus.UNEQUAL, IN_TOPIC) == (unequal,)
    assert found.of(MatchStatus.UNEQUAL, LEDGER) == found.of(MatchStatus.EXTRA, IN_TOPIC) == ()
    assert len(UnmatchedItems(outcomes=outcomes).of(MatchStatus.ORIGIN_ABSENT, IN_TOPIC)) == 2


def test_a_part_that_nobody_gave_holds_nothing() -> None:
    plain = Evidence(
        contract=contract_of(),
        cut=cut_of(),
        census=(),
        totals=SideTotals(topic_rows=1, ledger_rows=2),
        outcomes=(),
        incomplete=(),
        record_origins={},
        deadlines=deadlines_of(),
    )
    assert (plain.totals.topic_money, plain.totals.ledger_money, plain.totals.lags) == ({}, {}, ())
    assert plain.earlier == EarlierRun(cut=None, ledger=None, older_rows_expected=None)
    assert plain.oddities == ScanOddities(
        unreadable_count=0,
        unreadable_sample=(),
        differently_written=0,
        out_of_order=(),
        out_of_order_count=0,
        record_times=(),
        second_readings=(),
        repeated_row_ids=(),
        missed_canaries=(),
    )
    assert plain.looked_up == LookedUp(
        older_rows=None, horizon_holder=None, rows_out_of_place=(), forged_repairs=(), lost_indexes=()
    )
    assert plain.cluster == ClusterState()
    assert plain.measured_grace is None
    assert plain.grace == Grace(seconds=contract_of().partner_grace_seconds)
    assert replace(plain, measured_grace=Grace(seconds=7)).grace == Grace(seconds=7)
    assert (plain.unmatched.outcomes, dict(plain.bled_records)) == ((), {})
    assert (LegsCase(transaction_key="t", seen={}).lookup_hits, LegsCase(transaction_key="t", seen={}).carried) == (
        {},
        None,
    )
    assert UnreadableRecord(topic="t", partition=0, kafka_offset=1).problem == ""
