"""The cursor of a held side, cut after cut: whether it moves, and whether the data behind it grows. Pure.

What waits runs from the cursor to the mark: the high watermark, or the ledger's high mark, at the window's end. Where a
cut is whole nothing waits, however busy the topic; an idle one has no mark above its cursor.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tallystick.kafka_cluster.state import ClusterState, CursorPosition
from tallystick.model.cut import Cut
from tallystick.model.offsets import TopicPartition

WINDOWS_MIN = 3
"""So many windows in a row are no accident: one transaction may well cross a border, and even two."""

LOOK_BACK_CUTS = 24
"""So far back it is looked since when: a day of hourly windows."""


@dataclass(frozen=True, kw_only=True)
class Trail:
    """One held side's positions, oldest first; the last is this cut's. topic_partition None: the ledger."""

    topic_partition: TopicPartition | None
    positions: tuple[CursorPosition, ...]

    @property
    def now(self) -> CursorPosition:
        return self.positions[-1]

    @property
    def windows_stopped(self) -> int:
        """Return how many windows in a row, up to this one, were held and did not move the cursor."""
        return _newest_in_a_row(self.positions, lambda before, now: now.waits > 0 and now.cursor == before.cursor)

    @property
    def windows_growing(self) -> int:
        """Return how many windows in a row, up to this one, ended with more behind the cursor than the one before."""
        return _newest_in_a_row(self.positions, lambda before, now: now.waits > before.waits)


def trails(cut: Cut, around: ClusterState) -> Iterator[Trail]:
    """One per held side, topics first."""
    for now in held_positions(cut):
        before = (one for one in around.cursor_positions if one.topic_partition == now.topic_partition)
        yield Trail(topic_partition=now.topic_partition, positions=(*sorted(before, key=lambda one: one.cut_n), now))


def held_positions(cut: Cut) -> Iterator[CursorPosition]:
    """This cut's position on each side that it could not read up to its mark."""
    sides = [(part.offsets.topic_partition, part.offsets.kafka_offset_end, part.mark) for part in cut.topic_slices]
    for topic_partition, cursor, mark in (*sides, (None, cut.ledger_slice.position_end, cut.ledger_slice.mark)):
        if cursor < mark:
            yield CursorPosition(
                topic_partition=topic_partition,
                cut_n=cut.n,
                window_start_utc=cut.window_start_utc,
                cursor=cursor,
                mark=mark,
            )


def _newest_in_a_row(
    positions: Sequence[CursorPosition], holds: Callable[[CursorPosition, CursorPosition], bool]
) -> int:
    count = 0
    for before, now in reversed(list(pairwise(positions))):
        if not holds(before, now):
            break
        count += 1
    return count
