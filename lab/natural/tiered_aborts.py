"""KAFKA-17801: a broker hides aborted transactions of a tiered log from its readers.

Where a fetch begins between two entries of a remote segment's offset index, the broker looks for aborted transactions
up to a bound that it counts from the entry before the fetch, not from where the fetch begins. What is aborted in the
last bytes of the answer is not in its list, and a read_committed consumer takes it for committed. Brokers 3.6 to 3.9.0.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from lab.faults.break_writer import Planter
from lab.faults.topic_configs import configure_topic
from lab.natural.committed_poster import post_committed
from lab.natural.natural_fault import Happened, NaturalBook, NaturalFault
from lab.natural.steered_producer import NotAsExpected
from lab.rounds.round_contracts import reads_contract
from lab.servers import process
from lab.servers.log_ends import LogEnds
from lab.services.event import Event, Leg
from lab.services.kafka_clients import new_admin

_SOURCE = Path(__file__).with_name("java") / "FolderStorage.java"
_TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": "65536",
    "local.retention.ms": "1",
    # As long as a transaction or two, so that a log of some hundreds has what one of millions has.
    "index.interval.bytes": "4096",
}
_TRANSACTIONS = 300
_FETCH_BYTES = 8_000
_AWAY_SECONDS = 90.0


def tiered_settings(folder: Path, jars: Path) -> dict[str, str]:
    """Settings of a broker that keeps old segments elsewhere, here in a folder; compiles what does that for it."""
    classes = folder / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(_SOURCE)], check=True)
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "FolderStorage",
        "remote.log.storage.manager.class.path": f"{classes}/",
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.folder": str(folder / "remote"),
        "remote.log.metadata.manager.listener.name": "PLAIN",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
    }


def tiered_aborts(book: NaturalBook) -> Happened:
    """Every other transaction is aborted; a consumer reads them from the tier, in small fetches, and posts."""
    place = (f"{book.name}.payments", 0)
    configure_topic(new_admin(book.stack.bootstrap_servers), place[0], _TIERED)
    with Planter.open(book.stack, book.name, book.dice) as planter:
        events = [planter.payment_at(Leg.PAYMENT, place).event(Leg.PAYMENT) for _ in range(_TRANSACTIONS)]
        producer = planter.producer(transactional=True)
        producer.init_transactions(30)
        for number, event in enumerate(events):
            producer.begin_transaction()
            planter.send(producer, event, place, source="billing")
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    LogEnds(new_admin(book.stack.bootstrap_servers)).wait_until_decided([place])
    _wait_until_away(book, place)
    posted = post_committed(book, [place], fetch_message_max_bytes=_FETCH_BYTES)
    leaked = _of(posted, events[1::2])
    if not leaked or len(_of(posted, events[::2])) != len(events[::2]):
        raise NotAsExpected(f"{len(leaked)} aborted payments of {len(events) // 2} were read as committed")
    return Happened(
        on_the_log=f"{len(leaked)} of {len(events) // 2} aborted payments were given to a read_committed consumer, and "
        "posted. To a reader that begins elsewhere they are aborted.",
        due=book.breaks("aborted_read_in_ledger", *leaked),
    )


def _of(posted: set[str], events: Iterable[Event]) -> list[Event]:
    return [event for event in events if str(event.event_id) in posted]


def _wait_until_away(book: NaturalBook, place: tuple[str, int]) -> None:
    """Return once the broker has none of the partition but the segment that it writes to."""
    folder = book.stack.broker.folder / "data" / f"{place[0]}-{place[1]}"
    process.wait_until(
        lambda: len(list(folder.glob("*.log"))) == 1, what="the tier", deadline_seconds=_AWAY_SECONDS, every_seconds=0.5
    )


TIERED_ABORTS = NaturalFault(
    happen=tiered_aborts,
    issue="KAFKA-17801",
    made_with="broker 3.9.0, tiered",
    contract=lambda name: {**reads_contract(name, name), "settle_timeout_seconds": 60},
    allowed=("readers_disagree",),
)
