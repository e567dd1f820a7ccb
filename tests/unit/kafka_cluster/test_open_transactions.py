"""A transaction hangs when the partition says open after every coordinator has said that it owes no marker."""

from collections import namedtuple
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import TransactionState
from kafka.errors import (
    CoordinatorLoadInProgressError,
    TransactionalIdAuthorizationFailedError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)

from tallystick.kafka_cluster.open_transactions import OpenTransaction, TransactionsNotTold, read_open_transactions
from tallystick.kafka_log.fetch import BrokerUnreachable
from tests.unit.builders import PART

Producer = namedtuple(
    "Producer", "producer_id producer_epoch current_transaction_start_offset coordinator_epoch", defaults=(-1,)
)
State = namedtuple("State", "active_producers")
Listing = namedtuple("Listing", "transactional_id producer_id")
Description = namedtuple("Description", "state transaction_start_time_ms transaction_timeout_ms topic_partitions")

HERE, ELSEWHERE = ClientTopicPartition(PART.topic, PART.partition), ClientTopicPartition(PART.topic, 7)
RELAY = Producer(4001, 3, 20)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What the cluster would answer at one moment. state "": no coordinator lists the producer id."""

    producers: tuple[Producer, ...] = (RELAY,)
    state: str = "Ongoing"
    partitions: frozenset[ClientTopicPartition] = frozenset({HERE})


@dataclass
class Cluster:
    """Answers one moment after the other, and the last one for ever; a moment begins with the partition's answer."""

    moments: list[Moment]
    leader_id: int = 1
    may_describe: bool = True
    """All transactional ids, and not that of the relay alone."""
    expired_ids: frozenset[str] = frozenset()
    now: Moment = field(default_factory=Moment)
    asked: int = 0

    def describe_producers(self, partitions: Iterable[ClientTopicPartition]) -> dict[ClientTopicPartition, State]:
        self.now = self.moments[min(self.asked, len(self.moments) - 1)]
        self.asked += 1
        return {part: State(list(self.now.producers)) for part in partitions}

    def list_transactions(self, producer_id_filters: Iterable[int] = ()) -> dict[int, list[Listing]]:
        return {1: [Listing("relay-1", 4001)] if self.now.state and 4001 in producer_id_filters else []}

    def describe_transactions(self, ids: list[str]) -> dict[str, Description]:
        if not self.may_describe and "relay-1" not in ids:
            raise TransactionalIdAuthorizationFailedError
        if set(ids) & self.expired_ids or "relay-1" not in ids:
            raise TransactionalIdNotFoundError
        return {
            name: Description(TransactionState(self.now.state), 1_000, 60_000, set(self.now.partitions)) for name in ids
        }

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        return [{"partitions": [{"leader_id": 1}, {"leader_id": self.leader_id}]}]


LIVE = Moment()
UNKNOWN = Moment(state="")
NOT_LISTED = Moment(partitions=frozenset({ELSEWHERE}))
ENDED_ELSEWHERE = Moment(state="CompleteCommit")
COMMITTING = Moment(state="PrepareCommit")
MARKER_WRITTEN = Moment(state="PrepareCommit", partitions=frozenset())
GONE = Moment(producers=())
NEXT = Moment(producers=(Producer(4001, 3, 27),), state="")


def read(*moments: Moment, **cluster: Any) -> tuple[OpenTransaction, ...]:
    return read_open_transactions(Cluster(list(moments), **cluster), [PART])  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", [UNKNOWN, NOT_LISTED, ENDED_ELSEWHERE], ids=["unknown", "not listed", "ended"])
def test_what_no_coordinator_will_end_hangs_if_it_is_still_open_afterwards(moment: Moment) -> None:
    (found,) = read(moment, moment)
    assert (found.hangs, found.confirmed, found.will_end) == (True, True, False)
    assert (found.producer_id, found.producer_epoch, found.kafka_offset_start) == (4001, 3, 20)


