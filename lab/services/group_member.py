"""A member of a consumer group that takes one request; and one so slow that its group gives the request to another.

The slow one is a process of its own: librdkafka's close() of a member that was put out of its group can hang for ever,
and takes the whole process with it.
"""

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lab.servers import process
from lab.services.partition_reader import save_progress

_REBALANCE_SECONDS = 40.0
_POLL_TIMEOUT_MS = 6000  # the least that a stock broker allows (group.min.session.timeout.ms)


def open_member(bootstrap_servers: str, topic: str) -> Consumer:
    """Join the topic's group, which puts a member out that has not polled for six seconds."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"{topic}.group",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": _POLL_TIMEOUT_MS,
            "max.poll.interval.ms": _POLL_TIMEOUT_MS,
            "heartbeat.interval.ms": 500,
            "enable.metrics.push": False,
            "log_level": 0,
        }
    )


def take_one(consumer: Consumer) -> None:
    """Wait for one message."""

    def came() -> bool:
        message = consumer.poll(0.2)
        return message is not None and message.error() is None

    process.wait_until(came, what="a request", deadline_seconds=_REBALANCE_SECONDS)


class SlowMember:
    """The slow member, seen from the lab: it has taken the topic's first request, and polls no more."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    def may_commit(self) -> bool:
        """Have it commit what it took. The group refuses who is no member any more."""
        assert self._child.stdin is not None
        self._child.stdin.write(b"commit\n")
        self._child.stdin.flush()
        return self.next_word() == "committed"

    def next_word(self) -> str:
        """Wait for what it says next. Raises NotReadyInTime, and RuntimeError where it has ended."""
        assert self._child.stdout is not None
        if not select.select([self._child.stdout], [], [], _REBALANCE_SECONDS)[0]:
            raise process.NotReadyInTime(f"the slow member said nothing for {_REBALANCE_SECONDS:.0f} s")
        word = self._child.stdout.readline().decode().strip()
        if not word:
            raise RuntimeError(f"the slow member ended with status {self._child.wait()}")
        return word


@contextmanager
def slow_member(bootstrap_servers: str, topic: str) -> Iterator[SlowMember]:
    """Start one and wait until it has taken a request; it is killed at the end of the block."""
    argv = [sys.executable, "-m", "lab.services.group_member", json.dumps([bootstrap_servers, topic])]
    child = process.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        member = SlowMember(child)
        member.next_word()
        yield member
    finally:
        process.kill_tree(child)


def main() -> None:
    bootstrap_servers, topic = json.loads(sys.argv[1])
    consumer = open_member(bootstrap_servers, topic)
    save_progress(consumer, [TopicPartition(topic, 0, 0)])
    consumer.subscribe([topic])
    take_one(consumer)
    print("took", flush=True)
    sys.stdin.readline()
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    except KafkaException:
        print("refused", flush=True)
    else:
        print("committed", flush=True)
    sys.stdin.readline()  # until it is killed, or the lab is gone


if __name__ == "__main__":
    main()
