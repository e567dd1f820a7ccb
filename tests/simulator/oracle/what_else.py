"""What else is true of a break that is not so: by it one that is known is told from any other."""

from collections.abc import Iterable

from tallystick.contract.contract import Contract
from tallystick.model.findings import Break, DoubtFound
from tallystick.model.offsets import TopicPartition
from tests.simulator.world.truth import EventFact, Truth
from tests.simulator.world.world import World


def came_late_and_unseen(world: World, contract: Contract, found: Break) -> bool:
    """Did its event come when it was due already, and have too few replicas it, so that nobody sees it?"""
    rows, partitions = world.truth.rows_of(found.match_key), world.broker.partitions
    due = min((row.visible_at for row in rows), default=world.clock.now) + contract.partner_grace
    return any(
        one.written_at > due and partitions[one.place].high_watermark <= one.offset < partitions[one.place].end
        for one in world.truth.events_of(found.match_key)
    )


def came_where_others_stood(truth: Truth, events: Iterable[EventFact]) -> bool:
    """Did one of these come to stand where an unclean election had cut the log back?"""
    return any(
        what == "truncated" and place == one.place and up_to <= one.offset and at <= one.written_at
        for one in events
        for at, what, place, up_to in truth.losses
    )


def came_where_others_stood_and_expired(world: World, name: str, events: Iterable[EventFact]) -> bool:
    """Did one of these come so, and did retention take it before a run could look what had been cut back there?"""
    looked = [one.cut.now_utc for one in world.store.of(name).cuts]
    cut_back = [(at, place, up_to) for at, what, place, up_to in world.truth.losses if what == "truncated"]
    taken = [(at, place, up_to) for at, what, place, up_to in world.truth.losses if what == "retained"]
    return any(
        cut_place == one.place == taken_place
        and above <= one.offset < below
        and cut_at <= one.written_at <= taken_at
        and not any(cut_at <= run <= taken_at for run in looked)
        for one in events
        for cut_at, cut_place, above in cut_back
        for taken_at, taken_place, below in taken
    )


def was_cut_back(truth: Truth, found: DoubtFound) -> bool:
    """Was the log of which a run says that it was written anew ever cut back?"""
    place = TopicPartition(topic=found.details["topic"], partition=found.details["partition"])
    return any(what == "truncated" and of == place for _, what, of, _ in truth.losses)


def about_taken_back(truth: Truth, contract_name: str, found: Break) -> str:
    """Of a duplicate: was an event of its key taken back, and has a person written one off?"""
    taken_back = any(one.taken_back for one in truth.events_of(found.match_key))
    if taken_back and (contract_name, found.match_key) in truth.written_off:
        return "; an event was written off and is taken back"
    return ""


def its_reversal_was_touched(truth: Truth, found: Break) -> bool:
    """Of a duplicate: was a row that takes another one back updated, while no row stands that is not taken back?"""
    rows = truth.rows_of(found.match_key)
    left = [row for row in rows if row.stands and not row.nets and not row.taken_back_at]
    return not left and any(row.nets and row.touched for row in rows)


def moved_ahead_of_runs(world: World, name: str, found: Break) -> str:
    """Was its row updated while several runs read the ledger, so that by xmin each left it to the next one?"""
    books = world.store.of(name)
    runs = [(books.cuts[n].cut.now_utc, row.recorded_at) for n, row in books.verdicts.items()]
    touched = [at for row in world.truth.rows_of(found.match_key) for at in row.touched]
    moved = sum(any(began <= at <= ended for at in touched) for began, ended in runs) > 1
    return "; its row was updated while several runs read the ledger" if moved else ""
