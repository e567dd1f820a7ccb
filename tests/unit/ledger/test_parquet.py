"""A ledger in files: each file in one manifest whenever it comes, and what changed afterwards is told; real files."""

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.anomalies.doubts.ledger_changed import ledger_rewritten
from tallystick.anomalies.registry import findings_of
from tallystick.contract.ledger import LedgerColumns, LedgerSection
from tallystick.kafka_cluster.state import ClusterState
from tallystick.ledger.parquet import ParquetLedger, changes, fix_files, known_files
from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
from tallystick.matching.ledger_horizon import locate_row
from tallystick.matching.match_case import RecordLocation
from tallystick.model.cut import FileChange, LedgerFile, LedgerSlice
from tallystick.model.finding_names import Doubt
from tests.unit.builders import LAW, NOON, cut_of, evidence_of, ledger_slice_of

MILLISECOND_NS = 1_000_000


def file_of(name: str, at_ms: int, size: int = 100) -> LedgerFile:
    return LedgerFile(path=name, size_bytes=size, modified_ns=at_ms * MILLISECOND_NS)


def listing(*files: LedgerFile) -> dict[str, LedgerFile]:
    return {file.path: file for file in files}


def cuts_of(*steps: tuple[int, dict[str, LedgerFile]]) -> list[LedgerSlice]:
    """A baseline and the cuts after it: where each ends, and what the folder lists then."""
    cuts: list[LedgerSlice] = []
    for end, listed in steps:
        start = cuts[-1].position_end if cuts else end
        cuts.append(fix_files(ledger_slice_of(start, end, baseline=steps[0][0]), earlier=cuts, listed=listed))
    return cuts


def names(ledger_slice: LedgerSlice) -> list[str]:
    return [file.path for file in ledger_slice.files]


@LAW
@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9)), max_size=20))
def test_each_file_is_in_one_manifest_whenever_it_was_written_and_whenever_it_came(
    files: list[tuple[int, int]],
) -> None:
    """A moment of modification and the cut before which it came into sight; no file is written to again."""
    every = [(file_of(f"{number}.parquet", at_ms), came) for number, (at_ms, came) in enumerate(files)]
    cuts = cuts_of(*((10 * n, listing(*(file for file, came in every if came <= n))) for n in range(11)))
    assert sorted(name for one in cuts for name in names(one)) == sorted(file.path for file, _ in every)
    assert not any(one.changed for one in cuts)


def test_a_file_that_was_not_left_alone_waits_and_one_that_is_moved_in_late_is_taken() -> None:
    quiet, fresh, late = file_of("quiet", 19), file_of("fresh", 20), file_of("late", 1)
    _, first, second = cuts_of((10, {}), (20, listing(quiet, fresh)), (30, listing(quiet, fresh, late)))
    assert (names(first), names(second)) == (["quiet"], ["fresh", "late"])


def test_rows_of_files_that_are_left_and_written_anew_may_be_as_old_as_the_first_slice_that_left_one() -> None:
    """Found by the simulated world: their events had expired since, and they were called missing."""
    a, b, c = file_of("a", 10), file_of("b", 20), file_of("c", 30)
    anew = cuts_of((10, listing(a)), (20, listing(b)), (30, listing(c)), (40, listing(c)))
    assert [(one.left, one.left_from) for one in anew] == [((a,), 10), ((b,), 10), ((c,), 10), ((), None)]
    one_after_another = cuts_of((10, listing(a)), (20, listing(a, b)), (30, listing(a, b, c)), (31, listing(a, b, c)))
    assert [(names(one), one.left_from) for one in one_after_another] == [
        ([], 10),
        (["a"], 10),
        (["b"], 20),
        (["c"], None),
    ]
    touched = replace(a, modified_ns=b.modified_ns)
    assert [one.left_from for one in cuts_of((10, {}), (10, listing(a)), (20, listing(touched)))] == [None, 10, 10]


