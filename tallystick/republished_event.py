"""An event made from its ledger row: the same shape as the original, with headers that say who made it."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tallystick.committed_records import CommittedRecord
from tallystick.compensation_plan import PlanItem
from tallystick.contract import EventFields
from tallystick.log_record import ACTION_HEADER, SESSION_HEADER


@dataclass(frozen=True, kw_only=True)
class StandingEvent:
    """A committed event of a match key. action_id: set where a compensation published it."""

    topic: str
    partition: int
    kafka_offset: int
    action_id: str

    @property
    def place(self) -> dict[str, str | int]:
        return {"topic": self.topic, "partition": self.partition, "offset": self.kafka_offset}


@dataclass(frozen=True, kw_only=True)
class StandingEvents:
    """What stands of the keys asked for. unreadable_keys: message keys of the records that are no JSON object."""

    by_key: Mapping[tuple[str, str], tuple[StandingEvent, ...]]
    unreadable_keys: frozenset[tuple[str, bytes]]

    def of(self, item: PlanItem) -> tuple[StandingEvent, ...]:
        return self.by_key.get((item.topic, item.match_key), ())

    def may_hide(self, item: PlanItem) -> bool:
        return (item.topic, item.transaction_key.encode()) in self.unreadable_keys


def event_value(item: PlanItem, names: EventFields) -> bytes:
    """The payload under the contract's field names."""
    value = {
        names.match_key: item.match_key,
        names.transaction_key: item.transaction_key,
        names.leg: item.leg,
        names.amount_minor: item.amount_minor,
        names.currency: item.currency,
        "occurred_at": item.occurred_at,
    }
    return json.dumps(value).encode()


def event_headers(item: PlanItem, *, session: str) -> tuple[tuple[str, bytes], ...]:
    """session: one per process, so that a second copy of the event can be told from a retry."""
    return (ACTION_HEADER, str(item.action_id).encode()), (SESSION_HEADER, session.encode())


def find_events(records: Iterable[CommittedRecord], items: Collection[PlanItem], names: EventFields) -> StandingEvents:
    """Where the items' keys stand, whoever published them."""
    wanted = {(item.topic, item.match_key) for item in items}
    found: dict[tuple[str, str], list[StandingEvent]] = {}
    unreadable: set[tuple[str, bytes]] = set()
    for record in records:
        event = _parse(record.value)
        if event is None:
            unreadable.add((record.topic, record.key))
            continue
        key = (record.topic, str(event.get(names.match_key)))
        if key in wanted:
            found.setdefault(key, []).append(_standing(record))
    return StandingEvents(
        by_key={key: tuple(events) for key, events in found.items()}, unreadable_keys=frozenset(unreadable)
    )


def _parse(value: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(value)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _standing(record: CommittedRecord) -> StandingEvent:
    return StandingEvent(
        topic=record.topic,
        partition=record.partition,
        kafka_offset=record.kafka_offset,
        action_id=record.headers.get(ACTION_HEADER, b"").decode(errors="replace"),
    )
