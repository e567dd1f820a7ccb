"""The key index: what it answers, what it reads for that, and which files count."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.ledger.key_index import (
    INDEX_COLUMNS,
    IndexedCopy,
    IndexIncomplete,
    IndexUnreadable,
    ReadableIndexes,
    commit_index,
    delete_expired,
    find_copies,
    first_kept,
    index_folder,
    is_whole,
    key_hash,
    readable_indexes,
    row_groups_with,
)
from tallystick.model.offsets import TopicPartition
from tallystick.model.run_result import KeyIndex
from tests.unit.builders import INPUT, LAW, partition_at

OUTPUTS, INPUTS = "topic:billing.payments:0", f"ledger:{INPUT}:0"
SHAPE = pa.schema(zip(INDEX_COLUMNS, (pa.int64(), pa.int64(), pa.string(), pa.int64()), strict=True))
INPUT_PART = TopicPartition(topic=INPUT, partition=0)


def write(folder: Path, *copies: tuple[str, str, int], group_size: int = 1000) -> None:
    """One file of (match key, part, offset), as Spark writes it: in order of the hash."""
    rows = sorted((*key_hash(key), part, offset) for key, part, offset in copies)
    table = pa.Table.from_pylist([dict(zip(INDEX_COLUMNS, row, strict=True)) for row in rows], schema=SHAPE)
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "part-0.parquet", row_group_size=group_size)


def indexes(artifacts: Path, *cuts: Iterable[tuple[str, str, int]]) -> ReadableIndexes:
    """Cuts from 1 on, each with what it read."""
    by_cut: dict[int, KeyIndex] = {}
    for number, copies in enumerate(cuts, start=1):
        folder = index_folder(artifacts, "billing", number, attempt=1)
        write(folder, *copies)
        by_cut[number] = commit_index(artifacts, folder, copies=len(tuple(copies)), kept_from=1)
    return ReadableIndexes(artifacts=artifacts, by_cut=by_cut)


def test_a_copy_is_found_under_its_key_with_its_place_and_the_cut_that_read_it(tmp_path: Path) -> None:
    asked = indexes(tmp_path, [("a", OUTPUTS, 7), ("a", INPUTS, 4), ("b", INPUTS, 5)], [("a", OUTPUTS, 9)])
    assert asked.look_up(["a", "nowhere"]) == {
        "a": (
            IndexedCopy(f"{INPUTS}:4", 1),
            IndexedCopy(f"{OUTPUTS}:7", 1),
            IndexedCopy(f"{OUTPUTS}:9", 2),
        )
    }
    assert asked.look_up([]) == {}


def test_keys_that_share_half_their_hash_are_told_apart(tmp_path: Path) -> None:
    high, low = key_hash("a")
    folder = index_folder(tmp_path, "billing", 1, attempt=1)
    folder.mkdir(parents=True)
    rows = {"hash_high": [high], "hash_low": [low + 1], "part": [OUTPUTS], "kafka_offset": [3]}
    pq.write_table(pa.table(rows), folder / "part-0.parquet")
    assert (
        ReadableIndexes(artifacts=tmp_path, by_cut={1: commit_index(tmp_path, folder, copies=1, kept_from=1)}).look_up(
            ["a"]
        )
        == {}
    )


def test_only_row_groups_that_can_hold_a_key_are_read(tmp_path: Path) -> None:
    keys = [f"key-{number}" for number in range(1000)]
    folder = index_folder(tmp_path, "billing", 1, attempt=1)
    write(folder, *((key, OUTPUTS, 0) for key in keys), group_size=100)
    metadata = pq.read_metadata(folder / "part-0.parquet")
    in_order = sorted(keys, key=key_hash)
    assert metadata.num_row_groups == 10
    assert row_groups_with(metadata, sorted([key_hash(in_order[150])[0], key_hash(in_order[990])[0]])) == [1, 9]
    assert row_groups_with(metadata, []) == []


def test_a_row_group_that_does_not_say_its_bounds_is_read(tmp_path: Path) -> None:
    asked = indexes(tmp_path, [("a", OUTPUTS, 7)])
    (path,) = asked.paths
    pq.write_table(pq.read_table(path), path, write_statistics=False)
    assert asked.look_up(["a"]) == {"a": (IndexedCopy(f"{OUTPUTS}:7", 1),)}


@LAW
@given(keys=st.sets(st.text(max_size=8), min_size=1, max_size=60), asked=st.sets(st.text(max_size=8), max_size=20))
def test_what_is_found_is_what_was_written_however_small_the_row_groups_are(
    tmp_path_factory: pytest.TempPathFactory, keys: set[str], asked: set[str]
) -> None:
    artifacts = tmp_path_factory.mktemp("artifacts")
    folder = index_folder(artifacts, "billing", 1, attempt=1)
    write(folder, *((key, OUTPUTS, 1) for key in keys), group_size=7)
    found = ReadableIndexes(
        artifacts=artifacts, by_cut={1: commit_index(artifacts, folder, copies=len(keys), kept_from=1)}
    ).look_up(asked)
    assert set(found) == keys & asked


def test_an_index_is_whole_only_as_its_verdict_names_it(tmp_path: Path) -> None:
    (index,) = indexes(tmp_path, [("a", OUTPUTS, 7)]).by_cut.values()
    path = tmp_path / index.files[0].path
    written = path.read_bytes()
    assert is_whole(tmp_path, index)
    assert (index.copies, index.size_bytes) == (1, len(written))
    path.write_bytes(written[:-1])
    assert not is_whole(tmp_path, index)
    path.write_bytes(written[:-9] + b"x" + written[-8:])  # as long as it was
    assert not is_whole(tmp_path, index)
    path.unlink()
    assert not is_whole(tmp_path, index)


def test_an_index_that_is_gone_is_lost_unless_a_run_deleted_it_beyond_its_horizon(tmp_path: Path) -> None:
    stored = dict(indexes(tmp_path, [("a", OUTPUTS, 1)], [("b", OUTPUTS, 2)], [("c", OUTPUTS, 3)]).by_cut)
    assert told(tmp_path, stored) == ([1, 2, 3], (), 1)
    (tmp_path / stored[2].files[0].path).unlink()
    assert told(tmp_path, stored) == ([1, 3], (2,), 3)
    stored[3] = replace(stored[3], kept_from=3)  # whatever a later run's horizon is
    assert told(tmp_path, stored) == ([3], (), 3)
    (tmp_path / stored[3].files[0].path).unlink()
    assert told(tmp_path, stored) == ([], (3,), None)


def told(artifacts: Path, stored: dict[int, KeyIndex]) -> tuple[list[int], tuple[int, ...], int | None]:
    """Cuts that are whole, those that are lost, and from which on none is missing."""
    asked = readable_indexes(artifacts, stored)
    return list(asked.by_cut), asked.lost_cuts, asked.unbroken_from


@settings(LAW, max_examples=200)
@given(
    before=st.sampled_from([0, 0, 2]),
    windows=st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=5),
    horizon=st.integers(1, 6),
    log_start=st.integers(0, 9),
    lost=st.sets(st.integers(1, 5), max_size=2),
)
def test_an_absence_is_trusted_only_where_log_and_indexes_together_show_every_input(
    tmp_path_factory: pytest.TempPathFactory,
    before: int,
    windows: list[list[str]],
    horizon: int,
    log_start: int,
    lost: set[int],
) -> None:
    artifacts, starts, stored = tmp_path_factory.mktemp("artifacts"), [before], {}
    for number, keys in enumerate(windows, start=1):
        folder = index_folder(artifacts, "billing", number, attempt=1)
        write(folder, *((key, INPUTS, starts[-1] + place) for place, key in enumerate(keys)))
        starts.append(starts[-1] + len(keys))
        kept_from = first_kept(number, windows=horizon)
        stored[number] = commit_index(artifacts, folder, copies=len(keys), kept_from=kept_from)
        delete_expired(artifacts, "billing", number, attempt=1, kept_from=kept_from)
    for number in lost & set(stored):
        shutil.rmtree(index_folder(artifacts, "billing", number, attempt=1), ignore_errors=True)
    end, in_horizon = starts[-1], {n: one for n, one in stored.items() if n > len(windows) - horizon}
    asked = readable_indexes(artifacts, in_horizon)
    first = asked.unbroken_from or len(windows) + 1
    asked = replace(asked, reach={INPUT_PART: starts[first - 1]})
    known = {int(one.item_id.rpartition(":")[2]) for found in asked.look_up("abc").values() for one in found}
    shown = known | set(range(min(log_start, end), end))
    if not asked.leaves_unseen([partition_at(log_start=min(log_start, end), topic=INPUT)]):
        assert shown == set(range(end))


@pytest.mark.parametrize("read", [0, 2])
def test_an_index_that_does_not_hold_all_that_was_read_is_refused(tmp_path: Path, read: int) -> None:
    folder = index_folder(tmp_path, "billing", 1, attempt=1)
    write(folder, ("a", OUTPUTS, 7))
    with pytest.raises(IndexIncomplete, match=f"holds 1 copies; expected the {read} "):
        commit_index(tmp_path, folder, copies=read, kept_from=1)
    with pytest.raises(IndexIncomplete, match="holds 0 copies; expected the 2"):
        commit_index(tmp_path, tmp_path / "elsewhere", copies=2, kept_from=1)


@pytest.mark.parametrize("torn", [b"", b"PAR1", b"no Parquet at all"])
def test_a_file_that_is_not_whole_is_refused_by_name(tmp_path: Path, torn: bytes) -> None:
    folder = index_folder(tmp_path, "billing", 1, attempt=1)
    write(folder, ("a", OUTPUTS, 7))
    (folder / "torn.parquet").write_bytes(torn)
    with pytest.raises(IndexIncomplete, match=r"torn\.parquet: expected a file of a key index, got none"):
        commit_index(tmp_path, folder, copies=1, kept_from=1)


def test_a_file_whose_column_names_are_no_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"hash_high": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"hash_high", b"hash_hig\xe6"))
    with pytest.raises(IndexIncomplete, match=r"odd\.parquet: expected a file of a key index, got none"):
        commit_index(tmp_path, tmp_path, copies=1, kept_from=1)


def test_a_file_with_other_columns_is_no_index(tmp_path: Path) -> None:
    pq.write_table(pa.table({"hash_high": [1], "hash_low": [2]}), tmp_path / "other.parquet")
    with pytest.raises(IndexIncomplete, match=r"other\.parquet: expected the columns hash_high, "):
        commit_index(tmp_path, tmp_path, copies=1, kept_from=1)


def test_a_text_that_is_none_is_told_with_its_file_by_the_look_up_that_meets_it(tmp_path: Path) -> None:
    """Nothing of the footer is wrong, so the file is as its verdict names it."""
    folder = index_folder(tmp_path, "billing", 1, attempt=1)
    write(folder, ("a", OUTPUTS, 7))
    path = folder / "part-0.parquet"
    path.write_bytes(path.read_bytes().replace(OUTPUTS.encode(), b"\xfb" + OUTPUTS[1:].encode()))
    index = commit_index(tmp_path, folder, copies=1, kept_from=1)
    asked = readable_indexes(tmp_path, {1: index})
    assert asked.by_cut == {1: index}
    with pytest.raises(IndexUnreadable, match=r"part-0\.parquet: expected a file of a key index, got one that"):
        asked.look_up(["a"])
    path.unlink()
    assert readable_indexes(tmp_path, {1: index}).lost_cuts == (1,)


def test_a_file_that_no_verdict_names_is_read_by_nobody(tmp_path: Path) -> None:
    asked = indexes(tmp_path, [("a", OUTPUTS, 7)])
    write(index_folder(tmp_path, "billing", 1, attempt=2), ("b", OUTPUTS, 8))
    assert asked.look_up(["a", "b"]) == {"a": (IndexedCopy(f"{OUTPUTS}:7", 1),)}


def test_what_lies_beyond_the_horizon_goes_and_so_do_other_attempts(tmp_path: Path) -> None:
    for number in range(1, 6):
        write(index_folder(tmp_path, "billing", number, attempt=1), ("a", OUTPUTS, number))
    write(index_folder(tmp_path, "billing", 5, attempt=2), ("a", OUTPUTS, 5))
    write(index_folder(tmp_path, "other", 1, attempt=1), ("a", OUTPUTS, 1))
    assert delete_expired(tmp_path, "billing", 5, attempt=2, kept_from=first_kept(5, windows=3)) == (1, 2)
    left = sorted(str(path.relative_to(tmp_path / "key_index")) for path in tmp_path.rglob("attempt=*"))
    assert left == [
        "billing/cut=3/attempt=1",
        "billing/cut=4/attempt=1",
        "billing/cut=5/attempt=2",
        "other/cut=1/attempt=1",
    ]
    assert delete_expired(tmp_path, "billing", 5, attempt=2, kept_from=first_kept(5, windows=3)) == ()


@pytest.mark.parametrize(
    ("log_start", "reach", "unseen"),
    [
        (0, {}, False),
        (0, {INPUT_PART: 5}, False),
        (9, {INPUT_PART: 0}, False),
        (9, {INPUT_PART: 5}, True),
        (9, {}, True),
    ],
)
def test_an_input_may_be_out_of_sight_where_neither_log_nor_index_begins_at_the_beginning(
    tmp_path: Path, log_start: int, reach: dict[TopicPartition, int], unseen: bool
) -> None:
    part = partition_at(log_start=log_start, topic=INPUT)
    assert ReadableIndexes(artifacts=tmp_path, reach=reach).leaves_unseen([part]) is unseen


def test_one_key_is_found_in_each_cut_and_a_cut_whose_files_are_not_as_named_is_told(tmp_path: Path) -> None:
    asked = indexes(tmp_path, [("a", OUTPUTS, 7), ("b", INPUTS, 5)], [("a", OUTPUTS, 9)], [("b", OUTPUTS, 11)])
    stored = dict(asked.by_cut)
    found = (IndexedCopy(f"{OUTPUTS}:7", 1), IndexedCopy(f"{OUTPUTS}:9", 2))
    assert find_copies(tmp_path, stored, "a") == (found, ())
    assert find_copies(tmp_path, stored, "nowhere") == ((), ())
    second = tmp_path / stored[2].files[0].path
    whole = second.read_bytes()
    second.write_bytes(whole[:-1])
    assert find_copies(tmp_path, stored, "a") == (found[:1], (2,))
    named_otherwise = replace(stored[2], files=(replace(stored[2].files[0], sha256="0" * 64),))
    second.write_bytes(whole)
    assert find_copies(tmp_path, stored | {2: named_otherwise}, "a") == (found[:1], (2,))
    (tmp_path / stored[3].files[0].path).unlink()
    assert find_copies(tmp_path, stored, "a") == (found, (3,))


def test_the_index_of_a_cut_that_is_no_longer_kept_is_not_asked_for_a_key(tmp_path: Path) -> None:
    stored = dict(indexes(tmp_path, [("a", OUTPUTS, 7)], [("a", OUTPUTS, 9)]).by_cut)
    stored[2] = replace(stored[2], kept_from=2)
    assert find_copies(tmp_path, stored, "a") == ((IndexedCopy(f"{OUTPUTS}:9", 2),), ())