@pytest.mark.parametrize(("size", "left_from"), [(101, [10, 20, 30]), (99, [10, 10, 10])], ids=["grows", "shrinks"])
def test_a_file_that_grew_until_it_was_taken_leaves_no_row_to_the_next_and_one_that_shrank_may(
    size: int, left_from: list[int]
) -> None:
    """A busy folder has one that is still written whenever a cut lists it; or rows of it went to the next one."""
    listed: dict[str, LedgerFile] = {}
    steps = []
    for end in (20, 30, 40):
        listed |= {path: replace(one, size_bytes=size) for path, one in listed.items()}
        listed |= listing(file_of(f"at {end}", end))
        steps.append((end, dict(listed)))
    assert [one.left_from for one in cuts_of((10, {}), *steps)] == [None, *left_from]


def test_a_file_that_changed_is_told_once_with_before_and_after_and_read_no_second_time() -> None:
    old, new = file_of("a", 5), file_of("a", 25, size=101)
    cuts = cuts_of(
        (10, listing(old)), (20, listing(old)), (30, listing(new)), (40, listing(new)), (50, {}), (60, listing(new))
    )
    assert [one.changed for one in cuts] == [
        (),
        (),
        (FileChange(before=old, after=new),),
        (),
        (FileChange(before=new, after=None),),
        (FileChange(before=None, after=new),),
    ]
    assert [names(one) for one in cuts] == [["a"], [], [], [], [], []]


@pytest.mark.parametrize("change", [{"size_bytes": 101}, {"modified_ns": 6 * MILLISECOND_NS}])
def test_a_file_changed_where_its_size_or_its_moment_did(change: dict[str, int]) -> None:
    before = file_of("a", 5)
    assert changes({"a": before}, listing(replace(before, **change)))
    assert not changes({"a": before}, listing(before))


def test_a_changed_file_is_a_doubt_that_says_what_it_was_and_what_it_is() -> None:
    gone = FileChange(before=file_of("a.parquet", 5_000, size=1_234), after=None)
    (doubt,) = findings_of(
        ledger_rewritten, evidence_of(cut=cut_of(ledger_slice=replace(ledger_slice_of(1, 2), changed=(gone,))))
    )
    assert doubt.doubt is Doubt.LEDGER_REWRITTEN
    assert "1 file that a cut had taken changed: a.parquet had 1,234 bytes of 1970-01-01 00:00:05" in doubt.sentence
    assert "now nothing" in doubt.sentence
    (since,) = findings_of(ledger_rewritten, evidence_of(cluster=ClusterState(ledger_files=(gone,) * 7)))
    assert since.sentence.count("a.parquet had") == 5
    assert list(findings_of(ledger_rewritten, evidence_of())) == []


def test_an_empty_slice_takes_no_file_unless_the_books_begin_there() -> None:
    """No position lies in it, so its rows would seem to stand before the baseline."""
    old, moved_in = file_of("old", 1), file_of("moved in", 2)
    cuts = cuts_of((10, listing(old)), (20, listing(old)), (20, listing(old, moved_in)), (21, listing(old, moved_in)))
    assert [names(one) for one in cuts] == [["old"], [], [], ["moved in"]]


# Real files.

LEDGER = LedgerSection(connection="l", table="billing.posting", kind="parquet", quiet_seconds=1)


def write(folder: Path, name: str, *keys: str, at_ms: int = 1_000, **columns: list[object]) -> None:
    path = folder / "billing" / "posting" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[object]] = {
        "entry_id": [f"{name}:{key}" for key in keys],
        "event_id": list(keys),
        "payment_id": list(keys),
        "leg": ["payment"] * len(keys),
        "amount_minor": [5] * len(keys),
        "currency": ["EUR"] * len(keys),
    }
    pq.write_table(pa.table(rows | columns), path)
    os.utime(path, ns=(at_ms * MILLISECOND_NS, at_ms * MILLISECOND_NS))


def opened(folder: Path, *slices: LedgerSlice, ledger: LedgerSection = LEDGER) -> ParquetLedger:
    return ParquetLedger(address=str(folder), ledger=ledger, stored_slices=lambda: slices, now=lambda: NOON)


def next_slice(folder: Path, *slices: LedgerSlice, end: int) -> LedgerSlice:
    start = slices[-1].position_end if slices else end
    return opened(folder, *slices).fix(ledger_slice_of(start, end, baseline=slices[0].position_end if slices else end))


