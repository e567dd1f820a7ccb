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
    """Did one of these come so, and did retention take it before a run could look at what stands there now?"""
    looked = [one.cut.now_utc for one in world.store.of(name).cuts]
    return any(
        what == "retained"
        and place == one.place
        and one.offset < up_to
        and not any(one.written_at <= run <= at for run in looked)
        for one in events
        if came_where_others_stood(world.truth, [one])
        for at, what, place, up_to in world.truth.losses
        if one.written_at <= at
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


def moved_ahead_of_runs(world: World, name: str, found: Break) -> str:
    """Was its row updated while several runs read the ledger, so that by xmin each left it to the next one?"""
    books = world.store.of(name)
    runs = [(books.cuts[n].cut.now_utc, row.recorded_at) for n, row in books.verdicts.items()]
    touched = [at for row in world.truth.rows_of(found.match_key) for at in row.touched]
    moved = sum(any(began <= at <= ended for at in touched) for began, ended in runs) > 1
    return "; its row was updated while several runs read the ledger" if moved else ""
