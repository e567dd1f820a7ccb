"""KAFKA-13727: an aborted record becomes readable once its segment was cleaned in part.

The cleaner's map of keys fills up within a segment. It cleans up to there and copies the rest, but gathers the aborted
transactions of the cleaned part only; the new segment's index of aborted transactions lacks those of the rest. A broker
answers a reader from that index: to every read_committed consumer the aborted data is committed from then on.
Brokers before 3.0.2, 3.1.1 and 3.2.0.
"""

from lab.faults.break_writer import Planter
from lab.faults.topic_configs import configure_topic
from lab.natural.committed_poster import post_committed
from lab.natural.natural_fault import Happened, NaturalBook, NaturalFault
from lab.rounds.round_contracts import reads_contract
from lab.servers import process
from lab.services.event import Leg
from lab.services.kafka_clients import new_admin
from lab.truth.effect_reader import EventReader

BROKER_SETTINGS = {
    # The least that a cleaner takes, of which it may fill a thousandth: a map of some forty keys, so that a segment of
    # a hundred records is to it what one of millions is to a map of the usual size.
    "log.cleaner.dedupe.buffer.size": str((1 << 20) + 1),
    "log.cleaner.io.buffer.load.factor": "0.001",
}
_KEYS = 100
_COMPACTING = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.001"}
_CLEANED_SECONDS = 60.0


def partial_cleaning(book: NaturalBook) -> Happened:
    """A payment that its client aborted is posted, by a consumer that reads committed data only."""
    place = (f"{book.name}.payments", 0)
    with Planter.open(book.stack, book.name, book.dice) as planter:
        producer = planter.producer()
        for _ in range(_KEYS):
            planter.hand_over(producer, planter.payment_at(Leg.PAYMENT, place).event(Leg.PAYMENT), place)
        if producer.flush(30):
            raise TimeoutError("the broker did not take the payments")
        aborted = planter.payment_at(Leg.PAYMENT, place).event(Leg.PAYMENT)
        planter.publish_in_transaction([aborted], source="aborted", commit=False)
        configure_topic(new_admin(book.stack.bootstrap_servers), place[0], _COMPACTING)

        def is_readable() -> bool:
            """Each payment closes the segment before it."""
            planter.send(planter.producer(), planter.payment_at(Leg.PAYMENT, place).event(Leg.PAYMENT), place)
            return bool(_committed(book, place)[str(aborted.event_id)])

        process.wait_until(
            is_readable, what="the aborted payment", deadline_seconds=_CLEANED_SECONDS, every_seconds=0.5
        )
    post_committed(book, [place])
    return Happened(
        on_the_log="A payment that its client aborted is read by every committed reader, and posted. Its ABORT marker "
        "stands behind it; the broker's list of aborted transactions lacks it.",
        due=(book.doubt("readers_disagree", place),),
    )


def _committed(book: NaturalBook, place: tuple[str, int]) -> dict[str, int]:
    return EventReader(book.stack.bootstrap_servers, [place]).read()


PARTIAL_CLEANING = NaturalFault(
    happen=partial_cleaning,
    issue="KAFKA-13727",
    made_with="broker 3.1.0",
    contract=lambda name: {**reads_contract(name, name), "settle_timeout_seconds": 60},
    unseen="Once the cleaner has taken the marker too, which it may after delete.retention.ms: then nothing on the log "
    "says that the record was aborted.",
)