@pytest.mark.parametrize("moment", [LIVE, COMMITTING], ids=["ongoing", "its marker is under way"])
def test_what_a_coordinator_lists_is_asked_about_once_and_does_not_hang(moment: Moment) -> None:
    cluster = Cluster([moment])
    (found,) = read_open_transactions(cluster, [PART])  # type: ignore[arg-type]
    assert (found.hangs, found.will_end, cluster.asked) == (False, True, 1)
    assert (found.transactional_id, found.started_ms, found.timeout_ms) == ("relay-1", 1_000, 60_000)


@pytest.mark.parametrize("first", [ENDED_ELSEWHERE, MARKER_WRITTEN], ids=["complete", "marker written"])
def test_a_transaction_that_ended_between_two_questions_does_not_hang(first: Moment) -> None:
    """The partition was asked before its marker, the coordinator after it."""
    assert read(first, GONE) == ()
    (next_one,) = read(first, NEXT)
    assert (next_one.hangs, next_one.kafka_offset_start) == (False, 27)


def test_one_that_ends_while_another_is_looked_at_does_not_hang() -> None:
    """Its coordinator owed the marker in the first answer; that it owes none in the second proves nothing yet."""
    stranger = Producer(4009, 0, 30)
    first = replace(COMMITTING, producers=(RELAY, stranger))
    found = read(first, replace(MARKER_WRITTEN, producers=(RELAY, stranger)))
    assert [(one.producer_id, one.hangs) for one in found] == [(4001, False), (4009, True)]


def test_records_that_a_later_transaction_will_end_do_not_hang_any_more() -> None:
    (found,) = read(NOT_LISTED, LIVE)
    assert not found.hangs


def test_nothing_hangs_while_a_part_of_the_coordinators_log_has_no_leader() -> None:
    cluster = Cluster([UNKNOWN], leader_id=-1)
    (found,) = read_open_transactions(cluster, [PART])  # type: ignore[arg-type]
    assert (found.hangs, cluster.asked) == (False, 1)


@pytest.mark.parametrize("moment", [UNKNOWN, NOT_LISTED], ids=["its id is not shown", "another transaction of it is"])
def test_nothing_hangs_for_a_client_that_is_not_shown_all_transactional_ids(moment: Moment) -> None:
    """A two-phase transaction of somebody else may be as old as it likes, and is alive."""
    (found,) = read(moment, moment, may_describe=False)
    assert (found.hangs, found.confirmed) == (False, False)


def test_an_id_that_expired_since_it_was_listed_knows_nothing() -> None:
    (found,) = read(LIVE, LIVE, expired_ids=frozenset({"relay-1"}))
    assert (found.hangs, found.coordinator_state, found.started_ms) == (True, "", None)


def test_the_start_of_a_transaction_elsewhere_is_not_the_age_of_this_one() -> None:
    (found,) = read(NOT_LISTED, NOT_LISTED)
    assert (found.transactional_id, found.started_ms, found.timeout_ms) == ("relay-1", None, None)


def test_idle_producers_hold_nothing() -> None:
    assert read(Moment(producers=(Producer(4001, 3, -1),))) == ()


def test_transactions_come_in_log_order() -> None:
    found = read(replace(LIVE, producers=(Producer(4001, 3, 24), Producer(4001, 3, 20))))
    assert [one.kafka_offset_start for one in found] == [20, 24]


def test_a_coordinator_that_is_still_loading_leaves_no_answer() -> None:
    class Loading(Cluster):
        def list_transactions(self, producer_id_filters: Iterable[int]) -> dict[int, list[Listing]]:
            raise CoordinatorLoadInProgressError

    with pytest.raises(BrokerUnreachable, match="open transactions: CoordinatorLoadInProgressError"):
        read_open_transactions(Loading([LIVE]), [PART])  # type: ignore[arg-type]


def test_a_broker_without_kip_664_tells_of_no_transaction_and_is_not_unreachable() -> None:
    class Old(Cluster):
        def describe_producers(self, partitions: Iterable[ClientTopicPartition]) -> dict[ClientTopicPartition, State]:
            raise UnsupportedVersionError

    with pytest.raises(TransactionsNotTold, match="the broker does not name them") as raised:
        read_open_transactions(Old([LIVE]), [PART])  # type: ignore[arg-type]
    assert not raised.value.retryable
