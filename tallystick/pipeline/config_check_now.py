"""The config check of a contract's topics as the cluster stands now, without a run, a store or a ledger."""

from collections.abc import Iterable

from tallystick.connections.connections import KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.config_check import ConfigLine, config_check
from tallystick.kafka_cluster.settings import read_broker_settings, read_topic_settings
from tallystick.kafka_cluster.state import ServerProof
from tallystick.kafka_log.fetch import fetcher, open_admin
from tallystick.kafka_log.offset_census import take_census
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import OffsetRange

NEWEST_OFFSETS = 10_000
"""Of each partition: what its producers do today, at a cost that does not grow with the log."""


def read_config_check(
    contract: Contract, kafka: KafkaSettings, server_proofs: Iterable[ServerProof]
) -> tuple[ConfigLine, ...]:
    """Ask the cluster. The producers' lines are about the newest offsets below the LSO.

    Raises BrokerUnreachable, TopicNotFound, OffsetNotInLog.
    """
    with open_admin(kafka) as admin:
        partitions = read_topic_snapshot(admin, contract.topics)
        fetch = fetcher(admin)
        return config_check(
            contract,
            topics=read_topic_settings(admin, contract.topics),
            broker=read_broker_settings(admin),
            census=[take_census(fetch, _newest(part), log_start=part.log_start) for part in partitions],
            server_proofs=server_proofs,
        )


def _newest(part: PartitionSnapshot) -> OffsetRange:
    return part.stable_from(max(part.log_start, part.lso - NEWEST_OFFSETS))
