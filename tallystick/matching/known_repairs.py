"""The records and rows that are proven repairs of ours, by the actions that the store knows. Pure.

A header or a column proves nothing by itself: anybody who may write a record may write ours. A record is taken for our
repair only if an action of this id was begun, of its key, on its topic, and to take back what it says it takes back.
Any other one is an ordinary copy, and is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import ACTION_HEADER, LogRecord, claiming_a_repair
from tallystick.matching.match_case import LookupHit
from tallystick.model.break_history import KnownRepair, Repairs
from tallystick.model.open_item import ItemSide


@dataclass(frozen=True, kw_only=True)
class Believed:
    """The records or rows without those that pretend to be our repair. forged: item ids of the pretenders, in order."""

    records: Mapping[str, LogRecord] = field(default_factory=dict)
    lookup_hits: Mapping[str, tuple[LookupHit, ...]] = field(default_factory=dict)
    forged: tuple[str, ...] = ()


def repairs_by_id(known: Iterable[KnownRepair]) -> dict[str, KnownRepair]:
    return {one.action_id: one for one in known}


def believed_records(records: Mapping[str, LogRecord], repairs: Repairs) -> Believed:
    """Return records by item id; a forged one without its action and what it takes back."""
    if repairs is None:
        return Believed(records=records)
    forged = {
        item_id
        for item_id, record in claiming_a_repair(records).items()
        if not _is_ours(record, repairs.get(record.action_id))
    }
    if not forged:
        return Believed(records=records)
    readable = (item_id for item_id in sorted(forged) if records[item_id].outcome in (Outcome.COMMITTED, Outcome.PLAIN))
    return Believed(
        records={item_id: _ordinary(record) if item_id in forged else record for item_id, record in records.items()},
        forged=tuple(readable),
    )


def believed_rows(lookup_hits: Mapping[str, Sequence[LookupHit]], repairs: Repairs) -> Believed:
    """Return hits by match key; a row with an action that did not write it is an ordinary row."""
    forged: list[str] = []
    left: dict[str, tuple[LookupHit, ...]] = {}
    for key, seen in lookup_hits.items():
        pretends = [] if repairs is None else [one for one in seen if not _may_be_ours(one, key, repairs)]
        forged += [one.item_id for one in pretends]
        left[key] = tuple(_without_action(one) if one in pretends else one for one in seen)
    return Believed(lookup_hits=left, forged=tuple(sorted(set(forged))))


def action_ids_of(records: Mapping[str, LogRecord], lookup_hits: Mapping[str, Sequence[LookupHit]]) -> frozenset[str]:
    """Return the ids of the actions that these records or rows name."""
    of_rows = (str(seen.detail.get("action_id", "")) for found in lookup_hits.values() for seen in found)
    of_events = {record.action_id for record in claiming_a_repair(records).values()}
    return frozenset(of_events | set(of_rows)) - {""}


def _is_ours(record: LogRecord, repair: KnownRepair | None) -> bool:
    """Return whether an action of ours wrote it. A DAG may write what it likes for its break, but takes nothing back in
    our name.
    """
    if repair is None or (repair.match_key, repair.reverses) != (record.match_key, record.reverses):
        return False
    if repair.amounts_minor is not None and record.amount_minor not in repair.amounts_minor:
        return False
    return repair.kind == "trigger" or repair.topic == record.topic_partition.topic


def _ordinary(record: LogRecord) -> LogRecord:
    headers = {name: value for name, value in record.headers.items() if name != ACTION_HEADER}
    return replace(record, headers=headers, reverses="")


def _may_be_ours(seen: LookupHit, match_key: str, repairs: Mapping[str, KnownRepair]) -> bool:
    action_id = seen.detail.get("action_id")
    if seen.side is not ItemSide.LEDGER or not action_id:
        return True
    repair = repairs.get(str(action_id))
    said = match_key, str(seen.detail.get("reverses", ""))
    return repair is not None and (repair.match_key, repair.reverses) == said


def _without_action(seen: LookupHit) -> LookupHit:
    """Remove the action. The row that it takes back stays: the owner may write that."""
    return replace(seen, detail={name: value for name, value in seen.detail.items() if name != "action_id"})
