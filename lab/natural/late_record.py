"""A late record joins the next transaction of its producer: KIP-890, before its second part.

A request with a transaction's only record stands in the network. Its batch expires while the application commits, so
the commit fails, and the application aborts. The client asks for a new epoch after a batch that failed, but not where
it failed during a commit (TransactionManager.maybeTransitionToErrorState). So the next transaction has the same epoch;
it writes to the same partition, the coordinator confirms that, and the late request, which now arrives, is one of its
own for all that the leader can know. The leader even waits for it: until then the next record is out of sequence.
"""

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from lab.faults.break_writer import Planter
from lab.natural.natural_fault import Happened, NaturalBook, NaturalFault, wait_seconds
from lab.natural.steered_producer import NotAsExpected, SteeredProducer
from lab.rounds.round_contracts import payouts_contract
from lab.servers import process
from lab.servers.log_ends import Partition
from lab.servers.proxy import Loss, Request, StallEnd
from lab.services.event import Event, Leg
from lab.services.raw_producer import open_raw_admin
from lab.truth.effect_reader import EventReader

_EXPIRES_MS = "2000"
_OLDER_SECONDS = 0.3  # so much older is a batch than its request, so that it expires before that times out
_ONGOING = "Ongoing"


def late_record(book: NaturalBook) -> Happened:
    """Twice: a relay that publishes its row again, and a service that has given its payout up and goes on."""
    with Planter.open(book.stack, book.name, book.dice) as planter:
        rows = [planter.add_payout(planter.payment_at(Leg.PAYOUT, (f"{book.name}.payouts", 0))) for _ in range(3)]
        first, again, own = (row.event for row in rows)
        given_up = planter.payment_at(Leg.PAYOUT, (f"{book.name}.payouts", 0)).event(Leg.PAYOUT)
        place = planter.place(first)
    transactional_id = f"{book.name}-relay"
    with (
        open_raw_admin(book.stack.bootstrap_servers) as admin,
        book.producer(
            transactional_id,
            transactional_id=transactional_id,
            delivery_timeout_ms=_EXPIRES_MS,
            request_timeout_ms=_EXPIRES_MS,
        ) as producer,
    ):
        _publish(producer, place, first)
        late = _Late(book, admin, producer, transactional_id, place)
        late.join(again, following=again)
        late.join(given_up, following=own)
    copies = EventReader(book.stack.bootstrap_servers, [place]).read()
    told = {str(event.event_id): copies[str(event.event_id)] for event in (first, again, given_up, own)}
    if list(told.values()) != [1, 2, 1, 1]:
        raise NotAsExpected(f"the late records did not join: {told}")
    return Happened(
        on_the_log="Two records of transactions that their client aborted are committed, under the next one's marker: "
        "one beside its own repetition, one of a payout that does not exist.",
        due=(
            *book.breaks("duplicate_in_topic_new_session", again),
            *book.breaks("phantom_in_topic", given_up),
        ),
    )


class _Late:
    """Lets records come late."""

    def __init__(
        self,
        book: NaturalBook,
        admin: KafkaAdminClient,
        producer: SteeredProducer,
        transactional_id: str,
        place: Partition,
    ) -> None:
        self.proxy = book.stack.proxy
        self.admin, self.producer, self.transactional_id, self.place = admin, producer, transactional_id, place
        self.joined = 0

    def join(self, late: Event, *, following: Event) -> None:
        """A transaction that is aborted, whose record arrives during the next one."""
        self.proxy.arm(self.transactional_id, loss=Loss.STALL, request=Request.ADD_PARTITIONS_TO_TXN)
        self.proxy.arm(self.transactional_id, loss=Loss.STALL)
        self.producer.begin()
        self.producer.send(self.place, late)
        self.joined += 1
        self._wait_stalled(Request.ADD_PARTITIONS_TO_TXN)
        wait_seconds(_OLDER_SECONDS)
        self.proxy.end_stall(self.transactional_id, StallEnd.PASS)
        self._wait_stalled(Request.PRODUCE)
        self.producer.fail_to_commit()
        self.producer.abort()
        self.producer.begin()
        number = self.producer.send(self.place, following)
        process.wait_until(self._is_ongoing, what=f"{self.transactional_id} in its next transaction")
        self.proxy.end_stall(self.transactional_id, StallEnd.LAST)
        self.producer.offset_of(number)
        self.producer.commit()

    def _wait_stalled(self, request: Request) -> None:
        self.proxy.wait_fired(self.transactional_id, self.joined, loss=Loss.STALL, request=request)

    def _is_ongoing(self) -> bool:
        """Has the coordinator added the partition to the next transaction?"""
        try:
            found = self.admin.describe_transactions([self.transactional_id])[self.transactional_id]
        except KafkaError:
            return False
        return bool(found.state == _ONGOING and found.topic_partitions)


def _publish(producer: SteeredProducer, place: Partition, event: Event) -> None:
    producer.begin()
    number = producer.send(place, event)
    producer.commit()
    producer.offset_of(number)


LATE_RECORD = NaturalFault(
    happen=late_record,
    issue="KIP-890 part 2",
    made_with="client and broker 3.9.0",
    contract=lambda name: payouts_contract(name, name),
    unseen="That they came late, and from which transaction: producer id, epoch and sequence are those of the "
    "transaction that they joined, so its batches are the same as if it had written them.",
)
