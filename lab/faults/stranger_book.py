"""A stranger who may write the topic and the progress topic, amid repairs: the one whose progress he writes waits for a
person, each other one is done once, and so is that one when two people have looked.

In a namespace and under a contract of its own, which allows repairs. An executor dies once it has committed. The
stranger has written before its records, and writes behind them. A run judges what there is, retention takes it, and the
executor is started again, twice. He knows the ids of all actions, and may read what he writes among. All that he
writes to the payouts' topic can be read: beside a batch that nobody reads nothing is published, and once retention has
taken a record that no run could read, nothing is either that was missing by then.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from confluent_kafka import Message
from kafka import KafkaConsumer, TopicPartition

from lab.faults.event_faults import Planted, broken
from lab.faults.hostile_writer import STRANGER, strange_events
from lab.faults.ledger_fault_books import Findings, open_desk
from lab.faults.log_fault_books import LogBook, LogFault
from lab.rounds.begun_book import AFTER_COMMIT, EVENTS, REPAIRS, STARTED_AGAIN, die_at, standing
from lab.rounds.second_person import SecondPerson
from lab.servers.log_ends import LogEnds
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg
from lab.services.kafka_clients import new_admin, new_producer
from lab.services.namespace import Namespace
from lab.truth.effect_reader import EventReader
from lab.truth.score import Finding, FindingKind

_KEPT_FOR_EVER = {"cleanup.policy": "compact", "retention.ms": "-1", "retention.bytes": "-1"}
_MARKERS_KEPT_TOO = {"delete.retention.ms": "3153600000000"}
_KEYS_OF_NO_ACTION = (b"\xff\xfe", b"k" * 5000, b"6a1d0b9e-0000-4000-8000-000000000000", b"../../etc/passwd")
_JUNK = (None, b"", b"\xff\xfe", b"null", b'{"plan_id":' + b"[" * 50_000, b"x" * 100_000)
_REFUSED = """
SELECT detail->>'action_id', detail->>'reason' FROM tallystick.audit
WHERE contract = %s AND event = 'refused' ORDER BY audit_id"""
_SECONDS_MAX = 30.0


def stranger_at_repairs(book: LogBook) -> Planted:
    """Payouts that no relay published, a plan for them, and records of the stranger's on its progress topic."""
    siege = _Siege(book)
    with open_desk(book, "first") as desk:
        # With least rights the executor may not lengthen what release 0.1.0 left; its message asks the operator to.
        by_operator = _MARKERS_KEPT_TOO if book.stack.door else {}
        desk.make_topic(siege.progress_topic, _KEPT_FOR_EVER | by_operator)
        siege.events = [desk.add_payout(desk.payment()).event for _ in range(EVENTS)]
        absent = broken(desk, "missing_in_topic_never_produced", *siege.events)
    book.agree()
    return Planted(absent, siege.begin, counted=siege.finish)


_FIELDS = {"compensation": REPAIRS, "event": {"origin_header": "service", "known_origins": ["relay"]}}
STRANGER_FAULTS = (LogFault(plant=stranger_at_repairs, fields=_FIELDS, always=True),)


