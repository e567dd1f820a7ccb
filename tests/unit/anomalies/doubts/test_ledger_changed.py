"""A ledger that changed under the books says which way; a server with another history says what it was before."""

from dataclasses import replace

import pytest

from tallystick.anomalies.doubts.ledger_changed import ledger_failed_over, ledger_ids_reused, ledger_rewritten
from tallystick.anomalies.registry import findings_of
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import ClusterState, PositionSums
from tallystick.matching.evidence import EarlierRun
from tallystick.matching.match_case import RecordLocation
from tallystick.model.cut import Cut, FileChange, LedgerAnchor, LedgerFile, LedgerSnapshot, anchor_of
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.open_item import ItemSide
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases, found_in
from tests.unit.builders import (
    contract_of,
    cut_of,
    deadlines_of,
    evidence_of,
    ledger_at,
    ledger_slice_of,
    row,
    seen,
    with_facts,
)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.LEDGER_REWRITTEN,
            fires=with_facts(CLEAN, older_rows=39, older_rows_expected=40),
            twin=with_facts(CLEAN, older_rows=40, older_rows_expected=40),
        ),
        Pair(
            name=Doubt.LEDGER_FAILED_OVER,
            fires=with_facts(CLEAN, previous_ledger=ledger_at(200, timeline=2)),
            twin=with_facts(CLEAN, previous_ledger=ledger_at(200, lsn="0/0")),
        ),
        Pair(
            name=Doubt.LEDGER_IDS_REUSED,
            fires=with_facts(CLEAN, previous_ledger=ledger_at(301)),
            twin=with_facts(CLEAN, previous_ledger=ledger_at(300)),  # idle: no id was given out since
        ),
    )


def test_the_guard_of_older_rows_is_silent_where_the_slicing_column_makes_it_needless() -> None:
    assert found_in(with_facts(CLEAN, older_rows=None)) == set()


def test_a_row_that_went_while_another_came_in_with_an_old_id_is_not_seen() -> None:
    """Rows are counted, and no more is known of them; docs/guarantees.md says so."""
    assert found_in(with_facts(CLEAN, older_rows=40 - 1 + 1, older_rows_expected=40)) == set()


PAIRED_BEFORE = seen(ItemSide.TOPIC, RecordLocation.EARLIER_SLICE, 5)
TWO_TO_32 = 2**32


def said(**changes: object) -> str:
    (doubt,) = findings_of(ledger_rewritten, evidence_of(**{"older_rows_expected": 40, **changes}))
    return doubt.sentence


def test_rows_that_went_were_deleted_or_updated_and_those_that_came_were_brought_in() -> None:
    assert "38 rows are older than this slice, earlier cuts read 40: 2 rows deleted, or updated" in said(older_rows=38)
    came = said(older_rows=41)
    assert "41 rows are older than this slice, earlier cuts read 40: 1 row came in with old transaction ids" in came
    assert "deleted" not in came


def test_a_row_that_stands_again_in_this_slice_was_updated_and_is_told_apart_from_a_deleted_one() -> None:
    moved = deadlines_of(rows_may_be_older=True)
    again = evidence_of(row(1), lookup_hits=[PAIRED_BEFORE], deadlines=moved, older_rows=38, older_rows_expected=40)
    (doubt,) = findings_of(ledger_rewritten, again)
    assert "1 row stood in this slice again, so updated, 1 row deleted, or updated where" in doubt.sentence
    assert doubt.details == {"older_rows": 38, "expected": 40, "updated_rows_seen": 1}
    (only,) = findings_of(ledger_rewritten, with_facts(again, older_rows=39))
    assert "1 row stood in this slice again, so updated. " in only.sentence
    assert "deleted" not in only.sentence


def test_a_row_whose_event_was_never_read_is_not_taken_for_an_updated_one() -> None:
    before = seen(ItemSide.TOPIC, RecordLocation.BEFORE_BASELINE, 5)
    (doubt,) = findings_of(
        ledger_rewritten, evidence_of(row(1), lookup_hits=[before], older_rows=39, older_rows_expected=40)
    )
    assert doubt.details["updated_rows_seen"] == 0