def test_a_row_is_found_by_key_with_the_place_of_the_cut_that_took_its_file(tmp_path: Path) -> None:
    write(tmp_path, "old.parquet", "a")
    slices = [next_slice(tmp_path, end=2_000)]
    write(tmp_path, "one.parquet", "a", "b", at_ms=2_500)
    write(tmp_path, "day=7/two.parquet", "changed", at_ms=2_500)
    slices.append(next_slice(tmp_path, *slices, end=3_000))
    write(tmp_path, "moved in late.parquet", "a", at_ms=1_500)
    now = next_slice(tmp_path, *slices, end=4_000)
    write(tmp_path, "next.parquet", "a", "c", at_ms=4_500)
    write(tmp_path, "moved in later still.parquet", "a", at_ms=1_500)
    write(tmp_path, "day=7/two.parquet", "changed", "b", at_ms=2_600)
    write(tmp_path, "_temporary/0.parquet", "a")

    ledger = opened(tmp_path, *slices, now)
    found = ledger.look_up_rows(["a", "b", "changed", "nowhere"], now)
    places = {key: {row.row_id: locate_row(row, now).place for row in rows} for key, rows in sorted(found.items())}
    assert places == {
        "a": {
            "old.parquet:a": RecordLocation.BEFORE_BASELINE,
            "one.parquet:a": RecordLocation.EARLIER_SLICE,
            "moved in late.parquet:a": RecordLocation.SLICE,
            "next.parquet:a": RecordLocation.PENDING,
            "moved in later still.parquet:a": RecordLocation.PENDING,
        },
        "b": {"one.parquet:b": RecordLocation.EARLIER_SLICE, "day=7/two.parquet:b": RecordLocation.UNREAD},
        "changed": {"day=7/two.parquet:changed": RecordLocation.UNREAD},
    }
    assert ledger.keys_seen_before(now) == ("a",)
    assert [ledger.keys_below(now, below=below) for below in (1_500, 1_501)] == [(), ("a",)]
    assert ledger.files_to_scan(now) == [f"{tmp_path}/billing/posting/moved in late.parquet"]
    assert ledger.changed_files(now) == ()
    (tmp_path / "billing/posting/moved in late.parquet").unlink()
    assert ledger.files_to_scan(now) == []
    assert ledger.keys_below(now, below=1_501) == ()
    assert [change.after for change in ledger.changed_files(now)] == [None]
    assert set(known_files([*slices, now])) == {
        "old.parquet",
        "one.parquet",
        "day=7/two.parquet",
        "moved in late.parquet",
    }


def test_a_row_that_is_delivered_in_a_second_file_is_a_second_row(tmp_path: Path) -> None:
    same: dict[str, list[object]] = {"entry_id": [7]}
    write(tmp_path, "old.parquet", "z", at_ms=1)
    slices = [next_slice(tmp_path, end=500)]
    write(tmp_path, "first.parquet", "a", **same)
    slices.append(next_slice(tmp_path, *slices, end=2_000))
    write(tmp_path, "again.parquet", "a", at_ms=2_500, **same)
    write(tmp_path, "another.parquet", "b", at_ms=2_500, **same)

    def places(now: LedgerSlice) -> list[tuple[str, RecordLocation]]:
        found = opened(tmp_path, *slices, now).look_up_rows(["a", "b"], now)
        rows = ((f"{key} {row.row_id}", locate_row(row, now).place) for key in found for row in found[key])
        return sorted(rows)

    assert places(slices[-1]) == [
        ("a 7", RecordLocation.PENDING),
        ("a 7", RecordLocation.SLICE),
        ("b 7", RecordLocation.PENDING),
    ]
    now = next_slice(tmp_path, *slices, end=3_000)
    assert places(now) == [
        ("a 7", RecordLocation.EARLIER_SLICE),
        ("a 7", RecordLocation.SLICE),
        ("b 7", RecordLocation.SLICE),
    ]


def test_what_stands_in_a_file_that_was_rewritten_stays_unread_once_a_cut_has_told_of_it(tmp_path: Path) -> None:
    write(tmp_path, "one.parquet", "a")
    slices = [next_slice(tmp_path, end=500)]
    slices.append(next_slice(tmp_path, *slices, end=2_000))
    write(tmp_path, "one.parquet", "a", "added", at_ms=2_500)
    slices.append(next_slice(tmp_path, *slices, end=3_000))
    assert [len(one.changed) for one in slices] == [0, 0, 1]
    now = next_slice(tmp_path, *slices, end=4_000)
    assert now.changed == ()
    for one in (slices[-1], now):
        found = opened(tmp_path, *slices, now).look_up_rows(["a", "added"], one)
        assert {locate_row(row, one).place for rows in found.values() for row in rows} == {RecordLocation.UNREAD}


