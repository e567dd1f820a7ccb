"""A transactional producer by hand, request by request: it does what no client library lets one do.

Through kafka-python's network layer. Speaks as a client before transaction.version 2 does (KIP-890): one epoch for all
its transactions, partitions added by a request of their own.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    RequestTimedOutError,
    for_code,
)
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.producer.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from lab.servers import process
from lab.services.event import Event

_TRANSACTION_TIMEOUT_MS = 60_000
_PRODUCE_TIMEOUT_MS = 10_000
_VERIFICATION = "transaction.partition.verification.enable"
_COORDINATOR_NOT_READY = (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    RequestTimedOutError,
)


@contextmanager
def open_raw_admin(bootstrap_servers: str) -> Iterator[KafkaAdminClient]:
    """A connected kafka-python client, closed at the end."""
    admin = KafkaAdminClient(
        bootstrap_servers=bootstrap_servers.split(","),
        client_id="lab",
        bootstrap_timeout_ms=20_000,
        request_timeout_ms=20_000,
    )
    try:
        yield admin
    finally:
        admin.close()


@dataclass
class RawProducer:
    """One producer session. Its requests go where they must; their errors are raised as kafka.errors.

    next_sequence: how many records it has produced.
    """

    admin: KafkaAdminClient
    transactional_id: str
    producer_id: int = -1
    producer_epoch: int = -1
    next_sequence: int = 0

    def open(self) -> None:
        """InitProducerId: take over the transactional id, which ends what an earlier session left open."""

        def is_open() -> bool:
            try:
                answer = self._ask_coordinator(
                    InitProducerIdRequest(
                        transactional_id=self.transactional_id,
                        transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
                        producer_id=-1,
                        producer_epoch=-1,
                        max_version=4,
                    )
                )
                raise_for(answer.error_code, "InitProducerId")
            except _COORDINATOR_NOT_READY:
                return False
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
            return True

        process.wait_until(is_open, what=f"a producer id for {self.transactional_id}")

    def add_partition(self, topic: str, partition: int) -> None:
        """AddPartitionsToTxn: tell the coordinator where the end of the transaction must be marked."""
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])]
        answer = self._ask_coordinator(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=topics,
                max_version=3,
            )
        )
        for result in answer.results_by_topic_v3_and_below:
            for each in result.results_by_partition:
                raise_for(each.partition_error_code, f"AddPartitionsToTxn {topic}[{partition}]")

    def produce(self, topic: str, partition: int, event: Event, headers: Mapping[str, str]) -> int:
        """Produce one record of the transaction, whether or not the coordinator was told; give its offset."""
        batch = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=1,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.next_sequence,
            batch_size=1 << 20,
        )
        encoded = [(name, value.encode()) for name, value in {**event.headers, **headers}.items()]
        batch.append(0, None, event.message_key, event.to_value(), encoded)
        topic_data = ProduceRequest.TopicProduceData
        data = topic_data.PartitionProduceData(index=partition, records=bytes(batch.build()))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            topic_data=[topic_data(name=topic, partition_data=[data])],
            max_version=11,
        )
        answer = self.admin._manager.run(self._send, request, leader_of(self.admin, topic, partition))
        (produced,) = answer.responses[0].partition_responses
        raise_for(produced.error_code, f"Produce to {topic}[{partition}]")
        self.next_sequence += 1
        return int(produced.base_offset)

    def end(self, *, commit: bool) -> None:
        """EndTxn: the coordinator writes a marker to every partition it was told of."""
        answer = self._ask_coordinator(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                committed=commit,
                max_version=4,
            )
        )
        raise_for(answer.error_code, "EndTxn")

    def _ask_coordinator(self, request: Any) -> Any:
        async def ask() -> Any:
            ids = await self.admin._find_coordinator_ids([self.transactional_id], key_type=CoordinatorType.TRANSACTION)
            return await self.admin._manager.send(request, node_id=ids[self.transactional_id])

        return self.admin._manager.run(ask)

    async def _send(self, request: Any, node: int) -> Any:
        return await self.admin._manager.send(request, node_id=node)


@contextmanager
def unverified_transactions(admin: KafkaAdminClient) -> Iterator[None]:
    """Let brokers take transactional records that the coordinator knows nothing of, for the length of a block.

    Source: KIP-890, whose verification `transaction.partition.verification.enable` turns off.
    """
    _set_verification(admin, "false")
    try:
        yield
    finally:
        _set_verification(admin, "true")


def leader_of(admin: KafkaAdminClient, topic: str, partition: int) -> int:
    """Give the node id of a partition's leader."""
    (described,) = admin.describe_topics([topic])
    return next(int(each["leader_id"]) for each in described["partitions"] if each["partition_index"] == partition)


def broker_ids(admin: KafkaAdminClient) -> list[int]:
    """List the brokers that are up."""
    return sorted(int(broker["broker_id"]) for broker in admin.describe_cluster()["brokers"])


def _set_verification(admin: KafkaAdminClient, value: str) -> None:
    """Set it on each broker, and return once each acts on it."""
    brokers = [str(broker) for broker in broker_ids(admin)]
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.BROKER, broker, {_VERIFICATION: value}) for broker in brokers]
    )

    def is_set() -> bool:
        asked = [ConfigResource(ConfigResourceType.BROKER, broker, [_VERIFICATION]) for broker in brokers]
        answers = admin.describe_configs(asked, config_filter="all")["broker"]
        return all(answers[broker][_VERIFICATION]["value"] == value for broker in brokers)

    process.wait_until(is_set, what=f"{_VERIFICATION}={value}")


def raise_for(error_code: int, what: str) -> None:
    """Raise a broker's error as kafka.errors."""
    if error_code:
        raise for_code(error_code)(what)