def test_from_2_32_ids_on_a_row_may_only_look_as_if_it_went() -> None:
    young, old = (cut_of(ledger_slice=ledger_slice_of(end - 1, end)) for end in (TWO_TO_32, TWO_TO_32 + 1))
    assert "32 bits" in said(older_rows=39, cut=old)
    assert "32 bits" not in said(older_rows=39, cut=young)


def test_the_doubt_offers_the_column_with_its_statements() -> None:
    assert (
        "ALTER TABLE billing.payout ADD COLUMN written_xid bigint; "
        "ALTER TABLE billing.payout ALTER COLUMN written_xid SET DEFAULT pg_current_xact_id()::text::bigint;"
    ) in said(older_rows=39)


def by_column(**changes: object) -> str:
    ledger = {"kind": "jdbc", "connection": "l", "table": "main.posting", "order_by": "entry_id", "overlap": 10}
    return said(contract=contract_of(ledger=ledger), **changes)


def test_by_a_column_a_row_that_came_later_than_the_overlap_is_told_with_what_to_do() -> None:
    came = by_column(older_rows=43)
    assert "3 rows came in later than the overlap of 10 on entry_id allows, and no cut has read them" in came
    assert "a larger overlap, in a contract under a new name" in came
    went = by_column(older_rows=39)
    assert "1 row went: deleted, or given another entry_id" in went
    assert "xmin" not in came + went


def test_by_a_column_as_many_rows_that_are_not_the_same_are_told() -> None:
    def told(*, expected: int | None, older_rows: int = 40, scattered_expected: int | None = None) -> list[DoubtFound]:
        sums = PositionSums(
            expected=expected, now=100, at_end=200, scattered_expected=scattered_expected, scattered_now=7
        )
        ledger = {"kind": "jdbc", "connection": "l", "table": "main.posting", "order_by": "entry_id", "overlap": 10}
        contract, around = contract_of(ledger=ledger), ClusterState(ledger_sums=sums)
        counts = {"older_rows": older_rows, "older_rows_expected": 40}
        return list(findings_of(ledger_rewritten, evidence_of(contract=contract, cluster=around, **counts)))

    (others,) = told(expected=99)
    assert "40 rows are older than this slice, as many as earlier cuts read, and not the same: at" in others.sentence
    assert (others.doubt, others.details) == (Doubt.LEDGER_REWRITTEN, {"sum": 100, "expected_sum": 99})
    assert told(expected=100) == told(expected=None) == []
    (scattered,) = told(expected=100, scattered_expected=6)
    assert (scattered.sentence, scattered.details) == (others.sentence, {"sum": 7, "expected_sum": 6})
    assert told(expected=100, scattered_expected=7) == []
    (only,) = told(expected=99, older_rows=41)
    assert "1 row came in later" in only.sentence


def test_by_a_column_newest_rows_that_were_read_and_went_are_told_and_unread_ones_are_not() -> None:
    def told(xmax: int) -> list[DoubtFound]:
        now = replace(ledger_slice_of(300, 300), snapshot=ledger_at(290, high_mark=xmax, timeline=0, lsn="0/0"))
        ledger = {"kind": "jdbc", "connection": "l", "table": "main.posting", "order_by": "entry_id", "overlap": 10}
        evidence = evidence_of(contract=contract_of(ledger=ledger), cut=cut_of(ledger_slice=now))
        return list(findings_of(ledger_rewritten, evidence))

    (went,) = told(299)
    assert (went.doubt, went.details) == (Doubt.LEDGER_REWRITTEN, {"newest": 298, "read_up_to": 300})
    assert went.sentence.startswith(
        "ledger: the newest row stands at 298, and cuts have read up to 299: the newest rows were deleted. A row that "
        "is given one of these values of entry_id again is in no cut"
    )
    assert told(300) == []


def read_on(now: LedgerSnapshot) -> ClusterState:
    return ClusterState(ledger=now)


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (ledger_at(300), []),
        (ledger_at(340, lsn="0/FFFFFFFF"), []),
        (ledger_at(340, timeline=2), [Doubt.LEDGER_FAILED_OVER]),
        (ledger_at(299), [Doubt.LEDGER_IDS_REUSED]),
        (ledger_at(340, lsn="0/1A2B3C7"), [Doubt.LEDGER_IDS_REUSED]),
        (ledger_at(299, timeline=2), [Doubt.LEDGER_FAILED_OVER, Doubt.LEDGER_IDS_REUSED]),
    ],
)
def test_the_server_that_was_read_is_held_against_the_one_that_the_cut_was_made_on(
    now: LedgerSnapshot, found: list[Doubt]
) -> None:
    evidence = evidence_of(cluster=read_on(now))
    doubts = [one.doubt for rule in (ledger_failed_over, ledger_ids_reused) for one in findings_of(rule, evidence)]
    assert doubts == found


