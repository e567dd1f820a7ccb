"""The last resort: a cut that cannot be judged is closed by a person, INCONCLUSIVE, and what stands in it is unread.

Decides when that may be, what the verdict says, and what later cuts make of a copy that stands there: nobody has read
it, so it proves nothing and its partner's absence is not decided. Pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tallystick.matching.match_case import LookupHit, MatchGroup, RecordLocation
from tallystick.matching.scan_result import input_place, topic_place
from tallystick.matching.unreadable_ranges import Loss
from tallystick.model.cut import Cut, PartitionSnapshot
from tallystick.model.errors import TallystickError
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, OpenItem
from tallystick.model.run_result import RunResult, unread_result
from tallystick.text.plain import format_time, given_text

DIGEST = "closed unread"
"""Of a run that read nothing."""


class CloseRefused(TallystickError):
    """This cut cannot be closed so. The message says what was found, what was expected and what to do."""


@dataclass(frozen=True, kw_only=True)
class Closing:
    """The person who closes a cut, and the reason."""

    by: str
    reason: str
    at_utc: datetime


@dataclass(frozen=True, kw_only=True)
class CutClosed:
    """A cut that was closed, after so many attempts to judge it."""

    cut: Cut
    closing: Closing
    attempts: int
    sentence: str


def closing_of(*, by: str, reason: str, at_utc: datetime) -> Closing:
    """Refuse an empty name or reason. Raises CloseRefused."""
    return Closing(
        by=given_text("--by", by, expected="the name of who decided it", refused=CloseRefused),
        reason=given_text("--reason", reason, expected="why nobody can judge it, for an audit", refused=CloseRefused),
        at_utc=at_utc,
    )


def refuse_to_close(name: str, cut: Cut | None, *, is_open: bool, attempts: int) -> None:
    """Raise CloseRefused unless an attempt to judge the open cut was made: before one, it may still be read."""
    if cut is None:
        raise CloseRefused(f"{name}: no such cut is stored; expected the open one; what there is: tallystick runs")
    if not is_open:
        raise CloseRefused(f"{name}: it has its verdict; expected the open cut; look at it: tallystick show {name}")
    if cut.is_baseline:
        raise CloseRefused(f"{name}: it is the baseline, which the next run closes; expected a later cut")
    if attempts == 0:
        raise CloseRefused(
            f"{name}: nobody has tried to judge it; expected one attempt at least: tallystick run, or its DAG's task"
        )


def closed_result(cut: Cut, closing: Closing, *, attempts: int, known_before: Mapping[str, Any]) -> RunResult:
    """Return the verdict of a cut that nobody has read. No open item changes.

    known_before: look-ups of the run before that the run after goes on from.
    """
    doubt = DoubtFound(
        doubt=Doubt.CUT_CLOSED, sentence=_sentence(cut, closing, attempts), details=_details(cut, closing)
    )
    return unread_result(cut.contract, cut.n, doubt, digest=DIGEST, look_ups=known_before)


def _sentence(cut: Cut, closing: Closing, attempts: int) -> str:
    tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    parts = [
        f"{part.offsets.topic_partition} offsets {part.offsets.kafka_offset_start} to {part.offsets.kafka_offset_end}"
        for part in cut.topic_slices
        if len(part.offsets)
    ]
    ledger = cut.ledger_slice
    if ledger.position_start < ledger.position_end:
        parts.append(f"ledger positions {ledger.position_start} to {ledger.position_end}")
    return (
        f"Closed unread by {closing.by} at {format_time(closing.at_utc)}, after {tried}: {closing.reason}. Nobody has "
        f"judged what stands in it: {'; '.join(parts) or 'nothing'}. No partner is called absent that may stand there."
    )


def _details(cut: Cut, closing: Closing) -> dict[str, Any]:
    return {
        "by": closing.by,
        "reason": closing.reason,
        "closed_at_utc": closing.at_utc.isoformat(),
        "offsets": [
            {
                "topic": part.offsets.topic,
                "partition": part.offsets.partition,
                "start": part.offsets.kafka_offset_start,
                "end": part.offsets.kafka_offset_end,
            }
            for part in cut.topic_slices
            if len(part.offsets)
        ],
        "ledger_positions": [cut.ledger_slice.position_start, cut.ledger_slice.position_end],
    }


def losses_of_closed(closed: Iterable[Cut], partitions: Collection[PartitionSnapshot]) -> tuple[Loss, ...]:
    """Return the closed cuts that the log no longer holds as a whole: nobody has read what expired there."""
    log_starts = {part.topic_partition: part.log_start for part in partitions}
    return tuple(
        _loss_of(cut)
        for cut in closed
        if any(
            len(part.offsets) and log_starts.get(part.offsets.topic_partition, 0) > part.offsets.kafka_offset_start
            for part in cut.topic_slices
        )
    )


def cleaned_of_closed(
    closed: Iterable[Cut], compacting: Collection[str], *, cut_n: int, windows: int
) -> tuple[Loss, ...]:
    """Return the closed cuts that hold anything of a topic that compacts: what its cleaner takes there no run sees go.

    compacting: names of topics. A late partner is taken for one of those for so many windows, as far as the memory of
    the books reaches.
    """
    return tuple(
        _loss_of(cut)
        for cut in closed
        if cut_n - cut.n <= windows
        if any(len(part.offsets) and part.offsets.topic in compacting for part in cut.topic_slices)
    )


def _loss_of(cut: Cut) -> Loss:
    return Loss(cut_n=cut.n, marked_at_utc=cut.marked_at_utc, ledger_high_mark=cut.ledger_slice.snapshot.high_mark)


Place = TopicPartition | None
"""Where a copy was read: a partition, or the ledger."""


def places_behind(carried: Iterable[OpenItem], closed: Cut, *, of_inputs: bool) -> dict[str, Place]:
    """Return where the copies stand that came later than with the cut behind the closed one, by their items.

    of_inputs: does a topic play the ledger's part?
    """
    late = (item for item in carried if item.first_seen_cut > closed.n + 1 and item.side is not ItemSide.LEGS)
    return {item.item_id: _place_of(item, of_inputs=of_inputs) for item in late}


def _place_of(item: OpenItem, *, of_inputs: bool) -> Place:
    if item.side is ItemSide.TOPIC:
        return topic_place(item.item_id)[0]
    return input_place(item.item_id)[0] if of_inputs else None


def items_beside_closed(
    carried: Iterable[OpenItem], closed: Cut, places: Mapping[str, Place], read_behind: Mapping[Place, int]
) -> frozenset[str]:
    """Return items whose copy waited when the closed cut was made, or came with what was read next behind it: by the
    cut behind it, or where that one was held, by those up to the first that was not.

    places: as `places_behind` gives them. read_behind: that first cut; none where there is none yet.
    """
    return frozenset(
        item.item_id
        for item in carried
        if item.item_id not in places
        or item.first_seen_cut <= read_behind.get(places[item.item_id], item.first_seen_cut)
    )


def pairs_beside_closed(case: MatchGroup, items: Collection[str]) -> bool:
    """Return whether both sides have the key, and one of its copies is beside a closed cut: an event of the key may
    stand in there, and nobody else asks for it.

    items: as `items_beside_closed` gives them.
    """
    if not case.side(ItemSide.TOPIC) or not case.side(ItemSide.LEDGER):
        return False
    return any(copy.carried is not None and copy.carried.item_id in items for copy in case.copies)


HitsByKey = Mapping[str, tuple[LookupHit, ...]]


def unread_where_closed(by_key: HitsByKey, closed: Sequence[Cut]) -> HitsByKey:
    """Return the same hits; one in a slice of a closed cut is unread, not matched in an earlier slice."""
    if not closed:
        return by_key
    return {key: tuple(unread_if_closed(seen, closed) for seen in found) for key, found in by_key.items()}


def unread_if_closed(seen: LookupHit, closed: Iterable[Cut]) -> LookupHit:
    """Return one hit as `unread_where_closed` does."""
    is_unread = seen.place is RecordLocation.EARLIER_SLICE and any(_stands_in(seen, cut) for cut in closed)
    return replace(seen, place=RecordLocation.UNREAD) if is_unread else seen


def _stands_in(seen: LookupHit, cut: Cut) -> bool:
    position: int | None = seen.detail.get("transaction_id")
    if position is not None:
        return cut.ledger_slice.position_start <= position < cut.ledger_slice.position_end
    side, _, place = seen.item_id.partition(":")
    if side == ItemSide.LEDGER and "read_by_cut" in seen.detail:
        return False
    part, offset = topic_place(f"topic:{place}")
    found = cut.slice_of(part)
    return found is not None and found.offsets.kafka_offset_start <= offset < found.offsets.kafka_offset_end
