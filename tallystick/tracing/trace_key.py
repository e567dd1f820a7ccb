"""Join the contracts of a store by one key: what each knows, and what the others' copies of it say about each.

The key is compared, and stands in no result, log or address. Stored texts are masked as the contract of their cut
asks, and as its newest one does.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from sqlalchemy import Engine

from tallystick.contract.contract import Contract
from tallystick.contract.field_types import Place
from tallystick.host.artifacts import ArtifactsUnreachable, Copies
from tallystick.ledger.key_index import IndexedCopy, find_copies
from tallystick.matching.scan_result import ledger_item_id, topic_item_id
from tallystick.model.offsets import TopicPartition
from tallystick.report.masking import MASKED, Mask
from tallystick.store.runs.contract_store import newest_contract
from tallystick.store.runs.run_history_store import key_indexes_before
from tallystick.store.views.overview_store import contract_of_cut
from tallystick.store.views.trace_store import (
    StoredTrace,
    TracedBreak,
    TracedItem,
    cuts_of,
    place_in_slices,
    trace_in_store,
)
from tallystick.tracing.chain import Corner, chains_of, ledger_corners, topic_corners
from tallystick.tracing.hop import Copy, HopFacts, Trace, trace_of
from tallystick.tracing.live_look import FATES, LiveLook

LookNow = Callable[[Contract], LiveLook]
_NOT_LOOKED = LiveLook()


@dataclass(frozen=True)
class _Found:
    """A copy of the key on a topic, by whichever contract's books. match_field: where that one reads the key."""

    corner: Corner
    topic_partition: TopicPartition
    kafka_offset: int
    match_field: str | Place
    source: str
    fate: str = ""


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What one contract's own books, index and places answered."""

    contract: Contract
    stored: StoredTrace
    found: tuple[_Found, ...] = ()
    index_cuts: tuple[int, int] | None = None
    index_missing: str = ""
    live: LiveLook = _NOT_LOOKED


def newest_contracts(engine: Engine, names: Iterable[str]) -> tuple[Contract, ...]:
    """Return the contract of each name that has books, as its newest cut was made with."""
    found = (newest_contract(engine, name) for name in names)
    return tuple(one.contract for one in found if one is not None)


def trace_key(
    engine: Engine,
    contracts: Collection[Contract],
    match_key: str,
    *,
    artifacts: Copies | None,
    look_now: LookNow | None = None,
) -> tuple[Trace, ...]:
    """Trace a key along each chain that the contracts form. artifacts: where key indexes lie; None: not asked.

    look_now: asks broker and ledger of one contract; None: the store alone answers. Raises StoreUnreachable.
    """
    traces = []
    for chain in chains_of(contracts):
        asked = [_ask(engine, contract, match_key, artifacts, look_now) for contract in chain]
        found = [one for answers in asked for one in answers.found]
        traces.append(trace_of(_facts(engine, answers, found, match_key) for answers in asked))
    return tuple(traces)


def _ask(
    engine: Engine, contract: Contract, match_key: str, artifacts: Copies | None, look_now: LookNow | None
) -> _Asked:
    stored = trace_in_store(engine, contract.name, match_key)
    copies, index_cuts, missing = _ask_index(engine, contract, stored, match_key, artifacts)
    live = look_now(contract) if look_now else _NOT_LOOKED
    field = {topic: contract.event_on(topic).match_key for topic in (*contract.topics, *contract.input_topics)}
    found = []
    for item_id, source in _named_places(contract, stored, copies):
        place = _topic_place(contract, item_id)
        if place is not None:
            corner, part, offset = place
            found.append(_Found(corner, part, offset, field[part.topic], source))
    for record in live.records:
        part, fate = record.topic_partition, FATES.get(record.outcome, "")
        if (on := _corner_of(contract, part.topic)) is not None:
            found.append(_Found(on, part, record.kafka_offset, field[part.topic], "the broker now", fate))
    return _Asked(
        contract=contract,
        stored=stored,
        found=tuple(found),
        index_cuts=index_cuts,
        index_missing=missing,
        live=live,
    )


def _ask_index(
    engine: Engine, contract: Contract, stored: StoredTrace, match_key: str, artifacts: Copies | None
) -> tuple[tuple[IndexedCopy, ...], tuple[int, int] | None, str]:
    """Copies that cuts have read, by their key indexes; first and last cut asked; why some were not, or ""."""
    newest = stored.newest_judged
    if newest is None:
        return (), None, ""
    indexes = key_indexes_before(engine, contract.name, newest.n + 1, windows=contract.ledger.index_windows)
    if not indexes:
        return (), None, ""
    if artifacts is None:
        return (), None, "the key indexes are not read here"
    try:
        artifacts.fetch(file.path for index in indexes.values() for file in index.files)
    except ArtifactsUnreachable:
        return (), None, "the store of artifacts does not answer"
    copies, lost = find_copies(artifacts.folder, indexes, match_key)
    missing = f"the key index of cut {', '.join(map(str, lost))} is not as its verdict names it" if lost else ""
    return copies, (min(indexes), max(indexes)), missing