def test_a_restored_copy_is_told_with_both_horizons_and_places_in_the_log() -> None:
    evidence = evidence_of(cluster=read_on(ledger_at(290, lsn="0/1A00000")))
    (doubt,) = findings_of(ledger_ids_reused, evidence)
    assert doubt.sentence == (
        "ledger: the horizon stands at 290 (0/1A00000), it stood at 300 (0/1A2B3C8) before, and cuts have read up to "
        "300: transaction ids are given out again, and rows that get one below that are in no cut."
    )
    horizons = {"horizon": 290, "previous_horizon": 300, "lsn": "0/1A00000"}
    assert {name: doubt.details[name] for name in horizons} == horizons


@pytest.mark.parametrize(("of_cut", "since", "read_up_to"), [((7,), (), 200), ((), (7,), 300), ((8,), (7,), 300)])
def test_newest_rows_that_are_gone_or_others_are_told_and_what_may_be_given_again(
    of_cut: tuple[int, ...], since: tuple[int, ...], read_up_to: int
) -> None:
    """Of what was lost since the cut its own rows are among, so that all up to its end may come again."""

    def lost(positions: tuple[int, ...]) -> tuple[LedgerAnchor, ...]:
        return tuple(LedgerAnchor(position=one, row_id=f"r{one}", key_checksum=1) for one in positions)

    ledger = {"kind": "jdbc", "connection": "l", "table": "main.posting", "order_by": "entry_id", "overlap": 10}
    now = replace(ledger_slice_of(200, 300), lost=lost(of_cut))
    cut, cluster = cut_of(ledger_slice=now), ClusterState(ledger_lost=lost(since))
    (doubt,) = findings_of(
        ledger_ids_reused, evidence_of(contract=contract_of(ledger=ledger), cut=cut, cluster=cluster)
    )
    assert doubt.sentence == (
        "ledger: of the newest rows that cuts have read some are gone, or have another key (row r7 at 7): the table "
        "was put back to an earlier state, or its newest rows were deleted or changed. Rows that are given values of "
        f"entry_id below {read_up_to} again are in no cut."
    )
    assert doubt.details == {"row_ids": ["r7"], "read_up_to": read_up_to}
    assert not [*findings_of(ledger_ids_reused, evidence_of(contract=contract_of(ledger=ledger)))]


def test_a_newest_row_that_is_known_by_its_row_id_alone_is_told_without_a_position() -> None:
    lost = (anchor_of("4", "pay-1"), anchor_of("5", "pay-2", position=9))
    cut = cut_of(ledger_slice=replace(ledger_slice_of(200, 300), lost=lost))
    (doubt,) = findings_of(ledger_ids_reused, evidence_of(cut=cut))
    assert "(row 4; row 5 at 9)" in doubt.sentence


def closed_behind(*snapshots: LedgerSnapshot) -> tuple[Cut, ...]:
    """Cuts that were made on these and closed, and that read nothing."""
    return tuple(cut_of(ledger_slice=replace(ledger_slice_of(200, 200), snapshot=one), n=2) for one in snapshots)


@pytest.mark.parametrize(
    ("closed", "found"),
    [
        ((), []),
        ((ledger_at(300),), []),
        ((ledger_at(299),), [Doubt.LEDGER_IDS_REUSED]),
        ((ledger_at(300), ledger_at(300, timeline=2), ledger_at(300)), [Doubt.LEDGER_FAILED_OVER]),
    ],
    ids=["none", "one", "put back before it", "another server between two"],
)
def test_what_befell_the_ledger_before_a_cut_that_was_closed_is_told_by_the_next_run(
    closed: tuple[LedgerSnapshot, ...], found: list[Doubt]
) -> None:
    evidence = evidence_of()
    evidence = replace(evidence, earlier=EarlierRun(ledger=ledger_at(300), unread=closed_behind(*closed)))
    doubts = [one.doubt for rule in (ledger_failed_over, ledger_ids_reused) for one in findings_of(rule, evidence)]
    assert doubts == found


