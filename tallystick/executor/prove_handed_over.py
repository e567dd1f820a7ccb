"""The proof for each break before a DAG is handed it: by the topics, as before a repair of our own that does the same.

Breaks of other classes than ABOUT_EVENTS are not looked at, nor is the ledger. Records are read where they are JSON, on
all topics of the contract; what the log holds back or has lost needs no reading, and is asked of the topics of leg and
copy, whatever the format.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tallystick.compensation.plan import PlanItem, RepairKind
from tallystick.compensation.republished_event import (
    CurrentEvent,
    CurrentEvents,
    find_events,
    why_not_postable,
    why_not_reversible,
)
from tallystick.contract.compensation import ABOUT_EVENTS, MISSING_EVENTS, POSTABLE
from tallystick.contract.contract import Contract
from tallystick.executor.effects.action_log import SETTLE_SECONDS, ExecutionContext
from tallystick.executor.prove_repairs import LogProof, prove_log, topics_of, why_held, why_hidden, why_unread
from tallystick.kafka_log.committed_records import SettledTopics, read_committed, settle_topics
from tallystick.matching.scan_result import topic_place
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.errors import TallystickError
from tallystick.model.findings import Break
from tallystick.model.offsets import partition_of
from tallystick.store.plans.claim_store import NOT_OUTSTANDING
from tallystick.store.runs.cut_store import read_cut
from tallystick.store.runs.outstanding_store import outstanding_breaks

_NOT_READ = CurrentEvents(by_key={}, unreadable_keys=frozenset())


@dataclass(frozen=True, kw_only=True)
class HandOverProof:
    """The reasons why the topics do not prove each break any more; None: they do, or nobody asks them about it.

    unanswered: actions that they were to be asked about and gave no answer to, where that is what error says.
    """

    reasons: Mapping[UUID, str | None]
    unanswered: frozenset[UUID] = frozenset()
    error: TallystickError | None = None


def prove_handed_over(work: ExecutionContext, items: Sequence[PlanItem]) -> HandOverProof:
    """Ask the topics about each break that is to be handed over."""
    reasons: dict[UUID, str | None] = {item.action_id: None for item in items}
    about = [item for item in items if item.break_class in ABOUT_EVENTS]
    if not about:
        return HandOverProof(reasons=reasons)
    contract = work.contract
    found = {one.item_break.break_id: one.item_break for one in outstanding_breaks(work.engine, contract.name)}
    ours: dict[UUID, tuple[PlanItem, ...]] = {}
    for item in about:
        if item.break_id not in found:
            reasons[item.action_id] = NOT_OUTSTANDING
        elif some := _as_ours(contract, item, _place(found[item.break_id])):
            ours[item.action_id] = some
    if ours:
        try:
            log = _read_topics(work, [one for some in ours.values() for one in some])
        except TallystickError as error:
            unanswered = dict.fromkeys(ours, str(error))
            return HandOverProof(reasons=reasons | unanswered, unanswered=frozenset(ours), error=error)
        void = frozenset(map(_place, found.values()))
        standing = {action_id: tuple(_standing(contract, some[0], log, void)) for action_id, some in ours.items()}
        known = _known(work, [event for some in standing.values() for event in some])
        for action_id, some in ours.items():
            reasons[action_id] = _why_not(work, some, standing[action_id], log, known)
    return HandOverProof(reasons=reasons)


def _place(found: Break) -> str:
    """Return the item id of the copy that a break is about; "" where it names none."""
    return str(found.evidence.get("at", ""))


def _as_ours(contract: Contract, item: PlanItem, at: str) -> tuple[PlanItem, ...]:
    """Return the item as we would repair it: on the topic of its leg and, of a copy that stands on another one of the
    contract's, on that; none, where the contract names neither. at: the item id of the copy that its break is about.
    """
    place, topics, kind = "", {item.topic}, RepairKind.REPUBLISH
    if item.break_class not in MISSING_EVENTS:
        kind = RepairKind.POST if item.break_class in POSTABLE else RepairKind.REVERSE
        if at.startswith("topic:"):
            place = at
            topics.add(topic_place(at)[0].topic)
    reverses, posts = (place, "") if kind is RepairKind.REVERSE else ("", place)
    wanted = replace(item, kind=kind, reverses=reverses, posts=posts)
    return tuple(replace(wanted, topic=topic) for topic in sorted(topics.intersection(contract.topics)))


def _read_topics(work: ExecutionContext, asked: Sequence[PlanItem]) -> LogProof:
    """Read the events of their keys on all topics of the contract, as a run pairs them; what hides or has lost some,
    on those of the items.
    """
    kafka, contract = work.connections.kafka, work.contract
    is_json = contract.event.format == "json"
    topics = contract.topics if is_json else topics_of(asked)
    settled = settle_topics(kafka, topics, wait_seconds=SETTLE_SECONDS)
    events = _NOT_READ
    if is_json:
        everywhere = [replace(item, topic=topic) for item in asked for topic in contract.topics]
        events = find_events(read_committed(kafka, settled.partitions), everywhere, contract.event)
    return prove_log(work, asked, settled, events)


def _standing(contract: Contract, item: PlanItem, log: LogProof, void: Collection[str]) -> Iterator[CurrentEvent]:
    """Yield the events of the item's key on all topics of the contract. void: item ids of copies with breaks of their
    own, of which a run has said that they take nothing back, whatever they name.
    """
    for topic in contract.topics:
        for event in log.events.of(replace(item, topic=topic)):
            yield replace(event, reverses="") if event.item_id in void else event


def _known(work: ExecutionContext, standing: Iterable[CurrentEvent]) -> frozenset[CurrentEvent]:
    """Return those that the plan's run had read: how they differ, whoever agreed to hand them over could see."""
    cut = read_cut(work.engine, work.contract.name, work.plan.cut_n)
    if cut is None:
        return frozenset()
    ends = {part.offsets.topic_partition: part.offsets.kafka_offset_end for part in cut.topic_slices}
    return frozenset(
        event for event in standing if event.kafka_offset < ends.get(partition_of(event.topic, event.partition), 0)
    )


