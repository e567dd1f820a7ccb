"""Look at both sides once: take a sample, store it, and say whether the window has settled."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from kafka.admin import KafkaAdminClient
from sqlalchemy import Engine

from tallystick.connections.connections import Connections
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import ServerProof
from tallystick.kafka_log.fetch import FETCH_BYTES, Fetch, FetchedLog, fetchers, open_admin
from tallystick.kafka_log.prefetch import fetch_ahead
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.ledger.input_topics import InputTopics
from tallystick.ledger.protocol import Ledger
from tallystick.model.cut import LedgerSnapshot, PartitionSnapshot, Sample
from tallystick.model.direction import Direction
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick.pipeline.readiness import Readiness, assess_readiness
from tallystick.pipeline.server_proof import proofs_of_run
from tallystick.pipeline.window_order import refuse_not_over
from tallystick.store.runs.contract_store import require_same_books
from tallystick.store.runs.sample_store import append_sample, read_samples

_Read = TypeVar("_Read")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Open clients to the two sides of one contract."""

    contract: Contract
    admin: KafkaAdminClient
    ledger: Ledger
    server_proofs: tuple[ServerProof, ...] = ()
    """Of the connections to both."""

    def read_marks(self) -> tuple[tuple[PartitionSnapshot, ...], LedgerSnapshot]:
        """Read how far both sides can be read now."""
        return self._read_both(self.ledger.read_snapshot)

    def read_beginning(self) -> tuple[tuple[PartitionSnapshot, ...], tuple[LedgerSnapshot, int | None]]:
        """Read the same where books begin; beside the ledger's snapshot, how many rows are older than the books."""
        return self._read_both(self.ledger.read_beginning)

    def _read_both(self, read_ledger: Callable[[], _Read]) -> tuple[tuple[PartitionSnapshot, ...], _Read]:
        """The side that is written first is read last, so that the second cannot be ahead of it."""
        if self.contract.direction is Direction.TOPIC_TO_LEDGER:
            read = read_ledger()
            return self.read_partitions(), read
        partitions = self.read_partitions()
        return partitions, read_ledger()

    def read_partitions(self) -> tuple[PartitionSnapshot, ...]:
        """All partitions that a cut reads, the input's last. Raises TopicNotFound, BrokerUnreachable."""
        return tuple(part for admin, topics in self.clusters() for part in read_topic_snapshot(admin, topics))

    def clusters(self) -> tuple[tuple[KafkaAdminClient, tuple[str, ...]], ...]:
        """The client to ask about some topics, with these topics; the input's last."""
        outputs = (self.admin, self.contract.topics)
        return (
            (outputs, (self.ledger.admin, self.ledger.topics)) if isinstance(self.ledger, InputTopics) else (outputs,)
        )

    def fetcher(self, ahead: Sequence[OffsetRange] = (), *, fetch_bytes: int = FETCH_BYTES) -> Fetch:
        """Fetches from the cluster that a topic lies on. Raises OffsetNotInLog, kafka.errors.KafkaError.

        ahead: ranges that will be walked in this order, one of a partition.
        """
        outputs = fetch_ahead(*fetchers(self.admin, fetch_bytes=fetch_bytes), ahead)
        if not isinstance(self.ledger, InputTopics):
            return outputs
        names = self.ledger.topics
        of_inputs = fetchers(self.ledger.admin, fetch_bytes=fetch_bytes)
        inputs = fetch_ahead(*of_inputs, [part for part in ahead if part.topic in names])

        def fetch(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
            return (inputs if topic_partition.topic in names else outputs)(topic_partition, offset, read_committed)

        return fetch


@contextmanager
def open_both_sides(engine: Engine, contract: Contract, connections: Connections) -> Iterator[Sources]:
    """Connect to both sides. Raises BrokerUnreachable, LedgerUnreachable."""
    with open_admin(connections.kafka) as admin, open_ledger_of(engine, contract, connections) as ledger:
        proofs = proofs_of_run(contract, connections)
        yield Sources(contract=contract, admin=admin, ledger=ledger, server_proofs=proofs)


def observe(
    engine: Engine,
    contract: Contract,
    connections: Connections,
    *,
    window_end_utc: datetime,
    now_utc: datetime,
) -> Readiness:
    """Append a sample taken at now_utc or later, and assess the window by all samples since its end.

    The sample is dated now_utc, asked before the reads, so that what was written by then lies below its marks. None is
    taken for a contract that may not go on with the books of its name: it could be of another server. Raises
    ContractChangeRefused, and WindowNotOver where the window's end lies further ahead than settling may take.
    """
    require_same_books(engine, contract)
    refuse_not_over(contract.name, window_end_utc=window_end_utc, now_utc=now_utc, wait=contract.settle_timeout)
    with open_both_sides(engine, contract, connections) as sides:
        partitions, ledger = sides.read_marks()
    append_sample(engine, contract.name, sample_of(partitions, ledger, at_utc=now_utc))
    samples = read_samples(engine, contract.name, since_utc=window_end_utc)
    return assess_readiness(
        samples, window_end_utc=window_end_utc, partitions=partitions, ledger_low_mark=ledger.low_mark
    )


def sample_of(partitions: tuple[PartitionSnapshot, ...], ledger: LedgerSnapshot, *, at_utc: datetime) -> Sample:
    """Return the positions up to which both sides had been written, by at_utc at least."""
    return Sample(
        at_utc=at_utc,
        high_watermarks=tuple((part.topic_partition, part.written_end) for part in partitions),
        ledger_low_mark=ledger.low_mark,
        ledger_high_mark=ledger.high_mark,
    )
