"""The key index as tasks write it, and as a cut is held against those before it; no Spark in it.

What it holds is tallystick/ledger/key_index.py. A task writes what it decodes, some at a time, each file in order of
the hash.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from xxhash import xxh3_128_digest

from tallystick.host.artifacts import Copies, Place, whole_file
from tallystick.ledger.key_index import (
    INDEX_COLUMNS,
    LOW_BITS,
    files_of,
    open_index_file,
    row_groups_between,
    row_groups_with,
)

Numbers = NDArray[np.int64]

COPIES_OF_A_FILE = 1 << 20
_ROW_GROUP_COPIES = 1 << 16
"""A look-up of one key reads so many."""
_SCHEMA = pa.schema(
    [("hash_high", pa.int64()), ("hash_low", pa.int64()), ("part", pa.string()), ("kafka_offset", pa.int64())]
)
_ENCODINGS = dict.fromkeys(("hash_high", "hash_low", "kafka_offset"), "DELTA_BINARY_PACKED")
"""Encoding that keeps only the differences of sorted numbers; of others as many bits as the largest has."""
_SLOTS_A_COPY, _SLOTS_MIN, _SLOTS_MAX = 32, 1 << 16, 1 << 24
CHECKED_TOGETHER = 1 << 23
"""Number of new copies that are compared with older ones at once, and stay in memory."""


class IndexRow(TypedDict):
    """One copy of a key as a file of the index holds it; its columns are INDEX_COLUMNS."""

    hash_high: int
    hash_low: int
    part: str
    kafka_offset: int


@dataclass(frozen=True, kw_only=True)
class IndexPlan:
    """The place a scan writes its index to, and earlier cuts' files to compare it with (older). seed: of the hashes.

    copies: where the driver reads files of a store of objects.
    """

    folder: Place
    seed: int
    older: tuple[Path, ...] = ()
    copies: Copies | None = None

    def written(self) -> Path:
        """Return a folder of this machine with what was written. Raises ArtifactsUnreachable."""
        if isinstance(self.folder, Path):
            return self.folder
        assert self.copies is not None  # as reconcile_app makes the plan
        return self.copies.fetch_folder(self.folder)


def index_hashes(match_keys: Iterable[bytes], count: int, seed: int) -> tuple[Numbers, Numbers]:
    """Hash many keys like `tallystick.ledger.key_index.key_hash` with a seed. Shape: int64, `count` of each half."""
    digests = np.frombuffer(b"".join(map(xxh3_128_digest, match_keys, repeat(seed))), dtype=">u8").reshape(count, 2)
    return digests[:, 0].astype("<u8").view(np.int64), (digests[:, 1] & LOW_BITS).astype(np.int64)


@dataclass
class IndexWriter:
    """Writes what one task decodes. A file is named after its first copy: a task that runs again replaces its own."""

    folder: Place
    seed: int
    _waiting: list[tuple[str, Numbers, Numbers, Numbers]] = field(default_factory=list)
    _copies: int = 0

    def add(self, topic: str, partition: int, match_keys: Sequence[bytes], offsets: Numbers) -> None:
        """Add readable events of one partition."""
        if len(offsets):
            part = f"topic:{topic}:{partition}"
            self._waiting.append((part, *index_hashes(match_keys, len(offsets), self.seed), offsets))
            self._copies += len(offsets)
            if self._copies >= COPIES_OF_A_FILE:
                self.close()

    def close(self) -> None:
        """Write what waits."""
        if not self._waiting:
            return
        parts, *columns = zip(*self._waiting, strict=True)
        high, low, offsets = (np.concatenate(column) for column in columns)
        names = sorted(set(parts))
        part = np.repeat([names.index(one) for one in parts], [len(column) for column in columns[0]]).astype(np.int32)
        order = np.argsort(high)
        ordered = pa.table(
            [
                pa.array(high[order]),
                pa.array(low[order]),
                pa.DictionaryArray.from_arrays(pa.array(part[order]), pa.array(names)).cast(pa.string()),
                pa.array(offsets[order]),
            ],
            schema=_SCHEMA,
        )
        name = f"{parts[0].replace(':', '-')}-{int(columns[2][0][0])}"
        write_whole(ordered, self.folder, name)
        self._waiting, self._copies = [], 0


def write_whole(index: pa.Table, folder: Place, name: str) -> None:
    """Write one file. It gets its name once it is whole. Raises ArtifactsUnreachable."""
    with whole_file(folder / f"{name}.parquet") as unfinished:
        pq.write_table(
            index,
            unfinished,
            row_group_size=_ROW_GROUP_COPIES,
            compression="none",
            use_dictionary=["part"],
            column_encoding=_ENCODINGS,
        )


def read_before(plan: IndexPlan, copies: int) -> dict[tuple[str, int], Numbers]:
    """Offsets, by topic and partition, of the events of this cut whose key an earlier cut has read.

    copies: how many events were read. Raises IndexIncomplete, IndexUnreadable, ArtifactsUnreachable.
    """
    found: dict[tuple[str, int], list[int]] = {}
    new = files_of(plan.written(), copies=copies)
    if not new or not plan.older:
        return {}
    parts = -(-copies // CHECKED_TOGETHER)
    bounds = [-(1 << 63) + (1 << 64) * number // parts for number in range(parts + 1)]
    for start, end in pairwise(bounds):
        for part, offset in _read_before_in(new, plan.older, start, end - 1):
            _, topic, partition = part.split(":")
            found.setdefault((topic, int(partition)), []).append(offset)
    return {part: np.unique(np.array(offsets, dtype=np.int64)) for part, offsets in found.items()}


def _read_before_in(new: Sequence[Path], older: Sequence[Path], first: int, last: int) -> Iterator[tuple[str, int]]:
    """Yield part and offset of each new copy with a hash from first to last that older files hold too."""
    ours = np.sort(np.concatenate([_column(path, first, last) for path in new]))
    if not len(ours):
        return
    slots = _slots(ours)
    with ThreadPoolExecutor(os.cpu_count()) as beside:
        both = list(beside.map(lambda path: _common(ours, slots, _column(path, first, last)), older))
    common = np.unique(np.concatenate(both))
    if not len(common):
        return
    known = {(row["hash_high"], row["hash_low"]) for path in older for row in _rows(path, common)}
    for path in new:
        for row in _rows(path, common):
            if (row["hash_high"], row["hash_low"]) in known:
                yield row["part"], row["kafka_offset"]


def _slots(hashes: Numbers) -> NDArray[np.bool_]:
    """Mark the values that the lowest bits of these hashes have: one look at it rules out most of the others."""
    wanted = min(max(len(hashes) * _SLOTS_A_COPY, _SLOTS_MIN), _SLOTS_MAX)
    slots = np.zeros(1 << (wanted.bit_length() - 1), dtype=bool)
    slots[hashes & (len(slots) - 1)] = True
    return slots


def _common(ours: Numbers, slots: NDArray[np.bool_], theirs: Numbers) -> Numbers:
    """Return the hashes that both have. ours: sorted."""
    candidates = theirs[slots[theirs & (len(slots) - 1)]]
    places = np.searchsorted(ours, candidates)
    places[places == len(ours)] = 0
    common: Numbers = candidates[ours[places] == candidates]
    return common


def _column(path: Path, first: int, last: int) -> Numbers:
    """Return upper halves of the file's hashes from first to last, and perhaps some beside."""
    with open_index_file(path) as opened:
        groups = row_groups_between(opened.metadata, first, last)
        if not groups:
            return np.empty(0, dtype=np.int64)
        hashes: Numbers = opened.read_row_groups(groups, columns=["hash_high"])["hash_high"].to_numpy()
    return hashes[(hashes >= first) & (hashes <= last)]


def _rows(path: Path, wanted: Numbers) -> list[IndexRow]:
    """Return the file's rows whose hash has one of these upper halves, which are sorted."""
    with open_index_file(path) as opened:
        groups = row_groups_with(opened.metadata, wanted.tolist())
        table = opened.read_row_groups(groups, columns=list(INDEX_COLUMNS))
        high = table["hash_high"].to_numpy()
        places = np.searchsorted(wanted, high)
        places[places == len(wanted)] = 0
        rows: list[IndexRow] = table.filter(pa.array(wanted[places] == high)).to_pylist()
    return rows