def test_newest_rows_that_were_gone_before_a_cut_that_was_closed_are_told_by_the_next_run() -> None:
    lost = (LedgerAnchor(position=7, row_id="r7", key_checksum=1),)
    (closed,) = closed_behind(ledger_at(300))
    closed = replace(closed, ledger_slice=replace(closed.ledger_slice, lost=lost))
    evidence = replace(evidence_of(), earlier=EarlierRun(ledger=ledger_at(300), unread=(closed,)))
    (doubt,) = findings_of(ledger_ids_reused, evidence)
    assert doubt.details == {"row_ids": ["r7"], "read_up_to": 200}


def test_a_file_that_changed_is_told_with_what_it_was_and_is_and_one_that_did_not_is_none() -> None:
    old = LedgerFile(path="a.parquet", size_bytes=1_234, modified_ns=5 * 10**9)
    new = replace(old, size_bytes=2, modified_ns=6 * 10**9)
    seen_so = (
        FileChange(before=old, after=new),
        FileChange(before=None, after=new),
        FileChange(before=old, after=None),
    )
    (doubt,) = findings_of(
        ledger_rewritten, evidence_of(cut=cut_of(ledger_slice=replace(ledger_slice_of(200, 300), changed=seen_so)))
    )
    was, now = "1,234 bytes of 1970-01-01 00:00:05 UTC", "2 bytes of 1970-01-01 00:00:06 UTC"
    assert (doubt.doubt, doubt.details) == (
        Doubt.LEDGER_REWRITTEN,
        {
            "files": [
                f"a.parquet had {was}, now {now}",
                f"a.parquet had nothing, now {now}",
                f"a.parquet had {was}, now nothing",
            ]
        },
    )
    assert doubt.sentence.startswith(f"ledger: 3 files that a cut had taken changed: a.parquet had {was}, now {now}; ")
    assert "and more" not in doubt.sentence


@pytest.mark.parametrize(("files", "told", "more"), [(5, 5, False), (6, 5, True)])
def test_of_many_files_that_changed_while_they_were_read_five_are_told(files: int, told: int, more: bool) -> None:
    old = LedgerFile(path="a.parquet", size_bytes=1, modified_ns=0)
    changed = tuple(FileChange(before=replace(old, path=f"{n}.parquet"), after=None) for n in range(files))
    (doubt,) = findings_of(ledger_rewritten, evidence_of(cluster=ClusterState(ledger_files=changed)))
    assert (doubt.sentence.count(".parquet had"), "; and more" in doubt.sentence) == (told, more)
    assert len(doubt.details["files"]) == files


def iceberg_ledger() -> Contract:
    contract = evidence_of().contract
    return contract.model_copy(update={"ledger": contract.ledger.model_copy(update={"kind": "iceberg"})})


def test_what_a_table_of_iceberg_went_through_is_told_in_words_and_an_append_is_nothing() -> None:
    said = LedgerFile(
        path="snapshot 7 is no append: delete of 0 rows written and 1 taken away", size_bytes=0, modified_ns=0
    )
    changed = replace(ledger_slice_of(200, 300), changed=(FileChange(before=None, after=said),))
    (doubt,) = findings_of(ledger_rewritten, evidence_of(contract=iceberg_ledger(), cut=cut_of(ledger_slice=changed)))
    assert doubt.sentence.startswith(f"ledger: {said.path}. No row is called lost for that")
    assert doubt.details == {"snapshots": [said.path]}
    whole = cut_of(ledger_slice=ledger_slice_of(200, 300))
    assert list(findings_of(ledger_rewritten, evidence_of(contract=iceberg_ledger(), cut=whole))) == []


@pytest.mark.parametrize(("end", "doubts"), [(199, 1), (200, 0)])
def test_a_table_of_iceberg_that_ends_below_what_was_read_was_rolled_back(end: int, doubts: int) -> None:
    behind = replace(ledger_slice_of(200, 200), snapshot=replace(ledger_at(end), high_mark=end))
    found = list(findings_of(ledger_rewritten, evidence_of(contract=iceberg_ledger(), cut=cut_of(ledger_slice=behind))))
    assert len(found) == doubts
    assert all("has sequence number 198, and cuts have read up to 199" in one.sentence for one in found)