def test_a_key_that_is_no_text_is_found_too(tmp_path: Path) -> None:
    write(tmp_path, "one.parquet", "a", "b", event_id=[7, 8])
    now = next_slice(tmp_path, end=2_000)
    found = opened(tmp_path, now).look_up_rows(["7", "x"], now)
    assert {key: [row.row_id for row in rows] for key, rows in found.items()} == {"7": ["one.parquet:a"]}


def test_the_horizon_stays_behind_the_clock_and_the_mark_above_every_file(tmp_path: Path) -> None:
    write(tmp_path, "from a clock that is ahead.parquet", "a", at_ms=4 * 10**12)
    snapshot = opened(tmp_path).read_snapshot()
    assert snapshot.high_mark == 4 * 10**12 + 1
    longer = LEDGER.model_copy(update={"quiet_seconds": 3_600})
    assert opened(tmp_path, ledger=longer).read_snapshot().low_mark < snapshot.low_mark


def test_a_file_without_the_contracts_columns_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "one.parquet", "a")
    assert not opened(tmp_path).describe().key_is_unique
    for columns, refused in (
        ({"leg": "kind"}, "ledger file one.parquet: has no column kind; it has entry_id, event_id"),
        ({"written_at": "currency"}, "column currency, which the contract names written_at: got string"),
    ):
        other = LEDGER.model_copy(update={"columns": LedgerColumns.model_validate(columns)})
        with pytest.raises(LedgerRefused, match=refused):
            opened(tmp_path, ledger=other).describe()


def test_a_folder_that_is_not_there_and_an_address_that_is_none_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreachable, match=r"ledger folder of billing.posting: FileNotFoundError"):
        opened(tmp_path / "nowhere").describe()
    with pytest.raises(LedgerRefused, match="expected an absolute path or a URI"):
        opened(Path("lake")).describe()


def test_what_is_no_parquet_yet_is_passed_over_by_a_look_up(tmp_path: Path) -> None:
    write(tmp_path, "one.parquet", "a")
    (tmp_path / "billing/posting/half.parquet").write_bytes(b"PAR1")
    assert not opened(tmp_path).describe().key_is_unique
    now = next_slice(tmp_path, end=2_000)
    assert set(opened(tmp_path, now).look_up_rows(["a"], now)) == {"a"}


@pytest.mark.parametrize("outside", [True, False])
def test_a_link_to_a_place_outside_the_folder_is_refused_and_one_inside_is_followed(
    tmp_path: Path, outside: bool
) -> None:
    """Who may write files of a ledger must not have any other file read and shown."""
    write(tmp_path, "one.parquet", "a")
    write(tmp_path / "elsewhere", "secret.parquet", "b")
    there = tmp_path / "elsewhere" if outside else tmp_path
    name = "secret.parquet" if outside else "one.parquet"
    (tmp_path / "billing/posting/link.parquet").symlink_to(there / "billing" / "posting" / name)
    if not outside:
        assert len(opened(tmp_path).fix(ledger_slice_of(2_000, 2_000, baseline=2_000)).files) == 2
        return
    for ask in (lambda ledger: ledger.describe(), lambda ledger: ledger.read_snapshot()):
        with pytest.raises(LedgerRefused, match=r"link\.parquet: it is a link to a place outside"):
            ask(opened(tmp_path))


def test_an_amount_that_is_none_stops_no_look_up_and_equals_nothing(tmp_path: Path) -> None:
    amounts: list[object] = [float("nan"), float("inf"), 1.5, 1e300, 7.0, None]
    write(tmp_path, "one.parquet", *"abcdef", amount_minor=amounts)
    now = next_slice(tmp_path, end=2_000)
    found = opened(tmp_path, now).look_up_rows([*"abcdef"], now)
    read = {key: (row.amount_minor, row.currency) for key, (row,) in found.items()}
    assert read == dict.fromkeys("abcdf", (0, "")) | {"e": (7, "EUR")}
