"""The index of match keys that earlier cuts have read, and where: the log forgets them, and owners archive ledgers.

One index per judged cut: Parquet files of one row per readable event, sorted by the hash of its key; of topic_to_topic
over both sides. Only files that a stored verdict names count, so that what a killed attempt has written is read by
nobody. Decides what an index holds and how it is asked; Spark's tasks write it
(spark_apps/tallystick_spark/readers/key_index_files.py, and of topic_to_topic key_index_frame.py).
"""

import secrets
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from xxhash import xxh3_128_digest

from tallystick.host.artifacts import Place, delete_folder, folders_in
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import TopicPartition
from tallystick.model.run_result import IndexFile, KeyIndex

INDEX_COLUMNS = ("hash_high", "hash_low", "part", "kafka_offset")
"""Two signed 64-bit halves of the hash; what an item id begins with ("topic:billing.payments:0"); the offset."""
LOW_BITS = 0xFFFFFFFF
"""The bits kept of a seeded hash's lower half: 96 in all tell 5 billion keys from 30 million others."""


class IndexIncomplete(TallystickError):
    """Not all that was written came to the folder where later runs look for it. Leaves no verdict."""

    retryable = True


class IndexUnreadable(TallystickError):
    """A file that a verdict names is as it was written down, and still nobody can read it."""


class IndexedCopy(NamedTuple):
    """The place where an earlier cut read a copy of a key."""

    item_id: str
    cut_n: int


@dataclass(frozen=True, kw_only=True)
class ReadableIndexes:
    """The indexes that one run may ask: of the cuts in its reach whose files are as their verdicts name them.

    lost_cuts: those whose files are not. reach: where the cut `unbroken_from` begins on each input partition, and so
    the first offset of which the indexes know; empty where some of what follows was never read. artifacts: the folder
    of this machine that has the files, or copies of them.
    """

    artifacts: Path
    by_cut: Mapping[int, KeyIndex] = field(default_factory=dict)
    lost_cuts: tuple[int, ...] = ()
    reach: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def unbroken_from(self) -> int | None:
        """The oldest cut from which on no index is missing; None without one."""
        return next((cut_n for cut_n in self.by_cut if cut_n > max(self.lost_cuts, default=0)), None)

    @property
    def _seeds(self) -> set[int | None]:
        return {index.seed for index in self.by_cut.values()}

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.paths_of(None)

    def paths_of(self, seed: int | None) -> tuple[Path, ...]:
        """Files whose hashes have this seed; of the others none can be compared."""
        return tuple(
            self.artifacts / file.path for index in self.by_cut.values() if index.seed == seed for file in index.files
        )

    def leaves_unseen(self, inputs: Iterable[PartitionSnapshot]) -> bool:
        """Return whether an input may be where neither retained log nor index reaches, also from before the books."""
        return any(min(part.log_start, self.reach.get(part.topic_partition, part.log_start)) > 0 for part in inputs)

    def look_up(self, match_keys: Collection[str]) -> dict[str, tuple[IndexedCopy, ...]]:
        """Return the copies of these keys that earlier cuts read, in order. Unknown keys are not in the answer.

        Raises IndexUnreadable.
        """
        found: dict[str, list[IndexedCopy]] = {}
        hashed_by = {seed: {key_hash(key, seed): key for key in match_keys} for seed in self._seeds}
        for cut_n, index in self.by_cut.items() if match_keys else ():
            by_hash = hashed_by[index.seed]
            for file in index.files:
                for item_id, hashed in _entries(self.artifacts / file.path, by_hash):
                    found.setdefault(by_hash[hashed], []).append(IndexedCopy(item_id, cut_n))
        return {key: tuple(sorted(copies)) for key, copies in sorted(found.items())}


def key_hash(match_key: str, seed: int | None = None) -> tuple[int, int]:
    """Return the first 128 bits of the key's SHA-256, as two signed numbers; Spark computes the same.

    With a seed, XXH3 of 128 bits, of whose lower half LOW_BITS are kept: a tenth of the time, and nobody who does not
    know the seed makes two keys of one hash.
    """
    if seed is None:
        digest = sha256(match_key.encode()).digest()
        return int.from_bytes(digest[:8], signed=True), int.from_bytes(digest[8:16], signed=True)
    digest = xxh3_128_digest(match_key.encode(), seed)
    return int.from_bytes(digest[:8], signed=True), int.from_bytes(digest[8:]) & LOW_BITS