@dataclass
class _Siege:
    """match_keys: of the first plan's actions, by id. The first of these is the one that he writes about."""

    book: LogBook
    events: Sequence[Event] = ()
    match_keys: Mapping[str, str] = field(default_factory=dict)
    plan_hash: str = ""

    def __post_init__(self) -> None:
        names, servers = Namespace(self.book.name), self.book.stack.bootstrap_servers
        topic = names.topic(Leg.PAYOUT)
        self.places = [(topic, number) for number in range(names.partitions[topic])]
        self.progress_topic = f"tallystick.compensation.{self.book.name}"
        self.log_ends = LogEnds(new_admin(servers))
        self.reader = EventReader(servers, self.places)
        self.producer = new_producer(servers, DeliveryMode.EXACTLY_ONCE, client_id=STRANGER)

    def begin(self) -> Findings:
        """Repair amid his records, until the executor dies; give what is to be found at the end."""
        plan = self.book.command_line.plan_document(self.book.contract_file)
        self.plan_hash = plan["plan_hash"]
        self.match_keys = {item["action_id"]: item["match_key"] for item in plan["items"]}
        with open_desk(self.book, STRANGER) as desk:
            strange = strange_events(desk, Leg.PAYOUT)
        self._write_before(plan)
        die_at(self.book, self.plan_hash, self.book.dice.choice(AFTER_COMMIT))
        kafka_offset = self._write_behind()
        self.log_ends.wait_until_decided(self.places)
        self.book.agree()
        once = dict.fromkeys((str(event.event_id) for event in self.events), 1)
        return *strange, *standing(self.book.name, self.events, once), self._refused(self._victim, kafka_offset)

    def finish(self) -> Findings:
        """The rest, once a run has judged what there is; give how often each event stands, by a reader of the lab's
        own, and what the trail says to have been refused.
        """
        command_line, contract_file = self.book.command_line, self.book.contract_file
        self.reader.read()
        self.log_ends.expire(self.log_ends.stable_ends(self.places))
        for _ in range(STARTED_AGAIN):
            command_line.execute(contract_file, self.plan_hash)
        command_line.reopen(contract_file, self._victim, SecondPerson(command_line.folder))
        command_line.execute(contract_file, command_line.plan(contract_file))
        self.log_ends.wait_until_decided(self.places)
        with psycopg.connect(self.book.stack.store_dsn) as connection:
            trail = connection.execute(_REFUSED, [self.book.name]).fetchall()
        refused = [self._refused(action_id, offset_named(reason)) for action_id, reason in trail]
        return *standing(self.book.name, self.events, self.reader.read()), *refused

    @property
    def _victim(self) -> str:
        return next(iter(self.match_keys))

    def _write_before(self, plan: Mapping[str, Any]) -> None:
        """Records about no action, and that the victim's was done, as release 0.1.0 would have said it."""
        for key in _KEYS_OF_NO_ACTION:
            self._write(key, self.book.dice.choice(_JUNK))
        claim = {"plan_id": plan["plan_id"], "plan_hash": plan["plan_hash"], "topic": self.places[0][0]}
        self._write(self._victim.encode(), json.dumps(claim).encode())

    def _write_behind(self) -> int:
        """Deletions and junk behind the executor's own records; of the victim maybe a copy of one. Give its offset."""
        victim, *others = self.match_keys
        copied = self._records()[others[0].encode()]
        for other in others:
            self._write(other.encode(), self.book.dice.choice(_JUNK))
        return self._write(victim.encode(), self.book.dice.choice((copied, *_JUNK)))

    def _write(self, key: bytes, value: bytes | None) -> int:
        """One record; give its offset."""
        written: list[Message] = []

        def note(error: object, message: Message) -> None:
            if error is None:
                written.append(message)

        self.producer.produce(self.progress_topic, key=key, value=value, on_delivery=note)
        if self.producer.flush(_SECONDS_MAX) or not written:
            raise TimeoutError(f"{STRANGER}: {self.progress_topic} did not take the record")
        kafka_offset = written[0].offset()
        assert kafka_offset is not None
        return kafka_offset

    def _records(self) -> dict[bytes, bytes]:
        """What the progress topic holds by now, the newest of each key."""
        part = TopicPartition(self.progress_topic, 0)
        self.log_ends.wait_until_decided([(part.topic, part.partition)])
        consumer = KafkaConsumer(
            bootstrap_servers=self.book.stack.bootstrap_servers,
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        records: dict[bytes, bytes] = {}
        try:
            consumer.assign([part])
            consumer.seek_to_beginning(part)
            (end,) = consumer.end_offsets([part]).values()
            while consumer.position(part) < end:
                for read in consumer.poll(200).values():
                    records |= {record.key: record.value for record in read}
        finally:
            consumer.close()
        return records

    def _refused(self, action_id: str, kafka_offset: int | None) -> Finding:
        return Finding(
            contract=self.book.name,
            kind=FindingKind.REFUSED,
            name=str(FindingKind.REFUSED),
            subject=self.match_keys.get(action_id, action_id),
            proof={"kafka_offset": kafka_offset},
        )


def offset_named(reason: str) -> int | None:
    """Of the record in the progress topic at which a refusal tells a person to look; None: of none."""
    named = re.search(r"^a person has to look: \S+\[0\] at (\d+) has the action's key", reason)
    return int(named[1]) if named else None
