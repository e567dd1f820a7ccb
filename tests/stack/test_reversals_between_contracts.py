"""Contracts over one topic that take different copies of one key back leave one between them."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from confluent_kafka import OFFSET_END, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from kafka.partitioner.default import murmur2
from sqlalchemy import text

from lab.services.ledger import PayoutRow
from tallystick.compensation.effect_words import effect_hashes
from tallystick.compensation.plan import Plan
from tallystick.contract.contract import Contract
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import break_id
from tallystick.model.open_item import ItemSide
from tallystick.model.verdict import Verdict
from tallystick.store.migrations.versions import m0015_reversals_by_key

from .payout_world import Books, world

__all__ = ["world"]  # a fixture

DOUBLED = BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION


@pytest.fixture
def contracts(world: Books) -> Iterator[tuple[Books, Books]]:
    """Two over the same sides, which both take copies back."""
    document = world.contract.model_dump(mode="json", exclude_defaults=True)
    rules = document["compensation"] | {"classes": [DOUBLED], "reversal": "negated"}
    found = []
    for name in (world.contract.name, f"{world.contract.name}_new"):
        contract = Contract.model_validate(document | {"contract": name, "compensation": rules})
        found.append(replace(world, contract=contract, runs=replace(world.runs, contract=contract)))
    first, second = found
    second.runs.commit(world.store, second.runs.result(0))
    yield first, second
    topics = [progress_topic_name(second.contract.name)]
    AdminClient({"bootstrap.servers": world.stack.bootstrap_servers}).delete_topics(topics)


def publish_copies(books: Books, row: PayoutRow, count: int) -> list[str]:
    """On the partition where no reversal of theirs comes; their places."""
    producer = Producer({"bootstrap.servers": books.stack.bootstrap_servers})
    partition = 1 - (murmur2(row.event.message_key) & 0x7FFFFFFF) % 2
    for _ in range(count):
        producer.produce(books.topic, partition=partition, key=row.event.message_key, value=row.event.to_value())
    producer.flush()
    return [f"topic:{one.topic}:{one.partition}:{one.offset}" for one in books.records()]


def plan_to_take_back(books: Books, row: PayoutRow, place: str, *, n: int = 1) -> Plan:
    """Of run n, which found this copy one too many."""
    key = str(row.event.event_id)
    found = replace(
        books.runs.missing(key, amount_minor=row.payment.amount_minor),
        break_id=break_id(contract=books.contract.name, break_class=DOUBLED, match_key=key, position=place),
        break_class=DOUBLED,
        transaction_key=str(row.payment.payment_id),
        evidence={"at": place},
    )
    item = replace(books.runs.item(found, n=n), item_id=place, side=ItemSide.TOPIC)
    books.runs.commit(books.store, books.runs.result(n, verdict=Verdict.BROKEN, breaks=(found,), items=(item,)))
    plan = books.plan(cut_n=n)
    assert [one.reverses for one in plan.items] == [place]
    return plan


def taken_back(books: Books) -> Counter[str]:
    headers = [dict(record.headers) for record in books.records()]
    return Counter(one["tallystick-reverses"].decode() for one in headers if "tallystick-reverses" in one)


def fate(books: Books, plan: Plan) -> tuple[str, str]:
    (outcome,) = books.execute(plan).outcomes
    return outcome.fate, outcome.reason


@pytest.mark.parametrize(("copies", "reversals"), [(2, 1), (3, 2)])
def test_two_contracts_that_take_different_copies_back_at_once_leave_one(
    contracts: tuple[Books, Books], copies: int, reversals: int
) -> None:
    (row,) = contracts[0].pay(1)
    places = publish_copies(contracts[0], row, copies)
    both_have_looked = Barrier(2, timeout=60)

    def wait_for_the_other(step: str, figures: object) -> None:
        if step == ExecutorStep.PROVED:
            both_have_looked.wait()

    plans = [plan_to_take_back(books, row, place) for books, place in zip(contracts, places, strict=False)]
    with ThreadPoolExecutor(2) as pool:
        ends = [
            pool.submit(books.execute, plan, on_progress=wait_for_the_other)
            for books, plan in zip(contracts, plans, strict=True)
        ]
        outcomes = [outcome for end in ends for outcome in end.result().outcomes]
    fates = Counter(one.fate for one in outcomes)
    assert fates[ActionResult.PUBLISHED] == taken_back(contracts[0]).total() == reversals
    assert {one.reason for one in outcomes} - {""} == (
        set() if copies > 2 else {"another plan takes every other copy of the event back, or has done so"}
    )


def test_what_another_contract_took_back_counts_when_the_log_shows_it_no_more(contracts: tuple[Books, Books]) -> None:
    first, second = contracts
    (row,) = first.pay(1)
    places = publish_copies(first, row, 2)
    plans = [plan_to_take_back(books, row, place) for books, place in zip(contracts, places, strict=True)]
    assert fate(first, plans[0]) == (ActionResult.PUBLISHED, "")
    (reversal,) = (one for one in first.records() if dict(one.headers).get("tallystick-reverses"))
    admin = AdminClient({"bootstrap.servers": first.stack.bootstrap_servers})
    for deleted in admin.delete_records([ConfluentPartition(first.topic, reversal.partition, OFFSET_END)]).values():
        deleted.result()
    assert (len(first.records()), taken_back(first)) == (2, Counter())
    told = "another plan takes every other copy of the event back, or has done so"
    assert fate(second, plans[1]) == (ActionResult.REFUSED, told)
    assert taken_back(first) == Counter()


def test_the_same_copy_is_taken_back_once_between_them(contracts: tuple[Books, Books]) -> None:
    (row,) = contracts[0].pay(1)
    place = publish_copies(contracts[0], row, 3)[1]
    plans = [plan_to_take_back(books, row, place) for books in contracts]
    assert fate(contracts[0], plans[0]) == (ActionResult.PUBLISHED, "")
    said, reason = fate(contracts[1], plans[1])
    assert (said, reason.split(":")[0]) == (ActionResult.REFUSED, "it was taken back already")
    assert taken_back(contracts[0]) == Counter([place])


def test_what_was_taken_back_before_effects_named_the_key_is_known_by_its_plan(contracts: tuple[Books, Books]) -> None:
    first, _ = contracts
    (row,) = first.pay(1)
    plan = plan_to_take_back(first, row, publish_copies(first, row, 2)[1])
    fate(first, plan)
    asked = text("select effect from tallystick.compensation_action")
    with first.store.begin() as connection:
        kept = connection.execute(asked).scalars().all()
        connection.execute(text("update tallystick.compensation_action set effect = 'by its copy'"))
        connection.exec_driver_sql(m0015_reversals_by_key._REVERSALS)
        known = connection.execute(asked).scalars().all()
    assert (*kept, *known) == effect_hashes(plan.items[0], topic_id=first.runs.topic_id, ledger="")