def new_seed() -> int:
    """Draw a seed, once for the books of a contract; each index keeps it."""
    return secrets.randbits(63)


def index_folder(artifacts: Place, contract_name: str, cut_n: int, *, attempt: int) -> Place:
    """Return the folder that one attempt at a cut writes to; another attempt has a folder of its own."""
    return _contract_folder(artifacts, contract_name) / f"cut={cut_n}" / f"attempt={attempt}"


def _contract_folder(artifacts: Place, contract_name: str) -> Place:
    return artifacts / "key_index" / contract_name


def commit_index(artifacts: Path, folder: Path, *, copies: int, kept_from: int, seed: int | None = None) -> KeyIndex:
    """Describe what was written to a folder, so that a verdict can name it. copies: how many were read.

    kept_from: the first cut whose index is kept. Raises IndexIncomplete.
    """
    paths = files_of(folder, copies=copies)
    return KeyIndex(
        copies=copies,
        kept_from=kept_from,
        seed=seed,
        files=tuple(
            IndexFile(
                path=str(path.relative_to(artifacts)), size_bytes=path.stat().st_size, sha256=_sha256_of_file(path)
            )
            for path in paths
        ),
    )


def files_of(folder: Path, *, copies: int) -> list[Path]:
    """Return the files that were written to a folder. Raises IndexIncomplete unless they hold so many copies."""
    paths = sorted(folder.glob("*.parquet"))
    found = sum(map(_copies_of, paths))
    if found != copies:
        raise IndexIncomplete(
            f"{folder}: the key index holds {found:,} copies; expected the {copies:,} that Spark has read. What to "
            "do: let TALLYSTICK_ARTIFACTS_DIR be one folder that driver and executors share, or a store such as "
            "s3://bucket/prefix; the run can be tried again"
        )
    return paths


_NOT_READ = (pa.ArrowException, OSError, UnicodeDecodeError)
"""Errors of pyarrow for a file that is no Parquet. The last: for a column's name, or a text in it."""


def _copies_of(path: Path) -> int:
    """Return how many copies a file holds. Raises IndexIncomplete where it is not whole, or holds something else.

    A row of each group is read here: where its footer is at odds with its schema, reading says so, and asking for the
    group's bounds, as a look-up does, would end the process.
    """
    try:
        with pq.ParquetFile(path) as opened:
            metadata = opened.metadata
            columns = metadata.schema.to_arrow_schema().names
            for group in range(metadata.num_row_groups if INDEX_COLUMNS[0] in columns else 0):
                next(opened.iter_batches(batch_size=1, row_groups=[group], columns=[INDEX_COLUMNS[0]]), None)
    except _NOT_READ as error:
        raise IndexIncomplete(f"{path}: expected a file of a key index, got none that can be read") from error
    if set(columns) != set(INDEX_COLUMNS):
        raise IndexIncomplete(f"{path}: expected the columns {', '.join(INDEX_COLUMNS)} of a key index")
    return int(metadata.num_rows)


def readable_indexes(artifacts: Path, stored: Mapping[int, KeyIndex]) -> ReadableIndexes:
    """Sort the indexes that verdicts name, by cut, into whole and lost ones. One that a run has deleted is neither."""
    kept_from = max((index.kept_from for index in stored.values()), default=0)
    kept = {cut_n: index for cut_n, index in sorted(stored.items()) if cut_n >= kept_from}
    whole = {cut_n: index for cut_n, index in kept.items() if is_whole(artifacts, index)}
    return ReadableIndexes(
        artifacts=artifacts, by_cut=whole, lost_cuts=tuple(cut_n for cut_n in kept if cut_n not in whole)
    )


def find_copies(
    artifacts: Path, stored: Mapping[int, KeyIndex], match_key: str
) -> tuple[tuple[IndexedCopy, ...], tuple[int, ...]]:
    """Return the copies of one key that these cuts read, and the cuts whose index could not be asked.

    For one question of a person: a file is read as a whole only where it has the key, and is then the one that its
    verdict names; of the others the size is compared.
    """
    kept_from = max((index.kept_from for index in stored.values()), default=0)
    found: list[IndexedCopy] = []
    lost = []
    for cut_n, index in sorted(stored.items()):
        if cut_n < kept_from:
            continue
        try:
            found += [IndexedCopy(item_id, cut_n) for item_id in _copies_in(artifacts, index, match_key)]
        except (IndexIncomplete, IndexUnreadable):
            lost.append(cut_n)
    return tuple(found), tuple(lost)


