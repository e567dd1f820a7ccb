"""The config check: every setting that exactly-once depends on, compared with what this contract needs.

Pure rules over what a run or the command line has read. A setting that nobody could read is unknown, never ok; one at
risk has broken nothing yet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from croniter import croniter

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import BrokerSettings, ServerProof, TopicSettings
from tallystick.model.census_values import PartitionCensus
from tallystick.model.direction import Direction

CLUSTER, CONTRACT = "cluster", "contract"
"""Where a setting stands that is no topic's."""

REPLICATION_FACTOR_MIN, MIN_INSYNC_REPLICAS_MIN = 3, 2
"""One replica may be down while writes go on, and what was acknowledged still lies on another."""

_DAYS_SPELLED_MIN = 3
_FIRINGS_MAX = 12_000
"""More than a week of a schedule that fires each minute."""

_FENCINGS_MIN, _FENCED_SHARE = 3, 10
"""Churn: at least three fenced transactions, and more than one in ten. A crash and its restart fence one."""


class CheckResult(StrEnum):
    """The answer whether a setting keeps what exactly-once needs."""

    OK = "ok"
    AT_RISK = "at risk"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class ConfigLine:
    """One setting. scope: a topic, a connection, CLUSTER or CONTRACT. needs: what would be ok. do: one action; "" where
    it is.

    loses: acknowledged records may be lost as it stands, whatever the producers do.
    """

    setting: str
    scope: str
    value: str
    needs: str
    standing: CheckResult
    do: str
    loses: bool = False


def config_check(
    contract: Contract,
    *,
    topics: Iterable[TopicSettings],
    broker: BrokerSettings | None,
    census: Sequence[PartitionCensus],
    server_proofs: Iterable[ServerProof] = (),
) -> tuple[ConfigLine, ...]:
    """Every line of every topic of the contract, then the cluster's, the connections' and the contract's own."""
    read, horizon = {one.topic: one for one in topics}, reconciliation_horizon(contract)
    return (
        *(
            line
            for topic in contract.topics
            for line in (
                *_topic(topic, read.get(topic), horizon),
                *_producers(contract.kafka.producers, topic, _counts([one for one in census if one.topic == topic])),
            )
        ),
        *_transactions(broker, contract.settle_timeout, contract.partner_grace, longest_pause(contract)),
        *map(_connection, server_proofs),
        *_reader(contract),
    )


def reconciliation_horizon(contract: Contract) -> timedelta:
    """Return how long a record must stay readable: the schedule's longest interval, the settling, and the partner's
    grace.
    """
    return longest_interval(contract.schedule, contract.start_date) + contract.settle_timeout + contract.longest_grace


@lru_cache(maxsize=64)
def longest_interval(schedule: str, start: datetime) -> timedelta:
    """The longest pause between two firings: of `0 * * * 1-5` it is the weekend."""
    every_day_alike = schedule.split()[2:] == ["*", "*", "*"]
    days = 2 if every_day_alike else 3 * 366
    firings = croniter(schedule, start)
    moments: Iterator[datetime] = (firings.get_next(datetime) for _ in range(_FIRINGS_MAX))
    longest = timedelta(0)
    for earlier, later in pairwise(moments):
        longest = max(longest, later - earlier)
        if later - start > timedelta(days=days):
            break
    return longest


@lru_cache(maxsize=1_000)
def _topic(topic: str, read: TopicSettings | None, horizon: timedelta) -> tuple[ConfigLine, ...]:
    """What the topic's own settings say. They are the same in nearly each run."""
    return (*_replication(topic, read), *_log(topic, read, horizon))


def _replication(topic: str, read: TopicSettings | None) -> Iterator[ConfigLine]:
    """RF 3 with min.insync.replicas 2 and acks=all: one broker may go without loss. Source: Kafka's design, 4.7."""
    yield _line(
        "replication factor",
        topic,
        None if read is None else read.replication_factor,
        f"{REPLICATION_FACTOR_MIN} or more",
        ok=read is not None and read.replication_factor >= REPLICATION_FACTOR_MIN,
        do="reassign the partitions to more brokers: a lost disk must not be a lost log",
    )
    yield _line(
        "min.insync.replicas",
        topic,
        None if read is None else read.min_insync_replicas,
        f"{MIN_INSYNC_REPLICAS_MIN} or more, and below the replication factor",
        ok=read is not None and MIN_INSYNC_REPLICAS_MIN <= read.min_insync_replicas < read.replication_factor,
        do="set 2 with three replicas: an acknowledgement is then on two disks, and one broker may be down",
    )
    yield _line(
        "in-sync replicas",
        topic,
        None if read is None else read.in_sync_replicas,
        "min.insync.replicas or more, on each partition",
        ok=read is not None and read.in_sync_replicas >= read.min_insync_replicas,
        do="bring the missing replicas back: producers with acks=all are refused meanwhile",
    )
    unclean = read is not None and read.unclean_leader_election
    yield _line(
        "unclean.leader.election.enable",
        topic,
        None if read is None else str(unclean).lower(),
        "false",
        ok=not unclean,
        do="set false: a replica that lags must not become leader and cut acknowledged records off",
        loses=read is not None and unclean and read.replication_factor > 1,
    )


