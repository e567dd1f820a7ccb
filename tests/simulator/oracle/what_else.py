"""What else is true of a break that is not so: by it one that is known is told from any other."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from tallystick.contract.contract import Contract
from tallystick.matching.scan_result import ledger_item_id
from tallystick.model.cut import Cut
from tallystick.model.findings import Break
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemState
from tests.simulator.oracle.unread import takes, unread_events, was_closed_away, was_taken
from tests.simulator.standins.store import Books
from tests.simulator.world.input_log import InputLog
from tests.simulator.world.truth import EventFact, Truth
from tests.simulator.world.world import World


def came_late_and_unseen(world: World, contract: Contract, found: Break) -> bool:
    """Did its event come when it was due already, and have too few replicas it, so that nobody sees it?"""
    rows = world.truth.rows_of(found.match_key)
    due = min((row.visible_at for row in rows), default=world.clock.now) + contract.partner_grace
    return _one_came_late_and_unseen(world, world.truth.events_of(found.match_key), due)


def its_leg_came_late_and_unseen(world: World, contract: Contract, found: Break) -> bool:
    """Did a leg of the transaction come when it was due already, with too few replicas for anybody to see it?"""
    truth = world.truth
    of_transaction = [one for one in truth.events if one.money.transaction_key == found.transaction_key]
    rows = [one for one in truth.rows.values() if one.money.transaction_key == found.transaction_key]
    came = [at for one in (*of_transaction, *rows) if (at := one.visible_at)]
    due = min(came, default=world.clock.now) + contract.partner_grace
    return _one_came_late_and_unseen(world, of_transaction, due)


def _one_came_late_and_unseen(world: World, events: Iterable[EventFact], due: datetime) -> bool:
    partitions = world.broker.partitions
    return any(
        one.written_at > due and partitions[one.place].high_watermark <= one.offset < partitions[one.place].end
        for one in events
    )


def came_once_its_events_were_gone(world: World, found: Break) -> bool:
    """Did its newest row come when retention had taken all events of the key? None of them is that row's."""
    rows = [row for row in world.truth.rows_of(found.match_key) if row.stands]
    events = [one for one in world.truth.events_of(found.match_key) if one.visible_at]
    newest = max((row.visible_at for row in rows), default=None)
    return newest is not None and bool(events) and all(was_taken(world, one, before=newest) for one in events)


def came_once_its_events_were_closed_away(world: World, name: str, found: Break) -> bool:
    """Did its newest row come behind all its events, some of which a person had closed away unread by then, and have
    those expired? An event follows its row: none of them is that row's, and the others are fewer than the rows.
    """
    rows = [
        row for row in world.truth.rows_of(found.match_key) if row.stands and not row.nets and not row.taken_back_at
    ]
    events = [one for one in world.truth.events_of(found.match_key) if one.visible_at]
    newest = max((row.visible_at for row in rows if row.visible_at), default=None)
    if newest is None or any(one.written_at >= newest for one in events):
        return False
    gone = [
        one
        for one in unread_events(world, name, events)
        if was_closed_away(world, name, one, before=newest) and was_taken(world, one, before=world.clock.now)
    ]
    return bool(gone) and len(events) - len(gone) < len(rows)


def came_where_others_stood(truth: Truth, events: Iterable[EventFact]) -> bool:
    """Did one of these come to stand where an unclean election had cut the log back?"""
    return any(
        what == "truncated" and place == one.place and up_to <= one.offset and at <= one.written_at
        for one in events
        for at, what, place, up_to in truth.losses
    )


def its_input_stands_where_others_stood(world: World, match_key: str) -> bool:
    """Of topic to topic: did an input of the key come to stand where an unclean election had cut the inputs back?"""
    if not isinstance(world.database, InputLog):
        return False
    inputs = [(world.database.place_of(row.row_id), row.visible_at) for row in world.truth.rows_of(match_key)]
    return any(
        what == "truncated" and at <= visible_at and cut_back == place and up_to <= offset
        for (place, offset), visible_at in inputs
        for at, what, cut_back, up_to in world.truth.losses
    )


def came_where_others_stood_and_expired(world: World, name: str, events: Iterable[EventFact]) -> bool:
    """Did one of these come so, and did retention take it before a run could look what had been cut back there?"""
    return any(
        cut_back_at <= one.written_at <= taken_at
        for one in events
        for cut_back_at, taken_at in _cut_back_and_taken_unseen(world, name, one)
    )


