"""Ask broker and ledger for one key as they are now. Reads all that the contract's topics retain.

What cannot be asked is told as that, and never as not found.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kafka.errors import KafkaError
from sqlalchemy import Engine

from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.kafka_log.fetch import Fetch, fetcher, open_admin
from tallystick.kafka_log.log_walk import Outcome
from tallystick.kafka_log.record import LogRecord
from tallystick.kafka_log.search import Wanted, find_records
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.ledger.input_topics import input_kafka
from tallystick.ledger.protocol import LedgerRow
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import OffsetRange
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick.store.runs.cut_store import last_cut

FATES = {Outcome.ABORTED: "aborted", Outcome.OPEN: "in a producer transaction that has not ended"}
"""Of records that no reader of committed events gets, in words."""


@dataclass(frozen=True, kw_only=True)
class LiveLook:
    """The copies that stand there now. looked: places that were asked. not_looked: sentences about the others."""

    records: tuple[LogRecord, ...] = ()
    rows: tuple[LedgerRow, ...] = ()
    looked: tuple[str, ...] = ()
    not_looked: tuple[str, ...] = ()


def look_now(engine: Engine, contract: Contract, connections: Connections, match_key: str) -> LiveLook:
    """Search the topics' retained log, and the ledger by its match key."""
    records: list[LogRecord] = []
    rows: tuple[LedgerRow, ...] = ()
    looked, not_looked = [], []
    clusters = [(connections.kafka, contract.topics)]
    if contract.input_topics:
        clusters.append((input_kafka(contract, connections), contract.input_topics))
    for kafka, topics in clusters:
        names = ", ".join(topics)
        try:
            records += _records(contract, kafka, topics, match_key)
            looked.append(names)
        except (TallystickError, KafkaError) as error:
            not_looked.append(f"{names} could not be looked up: {type(error).__name__}.")
    if not contract.input_topics:
        try:
            rows = _rows(engine, contract, connections, match_key)
            looked.append(contract.ledger.place)
        except TallystickError as error:
            not_looked.append(f"{contract.ledger.place} could not be looked up: {type(error).__name__}.")
    return LiveLook(records=tuple(records), rows=rows, looked=tuple(looked), not_looked=tuple(not_looked))


def _records(contract: Contract, kafka: KafkaSettings, topics: tuple[str, ...], match_key: str) -> list[LogRecord]:
    """Read to the high watermark, so that what is open or not judged yet is found too."""
    with open_admin(kafka) as admin:
        ranges = [
            OffsetRange(
                topic=part.topic,
                partition=part.partition,
                kafka_offset_start=part.log_start,
                kafka_offset_end=part.high_watermark,
            )
            for part in read_topic_snapshot(admin, topics)
        ]
        return list(_found(contract, fetcher(admin), ranges, match_key))


def _found(contract: Contract, fetch: Fetch, ranges: list[OffsetRange], match_key: str) -> Iterator[LogRecord]:
    wanted = Wanted(match_keys=frozenset({match_key}))
    for offsets in ranges:
        yield from find_records(fetch, [offsets], contract.event_on(offsets.topic), wanted)


def _rows(engine: Engine, contract: Contract, connections: Connections, match_key: str) -> tuple[LedgerRow, ...]:
    newest = last_cut(engine, contract.name)
    if newest is None:
        return ()
    with open_ledger_of(engine, contract, connections) as ledger:
        return ledger.look_up_rows([match_key], newest.ledger_slice).get(match_key, ())