def _log(topic: str, read: TopicSettings | None, horizon: timedelta) -> Iterator[ConfigLine]:
    """What may take a record before it is read: compaction, and retention by time or by size."""
    yield _line(
        "cleanup.policy",
        topic,
        None if read is None else ",".join(read.cleanup_policy),
        "delete, without compact",
        ok=read is not None and not read.compacts,
        do="take compact out: of two events with one record key it keeps the later only",
    )
    kept = timedelta(milliseconds=read.retention_ms) if read else timedelta(0)
    yield _line(
        "retention.ms",
        topic,
        None if read is None else _milliseconds(read.retention_ms),
        f"{_duration(horizon)} or more: interval, settling and grace",
        ok=read is not None and (read.retention_ms < 0 or kept >= horizon),
        do="raise it: what expires unread can never be proven",
    )
    limited = read is not None and read.retention_bytes >= 0
    yield ConfigLine(
        setting="retention.bytes",
        scope=topic,
        value=_NOT_READ if read is None else _bytes(read.retention_bytes),
        needs="no limit, or more than is written between two runs",
        standing=CheckResult.UNKNOWN if read is None or limited else CheckResult.OK,
        do=_READ_IT if read is None else "set -1, or compare it with the busiest interval's traffic" if limited else "",
    )


class _Counts(NamedTuple):
    """What a topic's census tells of its producers. ended: transactions that were committed or aborted."""

    partitions: int
    without_producer_id: int
    plain: int
    fenced: int
    ended: int


def _counts(census: Sequence[PartitionCensus]) -> _Counts:
    return _Counts(
        partitions=len(census),
        without_producer_id=sum(part.without_producer_id for part in census),
        plain=sum(part.plain for part in census),
        fenced=sum(part.fencings for part in census),
        ended=sum(part.commit_markers + part.abort_markers for part in census),
    )


@lru_cache(maxsize=1_000)
def _producers(declared: str, topic: str, counts: _Counts) -> tuple[ConfigLine, ...]:
    """Whether the records keep what the contract declares of its producers. Sources: KIP-98, KIP-360, KIP-890."""
    return tuple(_producer_lines(declared, topic, counts))


def _producer_lines(declared: str, topic: str, counts: _Counts) -> Iterator[ConfigLine]:
    counted, without, plain = counts.partitions > 0, counts.without_producer_id, counts.plain
    fenced, ended = counts.fenced, counts.ended
    if declared != "any":
        yield _line(
            "records without a producer id",
            topic,
            without if counted else None,
            f"none: the contract declares its producers {declared}",
            ok=counted and without == 0,
            do="set enable.idempotence=true on every producer of the topic: a retry may double a record",
        )
    if declared == "transactional":
        yield _line(
            "records outside a transaction",
            topic,
            plain if counted else None,
            "none: the contract declares its producers transactional",
            ok=counted and plain == 0,
            do="find the producer that writes without a transactional.id: its records can be torn apart",
        )
    yield _line(
        "fenced transactions",
        topic,
        f"{fenced:,} of {ended:,}" if counted else None,
        f"fewer than {_FENCINGS_MIN}, or at most one in {_FENCED_SHARE}",
        ok=counted and (fenced < _FENCINGS_MIN or fenced * _FENCED_SHARE <= ended),
        do="look for two processes with one transactional.id, or one that restarts again and again",
    )


@lru_cache(maxsize=1_000)
def _transactions(
    broker: BrokerSettings | None, settle_timeout: timedelta, partner_grace: timedelta, pause: timedelta
) -> tuple[ConfigLine, ...]:
    """What the brokers allow a transaction, and how long they remember a producer. Sources: KIP-98, KIP-854."""
    return tuple(_transaction_lines(broker, settle_timeout, partner_grace, pause))


