"""The key index in memory: what tasks write, what a verdict names, and what a run asks of earlier ones."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tallystick.ledger.key_index import IndexedCopy, IndexIncomplete, ReadableIndexes
from tallystick.model.run_result import IndexFile, KeyIndex

Copies = dict[str, list[tuple[str, int]]]
"""By match key: topic and partition as an item id has them, and offset."""


@dataclass
class Folders:
    """What stands under the artifacts folder."""

    by_path: dict[str, Copies] = field(default_factory=dict)


FOLDERS = Folders()


@dataclass
class IndexWriter:
    """Stands for `key_index_files.IndexWriter`."""

    folder: Path
    seed: int

    def add(self, topic: str, partition: int, match_keys: Sequence[bytes], offsets: Any) -> None:
        copies = FOLDERS.by_path.setdefault(str(self.folder), {})
        for key, offset in zip(match_keys, offsets.tolist(), strict=True):
            copies.setdefault(key.decode(), []).append((f"topic:{topic}:{partition}", offset))

    def add_events(self, events: Sequence[Mapping[str, Any]], *, side: str = "topic") -> None:
        """The same of rows that were decoded already. side: topic, or ledger where an input topic plays its part."""
        copies = FOLDERS.by_path.setdefault(str(self.folder), {}) if events else {}
        for one in events:
            part = f"{side}:{one['topic']}:{one['partition']}"
            copies.setdefault(one["match_key"], []).append((part, one["kafka_offset"]))

    def close(self) -> None:
        pass


def forget(folder: Path) -> None:
    FOLDERS.by_path.pop(str(folder), None)


def commit_index(artifacts: Path, folder: Path, *, copies: int, kept_from: int, seed: int | None = None) -> KeyIndex:
    found = FOLDERS.by_path.get(str(folder), {})
    count = sum(map(len, found.values()))
    if count != copies:
        raise IndexIncomplete(f"{folder}: the key index holds {count} copies; expected {copies}")
    files = (IndexFile(path=str(folder), size_bytes=count, sha256=""),) if count else ()
    return KeyIndex(copies=copies, kept_from=kept_from, seed=seed, files=files)


def delete_expired(artifacts: Path, contract_name: str, cut_n: int, *, attempt: int, kept_from: int) -> tuple[int, ...]:
    return ()


def read_before(plan: Any, copies: int) -> dict[tuple[str, int], Any]:
    new = FOLDERS.by_path.get(str(plan.folder), {})
    older = [FOLDERS.by_path.get(str(path), {}) for path in plan.older]
    found: dict[tuple[str, int], list[int]] = {}
    for key, places in new.items():
        if any(key in one for one in older):
            for part, offset in places:
                _, topic, partition = part.split(":")
                found.setdefault((topic, int(partition)), []).append(offset)
    return {part: np.unique(np.array(offsets, dtype=np.int64)) for part, offsets in found.items()}


def keys_in_indexes(match_keys: Iterable[str], paths: Collection[Path]) -> set[str]:
    """Stands for `key_index_frame.keys_in_indexes`: those that an earlier cut has read too, on either side."""
    older = [FOLDERS.by_path.get(str(path), {}) for path in paths]
    return {key for key in match_keys if any(key in one for one in older)}


_path = lru_cache(maxsize=10_000)(Path)
"""Each run names those of all earlier ones."""


class MemoryIndexes(ReadableIndexes):
    """Stands for ReadableIndexes, with its own way to look a key up."""

    def paths_of(self, seed: int | None) -> tuple[Path, ...]:
        """As the real one: the paths that are kept are whole ones."""
        return tuple(_path(file.path) for index in self.by_cut.values() if index.seed == seed for file in index.files)

    def look_up(self, match_keys: Collection[str]) -> dict[str, tuple[IndexedCopy, ...]]:
        found: dict[str, list[IndexedCopy]] = {}
        for cut_n, index in self.by_cut.items():
            for file in index.files:
                copies = FOLDERS.by_path.get(file.path, {})
                for key in match_keys:
                    for part, offset in copies.get(key, ()):
                        found.setdefault(key, []).append(IndexedCopy(f"{part}:{offset}", cut_n))
        return {key: tuple(sorted(some)) for key, some in sorted(found.items())}


def readable_indexes(artifacts: Path, stored: Mapping[int, KeyIndex]) -> MemoryIndexes:
    kept_from = max((index.kept_from for index in stored.values()), default=0)
    kept = {cut_n: index for cut_n, index in sorted(stored.items()) if cut_n >= kept_from}
    whole = {cut_n: index for cut_n, index in kept.items() if all(file.path in FOLDERS.by_path for file in index.files)}
    return MemoryIndexes(artifacts=artifacts, by_cut=whole, lost_cuts=tuple(n for n in kept if n not in whole))