def gave_way_to_what_expired(world: World, name: str, lost: Iterable[EventFact]) -> bool:
    """Was one of these cut away, and did retention take what came in its place before a run could look there?"""
    return any(
        one.written_at <= cut_back_at for one in lost for cut_back_at, _ in _cut_back_and_taken_unseen(world, name, one)
    )


def _cut_back_and_taken_unseen(world: World, name: str, event: EventFact) -> Iterator[tuple[datetime, datetime]]:
    """When the log was cut back to the event's offset or below, and when retention took that offset, no run between."""
    books, losses = world.store.of(name), world.truth.losses
    for cut_back_at, what, place, above in losses:
        if what != "truncated" or place != event.place or above > event.offset:
            continue
        for taken_at, then, taken_place, below in losses:
            if taken_place == place and takes(then, event.offset, below) and cut_back_at <= taken_at:
                behind = (n for n, one in enumerate(books.cuts) if _made_behind(one.cut, cut_back_at, place, above))
                if not any(_looked_before(books, n, place, taken_at) for n in behind):
                    yield cut_back_at, taken_at


def _looked_before(books: Books, n: int, place: TopicPartition, taken_at: datetime) -> bool:
    """Was the cut read before, or made before with an end of the log below the one that the cut before it had seen?"""
    if n in books.verdicts and books.verdicts[n].recorded_at < taken_at:
        return True
    before, cut = (books.cuts[one].cut.slice_of(place) for one in (n - 1, n)) if n else (None, None)
    if before is None or cut is None or books.cuts[n].cut.now_utc >= taken_at:
        return False
    return cut.readable.kafka_offset_end < before.readable.kafka_offset_end


def _made_behind(cut: Cut, cut_back_at: datetime, place: TopicPartition, offset: int) -> bool:
    """Was the cut made once the log had been cut back to that offset? Of one of the same second its end tells."""
    part = cut.slice_of(place)
    same_second = cut.now_utc == cut_back_at and (part is None or part.readable.kafka_offset_end <= offset)
    return cut.now_utc > cut_back_at or same_second


def about_taken_back(truth: Truth, contract_name: str, found: Break) -> str:
    """Of a duplicate: was an event of its key taken back, and has a person written one off?"""
    taken_back = any(one.taken_back_at for one in truth.events_of(found.match_key))
    if taken_back and (contract_name, found.match_key) in truth.written_off:
        return "; an event was written off and is taken back"
    return ""


def another_of_its_rows_was_taken_back(world: World, name: str, found: Break) -> bool:
    """Of a duplicate in the ledger: does its row stand, and has a repair taken another row back that no run of this
    contract ever called broken? Another contract had judged that one.
    """
    items = [one for _, row in sorted(world.store.of(name).verdicts.items()) for one in row.result.items]
    of_break = {one.item_id for one in items if one.break_id == found.break_id}
    broken = {one.item_id for one in items if one.state is ItemState.BROKEN}
    rows = {ledger_item_id(str(row.row_id)): row for row in world.truth.rows_of(found.match_key)}
    taken_back = {
        ledger_item_id(str(row.reverses))
        for row in rows.values()
        if row.nets and row.action_id and row.reverses is not None
    }
    stand = [row.stands and not row.taken_back_at for item_id, row in rows.items() if item_id in of_break]
    return bool(stand) and all(stand) and bool(taken_back - broken)


def its_reversal_was_touched(truth: Truth, found: Break) -> bool:
    """Of a duplicate: was a row that takes another one back updated, while no row stands that is not taken back?"""
    rows = truth.rows_of(found.match_key)
    left = [row for row in rows if row.stands and not row.nets and not row.taken_back_at]
    return not left and any(row.nets and row.touched for row in rows)


def moved_ahead_of_runs(world: World, name: str, match_key: str) -> str:
    """Was its row updated while several runs read the ledger, so that by xmin each left it to the next one?"""
    books = world.store.of(name)
    runs = [(books.cuts[n].cut.now_utc, row.recorded_at) for n, row in books.verdicts.items()]
    touched = [at for row in world.truth.rows_of(match_key) for at in row.touched]
    moved = sum(any(began <= at <= ended for at in touched) for began, ended in runs) > 1
    return "; its row was updated while several runs read the ledger" if moved else ""