def _why_not(
    work: ExecutionContext,
    ours: Sequence[PlanItem],
    standing: Sequence[CurrentEvent],
    log: LogProof,
    known: Collection[CurrentEvent],
) -> str | None:
    """Return the reason not to hand an item over; None: there is none. ours: as `_as_ours` gives it."""
    if ours[0].kind is RepairKind.REPUBLISH and standing:
        return f"its event stands: {standing[0].item_id}"
    return next(
        filter(
            None,
            (
                *(why_held(one) for one in ours if one.topic in log.held),
                *(why_hidden(one, log) for one in ours),
                _why_not_as_read(work, ours[0], standing, log.settled, known),
                *(why_unread(one, log, planned_at=work.plan.cut_n) for one in ours),
            ),
        ),
        None,
    )


def _why_not_as_read(
    work: ExecutionContext,
    item: PlanItem,
    standing: Sequence[CurrentEvent],
    settled: SettledTopics,
    known: Collection[CurrentEvent],
) -> str | None:
    """Return why the copy that the break is about does not stand as the run read it, or alone; None: it does, or there
    is none, or it stands where the executor does not read.
    """
    contract, place = work.contract, item.reverses or item.posts
    if not place or topic_place(place)[0].topic not in contract.topics:
        return None
    if contract.event.format != "json":
        gone = "not provable: what it is about is not on the retained log any more"
        return None if any(_has(part, place) for part in settled.partitions) else gone
    if contract.currency_case == "ignored":
        item, standing = replace(item, currency=item.currency.upper()), [*_in_capitals(standing)]
    if item.kind is RepairKind.POST:
        return why_not_postable(item, standing, contract.event, known=known)
    elsewhere = work.taken_back.get(item.action_id, frozenset())
    return why_not_reversible(item, standing, contract.event, elsewhere=elsewhere, known=known)


def _has(part: PartitionSnapshot, place: str) -> bool:
    partition, kafka_offset = topic_place(place)
    return part.topic_partition == partition and part.log_start <= kafka_offset < part.lso


def _in_capitals(standing: Iterable[CurrentEvent]) -> Iterator[CurrentEvent]:
    """Yield events with their currency as the run compared it."""
    for event in standing:
        if event.reading is not None and event.reading.currency is not None:
            yield replace(event, reading=event.reading._replace(currency=event.reading.currency.upper()))
        else:
            yield event
