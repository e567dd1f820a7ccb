"""The key index that tasks write: asked key by key, and held whole against the cut that follows."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.ledger.key_index import (
    IndexedCopy,
    IndexIncomplete,
    IndexUnreadable,
    ReadableIndexes,
    commit_index,
    key_hash,
)
from tallystick_spark.readers import key_index_files
from tallystick_spark.readers.key_index_files import IndexPlan, IndexWriter, index_hashes, read_before
from tests.unit.builders import LAW

SEED = 7
KEYS = ["a", "b", "", "ü", "9b1d", "with space", "\u65e5\u672c", *(f"key-{number}" for number in range(200))]


def write(folder: Path, keys: list[str], *, topic: str = "out", first: int = 0, seed: int = SEED) -> tuple[Path, ...]:
    """Events of two partitions, by one task."""
    writer = IndexWriter(folder=folder, seed=seed)
    for partition in (0, 1):
        mine = keys[partition::2]
        writer.add(topic, partition, [key.encode() for key in mine], first + np.arange(len(mine), dtype=np.int64))
    writer.close()
    return tuple(sorted(folder.glob("*.parquet")))


def found(folder: Path, *older: Path, seed: int = SEED) -> set[tuple[str, int, int]]:
    copies = sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
    places = read_before(IndexPlan(folder=folder, seed=seed, older=older), copies)
    return {(*part, offset) for part, offsets in places.items() for offset in offsets.tolist()}


@pytest.mark.parametrize("seed", [0, SEED, 3832961802276587244, (1 << 63) - 1])
def test_hashes_of_many_keys_are_those_of_each(seed: int) -> None:
    high, low = index_hashes([key.encode() for key in KEYS], len(KEYS), seed)
    assert [key_hash(key, seed) for key in KEYS] == list(zip(high.tolist(), low.tolist(), strict=True))
    assert key_hash("a", seed) != key_hash("a", seed ^ 1)


def test_what_a_task_writes_is_found_by_key_with_its_place(tmp_path: Path) -> None:
    write(tmp_path / "cut", KEYS)
    index = commit_index(tmp_path, tmp_path / "cut", copies=len(KEYS), kept_from=1, seed=SEED)
    asked = ReadableIndexes(artifacts=tmp_path, by_cut={3: index})
    answer = asked.look_up([*KEYS, "nowhere"])
    assert set(answer) == set(KEYS)
    assert answer["b"] == (IndexedCopy("topic:out:1:0", 3),)
    assert (asked.paths_of(SEED), asked.paths_of(None)) == (asked.paths_of(SEED), ())
    for path in asked.paths_of(SEED):
        hashes = pq.read_table(path)["hash_high"].to_pylist()
        assert hashes == sorted(hashes)


def test_a_task_that_runs_again_replaces_its_files(tmp_path: Path) -> None:
    assert write(tmp_path, KEYS) == write(tmp_path, KEYS)
    assert not list(tmp_path.glob("*.unfinished"))


def test_keys_that_come_again_are_told_by_their_new_place_and_others_are_not(tmp_path: Path) -> None:
    older = (*write(tmp_path / "1", ["a", "b"]), *write(tmp_path / "2", ["c", "d"]))
    write(tmp_path / "3", ["x", "d", "a", "y"], first=50)
    assert found(tmp_path / "3", *older) == {("out", 1, 50), ("out", 0, 51)}
    assert found(tmp_path / "3") == set()
    assert found(tmp_path / "empty", *older) == set()


def test_a_cut_whose_index_does_not_hold_all_that_was_read_is_held_against_nothing(tmp_path: Path) -> None:
    older = write(tmp_path / "1", ["a", "b"])
    write(tmp_path / "2", ["a", "b"])
    with pytest.raises(IndexIncomplete, match="holds 2 copies; expected the 3"):
        read_before(IndexPlan(folder=tmp_path / "2", seed=SEED, older=older), 3)


@pytest.mark.parametrize("sound", [True, False])
def test_an_earlier_cuts_file_that_cannot_be_read_is_told_with_its_name(tmp_path: Path, sound: bool) -> None:
    """Its footer is sound, and so are its hashes: only where one comes again its text is read."""
    (older,) = write(tmp_path / "1", ["a"])
    write(tmp_path / "2", ["a"])
    write(tmp_path / "3", ["b"])
    if sound:
        assert found(tmp_path / "2", older) == {("out", 0, 0)}
        return
    older.write_bytes(older.read_bytes().replace(b"topic:out", b"\xfbopic:out"))
    with pytest.raises(IndexUnreadable, match=f"{older.name}: expected a file of a key index, got one that cannot"):
        found(tmp_path / "2", older)
    assert found(tmp_path / "3", older) == set()


def test_the_half_of_a_hash_that_is_held_against_first_is_not_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    high, low = index_hashes([b"a", b"b"], 2, SEED)
    monkeypatch.setattr(key_index_files, "index_hashes", lambda keys, count, seed: (high[:1], low[:1]))
    older = write(tmp_path / "1", ["a", "-"])
    monkeypatch.setattr(key_index_files, "index_hashes", lambda keys, count, seed: (high[:1], low[1:]))
    write(tmp_path / "2", ["b", "-"])
    assert found(tmp_path / "2", *older) == set()


@LAW
@given(
    older=st.lists(st.sets(st.sampled_from(KEYS[:12])), max_size=3),
    new=st.sets(st.sampled_from(KEYS[:12])),
    together=st.sampled_from([3, 1 << 20]),
)
def test_all_that_comes_again_is_found_however_it_is_cut_up(
    older: list[set[str]], new: set[str], together: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index_files, "COPIES_OF_A_FILE", together)
        patch.setattr(key_index_files, "CHECKED_TOGETHER", together)
        paths = [path for number, keys in enumerate(older) for path in write(folder / str(number), sorted(keys))]
        mine = sorted(new)
        write(folder / "new", mine)
        again = {("out", place % 2, place // 2) for place, key in enumerate(mine) if any(key in one for one in older)}
        assert found(folder / "new", *paths) == again