def _transaction_lines(
    broker: BrokerSettings | None, settle_timeout: timedelta, partner_grace: timedelta, pause: timedelta
) -> Iterator[ConfigLine]:
    longest = timedelta(milliseconds=broker.transaction_max_timeout_ms) if broker else timedelta(0)
    yield _line(
        "transaction.max.timeout.ms",
        CLUSTER,
        None if broker is None else _milliseconds(broker.transaction_max_timeout_ms),
        f"{_duration(settle_timeout)} or less: a run waits no longer (settle_timeout_seconds)",
        ok=broker is not None and longest <= settle_timeout,
        do="lower it, or raise settle_timeout_seconds: until then an open transaction may leave runs inconclusive",
    )
    yield _line(
        "transactional.id.expiration.ms",
        CLUSTER,
        None if broker is None else _milliseconds(broker.transactional_id_expiration_ms),
        f"{_duration(pause)} or more: the longest pause of a producer that this contract knows of",
        ok=broker is not None and timedelta(milliseconds=broker.transactional_id_expiration_ms) >= pause,
        do="raise it: a producer that comes back after its id was forgotten is not fenced any more",
    )
    retries = max(longest, partner_grace)
    yield _line(
        "producer.id.expiration.ms",
        CLUSTER,
        None if broker is None else _milliseconds(broker.producer_id_expiration_ms),
        "the longest transaction and the partner's grace, or more",
        ok=broker is not None and timedelta(milliseconds=broker.producer_id_expiration_ms) >= retries,
        do="raise it: a retry after the broker forgot the producer's sequence is a duplicate",
    )


def longest_pause(contract: Contract) -> timedelta:
    """Return the longest time between two uses of a producer: the schedule's longest interval, and a repair's wait for
    its approval.
    """
    approval = contract.compensation.approval_timeout_seconds if contract.compensation else 0
    return max(longest_interval(contract.schedule, contract.start_date), timedelta(seconds=approval))


def _connection(proof: ServerProof) -> ConfigLine:
    """Who stands between reads what we read, and may answer in the server's place. On one machine nobody does."""
    if not proof.value:
        do = "let this command see the connection, as TALLYSTICK_CONN_ and its id, and look what it says of TLS"
        standing = CheckResult.UNKNOWN
    else:
        safe = proof.proven or proof.is_local
        do = "" if safe else "turn TLS on there and let the connection prove the server: anybody on the way may answer"
        standing = CheckResult.OK if safe else CheckResult.AT_RISK
    local = ", on this machine" if proof.is_local else ""
    return ConfigLine(
        setting=proof.setting,
        scope=proof.connection,
        value=f"{proof.value}{local}" if proof.value else _NOT_READ,
        needs=proof.needs,
        standing=standing,
        do=do,
    )


def _reader(contract: Contract) -> Iterator[ConfigLine]:
    """The ledger's consumer, where the ledger follows the topic: nothing can ask it, so the owner declares it."""
    if contract.direction is not Direction.TOPIC_TO_LEDGER:
        return
    declared = contract.ledger.consumer_isolation
    yield ConfigLine(
        setting="ledger.consumer_isolation",
        scope=CONTRACT,
        value=declared or "not declared",
        needs="read_committed",
        standing={"read_committed": CheckResult.OK, "read_uncommitted": CheckResult.AT_RISK}.get(
            declared or "", CheckResult.UNKNOWN
        ),
        do="" if declared == "read_committed" else "set isolation.level=read_committed on the consumer and declare it",
    )


_NOT_READ = "not read"
_READ_IT = "let this client describe the topic's and the brokers' settings (DESCRIBE_CONFIGS), or wait for a run"


def _line(
    setting: str, scope: str, value: object | None, needs: str, *, ok: bool, do: str, loses: bool = False
) -> ConfigLine:
    """A line of a setting that was read, or, with value None, that nobody could read."""
    if value is None:
        return ConfigLine(
            setting=setting, scope=scope, value=_NOT_READ, needs=needs, standing=CheckResult.UNKNOWN, do=_READ_IT
        )
    return ConfigLine(
        setting=setting,
        scope=scope,
        value=f"{value:,}" if isinstance(value, int) else str(value),
        needs=needs,
        standing=CheckResult.OK if ok else CheckResult.AT_RISK,
        do="" if ok else do,
        loses=loses and not ok,
    )


def _milliseconds(value: int) -> str:
    return "no limit" if value < 0 else _duration(timedelta(milliseconds=value))


def _bytes(value: int) -> str:
    return "no limit" if value < 0 else f"{value:,} bytes"


def _duration(length: timedelta) -> str:
    """90 s, 15 min, 7 days: the largest unit that leaves no rest; where that is many, days and the rest."""
    days, rest = divmod(length, timedelta(days=1))
    if days >= _DAYS_SPELLED_MIN and rest:
        return f"{days:,} days {_duration(rest)}"
    milliseconds = length // timedelta(milliseconds=1)
    for unit, name in ((86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if milliseconds % unit == 0 and milliseconds >= unit:
            count = milliseconds // unit
            return "1 day" if (count, name) == (1, "days") else f"{count:,} {name}"
    return f"{milliseconds:,} ms"
