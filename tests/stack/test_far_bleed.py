"""A record of a dead transaction is found in its own window, however far on the marker lies that committed it."""

from datetime import UTC, datetime
from itertools import groupby

import pytest
from confluent_kafka import Producer

from lab.services.raw_producer import RawProducer, open_raw_admin, unverified_transactions
from tallystick.model.finding_names import BreakClass
from tallystick.model.verdict import Verdict
from tests.stack.live_books import Event, RawEvent, expected, kinds, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

FAR = 10_050
"""Records between the stray and its marker; 10,000 were once all that a census looked at."""


def test_a_bled_record_is_found_however_far_its_marker_lies(new_books: NewBooks) -> None:
    with (
        new_books(direction="topic_to_ledger", schedule="0 0 1 1 *") as books,
        open_raw_admin(books.stack.bootstrap_servers) as admin,
    ):
        books.take_cut()
        stray, own, before = _same_partition(3)
        topic, part = books.contract.legs["payment"], stray.partition
        books.both(before)
        dead = RawProducer(admin, f"{books.contract.name}-writer")
        books.producers.clear()  # the dead one has its transactional id now
        dead.open()
        with unverified_transactions(admin):
            at = dead.produce(topic, part, RawEvent(stray), {})
        books.post(stray)
        end = datetime.now(UTC)
        assert not books._observe(end)  # the window ends here, and the stray holds the LSO
        fill = Producer({"bootstrap.servers": books.stack.bootstrap_servers, "log_level": 0})
        for _ in range(FAR):
            fill.produce(topic, b"{}", partition=part)
            fill.poll(0)
        assert fill.flush(60) == 0
        books.produce(own)
        books.wait_stable()
        run = books.judge(books.resolve(end))
        assert run.cut.topic_slices[part].offsets.kafka_offset_end == at + 1
        assert (run.result.verdict, kinds(run)) == (
            Verdict.BROKEN,
            expected((BreakClass.BLED_INTO_TRANSACTION, stray)),
        )
        (found,) = run.result.breaks
        assert found.evidence["marker_offset"] > at + FAR
        assert books.judge_again(run).digest == run.result.digest


def _same_partition(count: int) -> tuple[Event, ...]:
    by_partition = sorted(payments(*map(str, range(20))), key=lambda one: one.partition)
    return next(tuple(group)[:count] for _, group in groupby(by_partition, key=lambda one: one.partition))