def _named_places(contract: Contract, stored: StoredTrace, copies: Iterable[IndexedCopy]) -> list[tuple[str, str]]:
    """Item ids, and who has seen them."""
    named = {copy.item_id: f"the key index of {contract.name}/{copy.cut_n}" for copy in copies}
    for traced in stored.items:
        for item_id in (traced.item.item_id, traced.item.cleared_by):
            named.setdefault(item_id, f"the items of {contract.name}/{traced.cut_n}")
    return list(named.items())


def _topic_place(contract: Contract, item_id: str) -> tuple[Corner, TopicPartition, int] | None:
    """Corner, partition and offset of an event's item id; None for a row, and for what names no place."""
    side, _, rest = item_id.partition(":")
    parts = rest.rsplit(":", 2)
    if side not in ("topic", "ledger") or len(parts) < 3 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None
    if (side == "ledger") != (parts[0] in contract.input_topics):
        return None
    corner = _corner_of(contract, parts[0])
    part = TopicPartition(topic=parts[0], partition=int(parts[1]))
    return None if corner is None else (corner, part, int(parts[2]))


def _corner_of(contract: Contract, topic: str) -> Corner | None:
    corners = topic_corners(contract) | ledger_corners(contract)
    return next((corner for corner in corners if corner.is_topic and corner.name == topic), None)


def _facts(engine: Engine, asked: _Asked, found: Iterable[_Found], match_key: str) -> HopFacts:
    """What one contract is told: its own answers, and the copies that any contract of the chain has seen."""
    contract, masks = asked.contract, _Masks(engine, asked.contract)
    mine = topic_corners(contract) | ledger_corners(contract)
    copies: dict[str, Copy] = {}
    for one in found:
        if one.corner not in mine:
            continue
        topic, part = one.corner.name, one.topic_partition
        is_input = topic in contract.input_topics
        name = f"{topic}:{part.partition}:{one.kafka_offset}"
        item_id = ledger_item_id(name) if is_input else topic_item_id(topic, part.partition, one.kafka_offset)
        copies.setdefault(
            item_id,
            Copy(
                item_id=item_id,
                place=place_in_slices(engine, contract.name, part, one.kafka_offset),
                source=one.source,
                is_other_field=one.match_field != contract.event_on(topic).match_key,
                fate=one.fate,
            ),
        )
    for row in asked.live.rows:
        item_id = ledger_item_id(row.row_id)
        place = place_in_slices(engine, contract.name, None, row.position)
        copies.setdefault(item_id, Copy(item_id=item_id, place=place, source="the ledger now"))
    stored = asked.stored
    numbers = {copy.place.cut_n for copy in copies.values() if copy.place.cut_n is not None}
    numbers |= {one.cut_n for one in stored.breaks} | {one.cut_n for one in stored.items}
    return HopFacts(
        contract=contract,
        stored=masks.stored(stored),
        copies=tuple(masks.copy(copy, match_key) for copy in copies.values()),
        cuts=cuts_of(engine, contract.name, numbers),
        index_cuts=asked.index_cuts,
        index_missing=asked.index_missing,
        looked=asked.live.looked,
        not_looked=asked.live.not_looked,
    )


class _Masks:
    """The masks of a contract's cuts, each on top of its newest one's."""

    def __init__(self, engine: Engine, contract: Contract) -> None:
        self._engine, self._name, self._newest = engine, contract.name, Mask(contract)

    def stored(self, stored: StoredTrace) -> StoredTrace:
        return replace(
            stored,
            breaks=tuple(map(self._traced_break, stored.breaks)),
            items=tuple(map(self._traced_item, stored.items)),
        )

    def copy(self, copy: Copy, match_key: str) -> Copy:
        """A row's id may be the key itself."""
        hidden = self._newest.hides_events and match_key in copy.item_id
        return replace(copy, item_id=copy.item_id.replace(match_key, MASKED)) if hidden else copy

    def _traced_break(self, traced: TracedBreak) -> TracedBreak:
        for mask in self._of(traced.cut_n):
            traced = replace(
                traced, item_break=mask.item_break(traced.item_break), items=tuple(map(mask.item, traced.items))
            )
        return traced

    def _traced_item(self, traced: TracedItem) -> TracedItem:
        for mask in self._of(traced.cut_n):
            traced = replace(traced, item=mask.item(traced.item))
        return traced

    def _of(self, cut_n: int) -> tuple[Mask, ...]:
        then = contract_of_cut(self._engine, self._name, cut_n)
        return (self._newest,) if then is None else (Mask(then), self._newest)
