"""Every class of the registry fires on one planted case, and stays silent on its twin, one fact away.

The twin is what the class must be told apart from; `twin_is` says what it is instead, if anything.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tallystick.break_class import BreakClass, Doubt, Notice
from tallystick.classes import CLASSES
from tallystick.evidence import Evidence, LegsCase, UnreadableRecord
from tallystick.judging import judge
from tallystick.pairing import Place, Sighting
from tallystick.run_result import Break, DoubtFound, ItemSide, NoticeFound
from tallystick.surroundings import Surroundings, TopicSettings
from tallystick.verdict import Verdict

from .builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LEDGER,
    MINUTE,
    NOON,
    T2L,
    TOPIC,
    census_of,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    ledger_at,
    ledger_slice_of,
    record_of,
    row,
    seen,
    slice_of,
)

Name = BreakClass | Doubt | Notice


@dataclass(frozen=True, kw_only=True)
class Pair:
    """fires: evidence that proves the class and nothing else. twin: the same but for one fact."""

    fires: Evidence
    twin: Evidence
    twin_is: frozenset[Name] = frozenset()


ORIGINAL, COPY = event(11), event(12)


def doubled(*, original: object, copy: object) -> Evidence:
    """One row, its event, and the event again; by whom each was written."""
    return evidence_of(row(1), ORIGINAL, COPY, identities={ORIGINAL.item_id: original, COPY.item_id: copy})


def torn(*late: Sighting) -> Evidence:
    """A payment whose payout leg is committed; what the log holds of its fee leg."""
    case = LegsCase(transaction_key="pay-1", seen={"payout": (1_000, "EUR", ORIGINAL.item_id)}, sightings={"fee": late})
    return evidence_of(contract=contract_of(legs={"payout": TOPIC, "fee": "billing.fees"}), incomplete=(case,))


def cut_with(topic_slice: object) -> Evidence:
    return evidence_of(cut=cut_of(topic_slice))


def configured(**changes: Any) -> Evidence:
    """A topic whose settings keep the promise, but for these."""
    kept = TopicSettings(
        topic=TOPIC,
        replication_factor=3,
        in_sync_replicas=3,
        min_insync_replicas=2,
        unclean_leader_election=False,
        cleanup_policy=("delete",),
        retention_ms=604_800_000,
        retention_bytes=-1,
        message_timestamp_type="CreateTime",
    )
    return evidence_of(surroundings=Surroundings(topic_settings=(replace(kept, **changes),)))


CLEAN = evidence_of()
SLICE = CLEAN.cut.topic_slices[0]

PAIRS: dict[Name, Pair] = {
    BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED: Pair(
        fires=evidence_of(row(1)),
        twin=evidence_of(row(1), sightings=[seen(IN_TOPIC, Place.PENDING, 25)]),  # committed above the cut, or open
    ),
    BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY: Pair(
        fires=evidence_of(row(1), sightings=[seen(IN_TOPIC, Place.ABORTED, 12)]),
        twin=evidence_of(row(1), event(13), sightings=[seen(IN_TOPIC, Place.ABORTED, 12)]),  # written again
    ),
    BreakClass.MISSING_IN_LEDGER: Pair(
        fires=evidence_of(event(11), direction=T2L),
        twin=evidence_of(event(11), direction=T2L, sightings=[seen(LEDGER, Place.PENDING, 1)]),  # behind the horizon
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE: Pair(
        fires=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
        twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY, session="relay-2")),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION: Pair(
        fires=doubled(original=record_of(ORIGINAL, producer_id=7), copy=record_of(COPY, producer_id=8)),
        twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED: Pair(
        fires=doubled(
            original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
            copy=record_of(COPY, producer_id=8, source="in:0:4", session="relay-2"),
        ),
        twin=doubled(
            original=record_of(ORIGINAL, producer_id=7, source="in:0:4"),
            copy=record_of(COPY, producer_id=8, source="in:0:5", session="relay-2"),
        ),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION}),
    ),
    BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: Pair(
        fires=doubled(original=record_of(ORIGINAL, session=None), copy=record_of(COPY)),
        twin=doubled(original=record_of(ORIGINAL), copy=record_of(COPY)),
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE}),
    ),
    BreakClass.DUPLICATE_IN_LEDGER: Pair(
        fires=evidence_of(event(11), row(1), row(2), direction=T2L),
        twin=evidence_of(event(11), event(12), row(1), row(2), direction=T2L),  # it follows a doubled event
        twin_is=frozenset({BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN}),
    ),
    BreakClass.PHANTOM_IN_TOPIC: Pair(
        fires=evidence_of(event(11)),
        twin=evidence_of(event(11), sightings=[seen(LEDGER, Place.PENDING, 1)]),  # its row is behind the horizon
    ),
    BreakClass.PHANTOM_IN_LEDGER: Pair(
        fires=evidence_of(row(1), direction=T2L),
        twin=evidence_of(row(1), direction=T2L, sightings=[seen(IN_TOPIC, Place.PENDING, 25)]),
    ),
    BreakClass.AMOUNT_MISMATCH: Pair(
        fires=evidence_of(event(11, amount_minor=10_000_000_000), row(1, amount_minor=10_000_000_399)),
        twin=evidence_of(event(11, amount_minor=10_000_000_399), row(1, amount_minor=10_000_000_399)),
    ),
    BreakClass.CURRENCY_MISMATCH: Pair(
        fires=evidence_of(event(11, currency="EUR"), row(1, currency="USD")),
        twin=evidence_of(event(11, currency="USD"), row(1, currency="USD")),
    ),
    BreakClass.TORN_TRANSACTION: Pair(
        fires=torn(),
        twin=torn(seen(IN_TOPIC, Place.PENDING, 25)),  # the late leg
    ),
    Doubt.HELD_BY_OPEN_TRANSACTION: Pair(
        fires=cut_with(slice_of(10, 20, mark=21)),
        twin=cut_with(slice_of(10, 20, mark=20)),
    ),
    Doubt.HELD_BY_LEDGER_HORIZON: Pair(
        fires=evidence_of(cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=301))),
        twin=evidence_of(cut=cut_of(ledger_slice=ledger_slice_of(200, 300, mark=300))),
    ),
    Doubt.PARTNER_NOT_SETTLED: Pair(
        fires=evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=NOON)),
        twin=evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=NOON + MINUTE)),  # just at its deadline
        twin_is=frozenset({BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED}),
    ),
    Doubt.LOG_EXPIRED: Pair(
        fires=cut_with(slice_of(10, 20, expired=1)),
        twin=cut_with(slice_of(10, 20, expired=0)),
    ),
    Doubt.UNEXPLAINED_GAP: Pair(
        fires=replace(CLEAN, census=(census_of(SLICE, unexplained=1),)),
        twin=replace(CLEAN, census=(census_of(SLICE, unexplained=0),)),
    ),
    Doubt.READERS_DISAGREE: Pair(
        fires=replace(CLEAN, census=(census_of(SLICE, spark_rows=10),)),
        twin=replace(CLEAN, census=(census_of(SLICE, spark_rows=9),)),
    ),
    Doubt.UNREADABLE_PAYLOAD: Pair(
        fires=replace(
            CLEAN,
            unreadable_count=1,
            unreadable_sample=(UnreadableRecord(topic=TOPIC, partition=0, kafka_offset=14),),
        ),
        twin=CLEAN,
    ),
    Doubt.LEDGER_REWRITTEN: Pair(
        fires=replace(CLEAN, older_rows=39, older_rows_expected=40),
        twin=replace(CLEAN, older_rows=40, older_rows_expected=40),
    ),
    Doubt.LEDGER_FAILED_OVER: Pair(
        fires=replace(CLEAN, previous_ledger=ledger_at(200, timeline=2)),
        twin=replace(CLEAN, previous_ledger=ledger_at(200, lsn="0/0")),
    ),
    Doubt.CANARY_MISSED: Pair(
        fires=replace(CLEAN, missed_canaries=("amount (scan)",)),
        twin=replace(CLEAN, missed_canaries=()),
    ),
    Doubt.VACUOUS_RUN: Pair(
        fires=replace(CLEAN, ledger_rows=0),
        twin=replace(CLEAN, ledger_rows=1),
    ),
    Notice.PROMISE_AT_RISK: Pair(
        fires=configured(min_insync_replicas=1),
        twin=configured(min_insync_replicas=2),
    ),
}
NAMES = pytest.mark.parametrize("name", PAIRS, ids=str)


def found_in(evidence: Evidence) -> set[Name]:
    """All that the whole registry finds."""
    return {name_of(found) for rule in CLASSES for found in rule.judge(evidence)}


def name_of(found: Break | DoubtFound | NoticeFound) -> Name:
    match found:
        case Break():
            return found.break_class
        case DoubtFound():
            return found.doubt
        case NoticeFound():
            return found.notice


def verdict_of(evidence: Evidence) -> Verdict:
    return judge(evidence, matched_rows=9, matched_money={}, content_digests={}, look_ups={}, carried=()).verdict


def test_every_name_of_the_registry_has_its_pair() -> None:
    assert {name for rule in CLASSES for name in rule.names} == set(PAIRS)


def test_every_break_and_every_doubt_is_in_the_registry_but_the_baseline_that_no_scan_judges() -> None:
    assert {*BreakClass, *Doubt} - {name for rule in CLASSES for name in rule.names} == {Doubt.BASELINE}


def test_no_name_is_judged_by_two_rules() -> None:
    names = [name for rule in CLASSES for name in rule.names]
    assert len(names) == len(set(names))


@NAMES
def test_the_planted_case_fires_and_nothing_else_does(name: Name) -> None:
    assert found_in(PAIRS[name].fires) == {name}


@NAMES
def test_its_twin_one_fact_away_does_not(name: Name) -> None:
    assert found_in(PAIRS[name].twin) == PAIRS[name].twin_is
    assert name not in PAIRS[name].twin_is


@NAMES
def test_a_break_makes_the_run_broken_a_doubt_inconclusive_and_a_notice_nothing(name: Name) -> None:
    expected = {BreakClass: Verdict.BROKEN, Doubt: Verdict.INCONCLUSIVE, Notice: Verdict.MATCHED}[type(name)]
    assert verdict_of(PAIRS[name].fires) is expected


@NAMES
def test_a_class_yields_only_the_names_it_stands_for(name: Name) -> None:
    for rule in CLASSES:
        assert {name_of(one) for one in rule.judge(PAIRS[name].fires)} <= set(rule.names)


def test_clean_evidence_is_matched() -> None:
    assert found_in(CLEAN) == set()
    assert verdict_of(CLEAN) is Verdict.MATCHED


def test_no_classes_prove_nothing() -> None:
    result = judge(CLEAN, matched_rows=9, matched_money={}, content_digests={}, look_ups={}, carried=(), classes=())
    assert result.verdict is Verdict.INCONCLUSIVE


# Further twins, where a class must be told apart from more than one thing.


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(now_utc=NOON + MINUTE / 2)), set(), id="within its grace"
        ),
        pytest.param(
            evidence_of(row(1), sightings=[seen(IN_TOPIC, Place.BEFORE_BASELINE, 3)]), set(), id="before the baseline"
        ),
        pytest.param(
            evidence_of(row(1), sightings=[seen(IN_TOPIC, Place.ABORTED, 12)]),
            {BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY},
            id="aborted",
        ),
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(topic_settled_until_utc=None)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="the topic never settled",
        ),
        pytest.param(
            evidence_of(row(1), sightings=[seen(IN_TOPIC, Place.SLICE, 14)]),
            {Doubt.PARTNER_NOT_SETTLED},
            id="its event is there, unreadable",
        ),
        pytest.param(
            evidence_of(row(1), deadlines=deadlines_of(topic_lost_offsets=True)),
            {Doubt.PARTNER_NOT_SETTLED},
            id="its event may have expired unread",
        ),
        pytest.param(evidence_of(row(1), event(11)), set(), id="its event is there"),
        pytest.param(evidence_of(row(1, key="ev-2"), event(11, key="ev-2")), set(), id="another key"),
    ],
)
def test_a_row_is_not_called_never_produced_when(evidence: Evidence, instead: set[Name]) -> None:
    assert found_in(evidence) == instead


@pytest.mark.parametrize(
    ("evidence", "instead"),
    [
        pytest.param(
            evidence_of(
                row(1),
                sightings=[seen(IN_TOPIC, Place.ABORTED, 12)],
                deadlines=deadlines_of(now_utc=NOON + MINUTE / 2),
            ),
            set(),
            id="its producer may still try again",
        ),
        pytest.param(
            evidence_of(row(1), sightings=[seen(IN_TOPIC, Place.ABORTED, 12), seen(IN_TOPIC, Place.PENDING, 25)]),
            set(),
            id="it was tried again beyond the cut",
        ),
    ],
)
def test_a_row_is_not_called_aborted_only_when(evidence: Evidence, instead: set[Name]) -> None:
    assert found_in(evidence) == instead


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_direction_knows_only_its_own_kind_of_missing(direction: object) -> None:
    """The same lone row is missing in the topic when the ledger is written first, and a phantom when it follows."""
    expected = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED if direction is L2T else BreakClass.PHANTOM_IN_LEDGER
    assert found_in(evidence_of(row(1), direction=direction)) == {expected}
    assert found_in(evidence_of(event(11), direction=direction)) == {
        BreakClass.PHANTOM_IN_TOPIC if direction is L2T else BreakClass.MISSING_IN_LEDGER
    }


def test_a_row_posted_for_an_aborted_event_is_a_phantom_and_names_the_abort() -> None:
    sightings = [seen(LEDGER, Place.SLICE, 1), seen(IN_TOPIC, Place.ABORTED, 12)]
    evidence = evidence_of(row(1), direction=T2L, sightings=sightings)
    assert found_in(evidence) == {BreakClass.PHANTOM_IN_LEDGER}
    (found,) = [one for rule in CLASSES for one in rule.judge(evidence)]
    assert isinstance(found, Break)
    assert found.story.endswith("holds only aborted records at topic:billing.payouts:0:12.")


def test_a_second_row_whose_event_lies_beyond_the_cut_is_no_duplicate_yet() -> None:
    carried = item_of(row(2), due_utc=NOON - HOUR)
    evidence = evidence_of(
        event(11), row(1), direction=T2L, carried=[carried], sightings=[seen(IN_TOPIC, Place.PENDING, 25)]
    )
    assert found_in(evidence) == set()


def test_a_partition_without_a_census_is_a_gap() -> None:
    assert found_in(replace(CLEAN, census=())) == {Doubt.UNEXPLAINED_GAP}


def test_a_reader_that_counted_nothing_disagrees() -> None:
    assert found_in(replace(CLEAN, census=(replace(census_of(SLICE), spark_rows=None),))) == {Doubt.READERS_DISAGREE}


def test_the_guard_of_older_rows_is_silent_where_the_slicing_column_makes_it_needless() -> None:
    assert found_in(replace(CLEAN, older_rows=None)) == set()


@pytest.mark.parametrize(("topic_rows", "ledger_rows"), [(0, 0), (0, 1), (1, 0)])
def test_an_empty_side_proves_nothing(topic_rows: int, ledger_rows: int) -> None:
    evidence = replace(CLEAN, topic_rows=topic_rows, ledger_rows=ledger_rows)
    assert found_in(evidence) == {Doubt.VACUOUS_RUN}


def test_two_empty_sides_pass_only_where_the_contract_allows_it_and_a_census_was_taken() -> None:
    silent = replace(CLEAN, topic_rows=0, ledger_rows=0, contract=contract_of(empty="allowed"))
    assert found_in(silent) == set()
    assert Doubt.VACUOUS_RUN in found_in(replace(silent, census=()))
    assert found_in(replace(silent, topic_rows=1)) == {Doubt.VACUOUS_RUN}


def test_a_window_whose_only_rows_clear_open_items_is_not_empty() -> None:
    clears = evidence_of(event(11), carried=[item_of(row(1))], topic_rows=1, ledger_rows=0)
    assert found_in(clears) == set()
    waits = evidence_of(event(11), sightings=[seen(LEDGER, Place.PENDING, 1)], topic_rows=1, ledger_rows=0)
    assert found_in(waits) == {Doubt.VACUOUS_RUN}


def test_a_legs_side_never_reaches_the_pairing() -> None:
    item = replace(item_of(row(1)), side=ItemSide.LEGS, item_id="legs:pay-1")
    assert evidence_of(carried=[item]).outcomes == ()