def _copies_in(artifacts: Path, index: KeyIndex, match_key: str) -> list[str]:
    """Item ids of the key's copies in one cut's index. Raises IndexIncomplete, IndexUnreadable."""
    by_hash = {key_hash(match_key, index.seed): match_key}
    found = []
    for file in index.files:
        path = artifacts / file.path
        if not path.is_file() or path.stat().st_size != file.size_bytes:
            raise IndexIncomplete(f"{path}: expected the file that its verdict names")
        hits = [item_id for item_id, _ in _entries(path, by_hash)]
        if hits and not _is_unchanged(path, file):
            raise IndexIncomplete(f"{path}: expected the file that its verdict names")
        found += hits
    return found


def is_whole(artifacts: Path, index: KeyIndex) -> bool:
    """Return whether all its files are there, byte by byte as their verdict names them."""
    return all(_is_unchanged(artifacts / file.path, file) for file in index.files)


def _is_unchanged(path: Path, file: IndexFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size_bytes and _sha256_of_file(path) == file.sha256


def _sha256_of_file(path: Path) -> str:
    with path.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


@contextmanager
def open_index_file(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a file of an index. Raises IndexUnreadable also for what cannot be read while it is open."""
    try:
        with pq.ParquetFile(path) as opened:
            yield opened
    except _NOT_READ as error:
        raise IndexUnreadable(
            f"{path}: expected a file of a key index, got one that cannot be read ({type(error).__name__}). What "
            "to do: move it away; its cut's index then counts as lost, and the run can be tried again"
        ) from error


def _entries(path: Path, by_hash: Mapping[tuple[int, int], str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Return item id and hash of each wanted copy. Reads only row groups whose range of hashes holds one of them."""
    wanted = sorted({high for high, _ in by_hash})
    with open_index_file(path) as opened:
        groups = row_groups_with(opened.metadata, wanted)
        if not groups:
            return
        table = opened.read_row_groups(groups, columns=list(INDEX_COLUMNS))
        hits = table.filter(pc.is_in(table["hash_high"], pa.array(wanted, pa.int64()))).to_pylist()
    for row in hits:
        hashed = (row["hash_high"], row["hash_low"])
        if hashed in by_hash:
            yield f"{row['part']}:{row['kafka_offset']}", hashed


def row_groups_with(metadata: pq.FileMetaData, wanted: list[int]) -> list[int]:
    """Return numbers of the row groups that may hold one of these upper halves of hashes, which are in order.

    One that does not say its bounds may hold any.
    """

    def holds_one(first: int, last: int) -> bool:
        position = bisect_left(wanted, first)
        return position < len(wanted) and wanted[position] <= last

    return _row_groups(metadata, holds_one)


def row_groups_between(metadata: pq.FileMetaData, first: int, last: int) -> list[int]:
    """Return numbers of the row groups that may hold an upper half from first to last."""
    return _row_groups(metadata, lambda least, greatest: least <= last and first <= greatest)


def _row_groups(metadata: pq.FileMetaData, is_wanted: Callable[[int, int], bool]) -> list[int]:
    """Return the numbers of the row groups that are wanted by their bounds; one without bounds is wanted."""
    column = metadata.schema.to_arrow_schema().get_field_index("hash_high")
    groups = []
    for number in range(metadata.num_row_groups):
        bounds = metadata.row_group(number).column(column).statistics
        if bounds is None or not bounds.has_min_max or is_wanted(bounds.min, bounds.max):
            groups.append(number)
    return groups


def first_kept(cut_n: int, *, windows: int) -> int:
    """Return the oldest cut whose index the run after this one reads. windows: how many cuts back it looks."""
    return cut_n - windows + 1


def delete_expired(
    artifacts: Place, contract_name: str, cut_n: int, *, attempt: int, kept_from: int
) -> tuple[int, ...]:
    """Delete what no later run reads once this cut is judged: indexes beyond the reach, and those of other attempts.

    Gives the numbers of the cuts whose index went. The only place where an index is deleted.
    Raises ArtifactsUnreachable.
    """
    forgotten = []
    indexes = _contract_folder(artifacts, contract_name)
    for name in folders_in(indexes):
        if name.startswith("cut=") and (number := int(name.removeprefix("cut="))) < kept_from:
            delete_folder(indexes / name)
            forgotten.append(number)
    attempts = indexes / f"cut={cut_n}"
    for name in folders_in(attempts):
        if name.startswith("attempt=") and name != f"attempt={attempt}":
            delete_folder(attempts / name)
    return tuple(sorted(forgotten))
