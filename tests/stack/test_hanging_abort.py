"""A transaction that nobody will end is ended once, by one marker; one that is merely slow is left alone.

One file, since each case leaves one transaction open on the same broker and looks who ends it.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from sqlalchemy import text

from lab.servers.broker import Broker
from lab.servers.process import wait_until
from lab.services.raw_producer import RawProducer, open_raw_admin, unverified_transactions
from tallystick.compensation.kill_switch import ActingStopped, SwitchSetting
from tallystick.compensation.plan import OnePersonOnly, Plan
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.executor.effects import abort_transactions, action_log
from tallystick.executor.effects.abort_marker import MarkerRefused
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.step import ExecutorStep
from tallystick.executor.execute_plan import Execution
from tallystick.kafka_cluster import open_transactions
from tallystick.kafka_cluster.open_transactions import OpenTransaction, read_open_transactions
from tallystick.kafka_cluster.settings import read_broker_settings
from tallystick.kafka_cluster.state import CLUSTER_STATE
from tallystick.kafka_log.batch_header import Marker, coordinator_epoch
from tallystick.kafka_log.fetch import BrokerUnreachable, fetcher, open_admin
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import OffsetRange
from tallystick.model.verdict import Verdict
from tallystick.store.plans import plan_store
from tallystick.store.plans.plan_store import EndingHeld, ending_alone, read_audit, save_plan
from tallystick.store.plans.switch_store import set_switch
from tallystick.store.runs.cut_store import claim_attempt
from tallystick.store.runs.run_store import commit_run
from tests.run_results import run_result
from tests.stack.live_books import LiveBooks, RawEvent, doubts, payment, payments

from .conftest import NOON
from .live import NewBooks
from .repairs import action_states, agree, all_hanging, effects, executed, planned, trail

ABORTS = {"abort_hanging_transactions": True, "max_amount_minor": {"EUR": 100_000}}
HOURS = timedelta(hours=2)  # beyond the lab's transaction.max.timeout.ms
PATIENT = {"transaction.timeout.ms": 30 * 60 * 1000}  # a live transaction outlasts a slow test


HUNG = payment("hung", 700)
ON_ITS_PARTITION = [one for one in payments(*map(str, range(20))) if one.partition == HUNG.partition]
ELSEWHERE = next(one for one in payments(*map(str, range(20))) if one.partition != HUNG.partition)


@pytest.fixture
def books(new_books: NewBooks) -> Iterator[LiveBooks]:
    """Books begun, whose contract lets hanging transactions be ended."""
    with new_books(direction="topic_to_ledger", compensation=ABORTS) as opened:
        opened.take_cut()
        yield opened


def place(books: LiveBooks) -> tuple[str, int]:
    return books.contract.legs["payment"], HUNG.partition


def hang(books: LiveBooks) -> RawProducer:
    """A transaction that the coordinator knows nothing of, of a producer that has committed there before."""
    with open_raw_admin(books.stack.bootstrap_servers) as admin:
        producer = RawProducer(admin, f"{books.contract.name}-hanging")
        producer.open()
        producer.add_partition(*place(books))
        producer.produce(*place(books), RawEvent(ON_ITS_PARTITION[0]), {})  # type: ignore[arg-type]
        producer.end(commit=True)
        books.post(ON_ITS_PARTITION[0])
        books.wait_stable()
        with unverified_transactions(admin):
            producer.produce(*place(books), RawEvent(HUNG), {})  # type: ignore[arg-type]
        return producer


def come_back_and_commit(books: LiveBooks) -> RawProducer:
    """Whoever left it there ends it, by the commit of its next transaction."""
    with open_raw_admin(books.stack.bootstrap_servers) as admin:
        again = RawProducer(admin, f"{books.contract.name}-hanging")
        again.open()
        again.add_partition(*place(books))
        again.end(commit=True)
    books.wait_stable()
    return again


def revive(broker: Broker) -> None:
    if not broker.is_running:
        broker.start()


def open_now(books: LiveBooks) -> tuple[OpenTransaction, ...]:
    with open_admin(books.connections.kafka) as admin:
        return read_open_transactions(admin, [part.topic_partition for part in books.snapshot()])


def found_hanging(books: LiveBooks, *found: OpenTransaction) -> Plan:
    """The plan of a run that found these hanging two hours after it was first seen, whatever they really are."""
    cut = books.take_cut(settled=False, later=HOURS)
    with open_admin(books.connections.kafka) as admin:
        settings = read_broker_settings(admin)
    around = all_hanging(found, settings, first_seen_utc=cut.now_utc - HOURS)
    result = run_result(
        books.contract.name,
        cut.n,
        verdict=Verdict.INCONCLUSIVE,
        doubts=(DoubtFound(doubt=Doubt.HANGING_TRANSACTION, sentence="It hangs.", details={}),),
        look_ups={"surroundings": CLUSTER_STATE.dump_python(around, mode="json", by_alias=True)},
    )
    attempt = claim_attempt(books.store, books.contract.name, cut.n)
    commit_run(books.store, result, attempt=attempt, alerts=())
    return planned(books, cut.n)


def fates(execution: Execution) -> list[tuple[ActionResult, str]]:
    return [(outcome.fate, outcome.reason) for outcome in execution.outcomes]


def markers(books: LiveBooks, producer_id: int) -> list[tuple[Marker | None, int, int]]:
    """Every marker of a producer on the partition: kind, producer epoch, coordinator epoch."""
    (now,) = [part for part in books.snapshot() if part.partition == HUNG.partition]
    whole = OffsetRange(
        topic=now.topic, partition=now.partition, kafka_offset_start=0, kafka_offset_end=now.high_watermark
    )
    with open_admin(books.connections.kafka) as admin:
        return [
            (batch.header.marker, batch.header.producer_epoch, coordinator_epoch(batch.raw))
            for batch in walk_batches(fetcher(admin), whole, read_committed=False)
            if batch.header.is_control and batch.header.producer_id == producer_id
        ]


def committed_keys(books: LiveBooks) -> list[bytes]:
    """What a consumer that reads committed gets of the partition, by a reader that shares no code with ours."""
    consumer = KafkaConsumer(
        bootstrap_servers=books.stack.bootstrap_servers, isolation_level="read_committed", enable_auto_commit=False
    )
    part = ClientPartition(*place(books))
    consumer.assign([part])
    end = consumer.end_offsets([part])[part]
    consumer.seek_to_beginning(part)
    keys: list[Any] = []
    while consumer.position(part) < end:
        keys += [record.key for batch in consumer.poll(200).values() for record in batch]
    consumer.close()
    return keys


@pytest.mark.usefixtures("spark")
def test_a_transaction_that_hangs_is_ended_by_one_marker_and_what_stood_behind_it_is_read_and_matched(
    books: LiveBooks,
) -> None:
    hung, behind = hang(books), ON_ITS_PARTITION[1]
    books.both(behind)
    live = books.producer("live", **PATIENT)
    live.begin_transaction()
    books.send(live, ELSEWHERE)
    first = books.next_run(settled=False)
    young = planned(books, first.cut.n)
    assert young.aborts == ()
    assert [one.reason[:26] for one in young.left_out] == ["it was first seen 0 s befo"]

    second = books.judge(books.take_cut(settled=False, later=HOURS))
    assert Doubt.HANGING_TRANSACTION in doubts(second)
    plan = planned(books, second.cut.n)
    (item,) = plan.aborts
    assert (item.producer_id, item.producer_epoch) == (hung.producer_id, hung.producer_epoch)
    assert (item.topic, item.partition) == place(books)
    assert (item.own_events, item.own_money_minor) == (1, {"EUR": 700})
    assert (item.waiting_events, item.waiting_money_minor) == (1, {"EUR": 1_000})
    assert item.coordinator_epoch >= 0
    rehearsed = replace(plan, dry_run=True)
    save_plan(books.store, rehearsed, requested_by="ada")
    with pytest.raises(OnePersonOnly, match="it ends 1 transaction for good"):
        executed(books, rehearsed, approver="bob")
    agree(books, rehearsed, "bob")
    assert fates(executed(books, rehearsed)) == [(ActionResult.WOULD_DO, "")]
    assert effects(books, plan) == [RepairEffect.NOT_CLEARED]

    assert fates(executed(books, plan)) == [(ActionResult.DONE, "")]
    assert effects(books, plan) == [RepairEffect.CLEARED]
    assert fates(executed(books, plan)) == [(ActionResult.ALREADY_DONE, "")]
    epoch, ordered_by = hung.producer_epoch, item.coordinator_epoch
    assert markers(books, hung.producer_id) == [(Marker.COMMIT, epoch, ordered_by), (Marker.ABORT, epoch, ordered_by)]
    steps = trail(books, plan)
    assert [step for step in steps if step in ("evidence", "ending", "done")] == ["evidence", "ending", "done"]
    assert committed_keys(books) == [one.payment_id.encode() for one in ON_ITS_PARTITION[:2]]

    live.commit_transaction()
    books.post(ELSEWHERE)
    after = books.next_run()
    assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])
    assert planned(books, after.cut.n).actions == ()


def test_what_stands_there_is_kept_before_it_is_ended_without_a_payload(books: LiveBooks) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))
    executed(books, plan)
    (evidence,) = [entry.detail for entry in read_audit(books.store, books.contract.name) if entry.event == "evidence"]
    start = plan.aborts[0].kafka_offset_start
    assert (evidence["partition"]["lso"], evidence["partition"]["high_watermark"]) == (start, start + 1)
    (open_then,) = evidence["open_transactions"]
    assert (open_then["producer_id"], open_then["kafka_offset_start"]) == (hung.producer_id, start)
    assert (evidence["batches"], evidence["records"]) == (1, 1)
    assert evidence["first_batches"][0]["crc32c"] > 0
    assert HUNG.event_id not in str(evidence)


def test_a_transaction_that_is_merely_slow_is_refused_and_commits_afterwards(books: LiveBooks) -> None:
    live = books.producer("live", **PATIENT)
    live.begin_transaction()
    books.send(live, HUNG)
    (slow,) = open_now(books)
    assert not slow.hangs
    plan = found_hanging(books, slow)
    (outcome,) = executed(books, plan).outcomes
    assert outcome.fate is ActionResult.REFUSED
    assert outcome.reason == f"the coordinator of {books.contract.name}-live will end it (Ongoing)"
    assert "evidence" not in trail(books, plan)
    live.commit_transaction()
    books.wait_stable()
    assert [kind for kind, *_ in markers(books, slow.producer_id)] == [Marker.COMMIT]
    assert effects(books, plan) == [RepairEffect.CHANGED]
    assert fates(executed(books, plan))[0][0] is ActionResult.REFUSED


def test_an_executor_that_lost_its_outcome_finds_its_marker_and_writes_no_second(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))

    def dies(*arguments: object, **named: object) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(action_log, "record_done", dies)
        with pytest.raises(RuntimeError, match="killed here"):
            executed(books, plan)
    assert fates(executed(books, plan)) == [(ActionResult.ALREADY_DONE, "")]
    assert [kind for kind, *_ in markers(books, hung.producer_id)] == [Marker.COMMIT, Marker.ABORT]
    assert effects(books, plan) == [RepairEffect.CLEARED]


def test_a_second_executor_waits_for_the_first_and_finds_its_marker(books: LiveBooks) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))
    waits = text("select count(*) from pg_locks where locktype = 'advisory' and not granted")
    second: list[Future[Execution]] = []

    def start_another(step: str, figures: object) -> None:
        if step == ExecutorStep.EVIDENCE_KEPT:
            second.append(pool.submit(executed, books, plan))
            with books.store.connect() as connection:
                wait_until(lambda: connection.scalar(waits) == 1, what="a second executor that waits")

    with ThreadPoolExecutor(1) as pool:
        first = executed(books, plan, on_progress=start_another)
        assert [fates(first), fates(second[0].result(60))] == [
            [(ActionResult.DONE, "")],
            [(ActionResult.ALREADY_DONE, "")],
        ]
    assert [kind for kind, *_ in markers(books, hung.producer_id)] == [Marker.COMMIT, Marker.ABORT]


def test_what_was_not_done_since_the_broker_or_another_executor_refused_is_taken_up_by_the_next_start(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))

    def may_not(*_: object) -> None:
        raise MarkerRefused("expected ALTER on the cluster")

    with monkeypatch.context() as patch:
        patch.setattr(abort_transactions, "write_abort", may_not)
        with pytest.raises(MarkerRefused):
            executed(books, plan)
    assert action_states(books, plan) == [("refused", "expected ALTER on the cluster")]
    assert trail(books, plan)[-4:] == ["evidence", "ending", "refused", "stopped"]
    monkeypatch.setattr(plan_store, "_PATIENCE", "set local lock_timeout = '300ms'")
    with ending_alone(books.store, books.contract.name), pytest.raises(EndingHeld):
        executed(books, plan)
    assert action_states(books, plan) == [("executing", "")]
    assert trail(books, plan)[-2:] == ["executing", "stopped"]
    with monkeypatch.context() as patch:
        patch.setattr(abort_transactions, "write_abort", may_not)
        with pytest.raises(MarkerRefused):
            executed(books, plan)
    assert action_states(books, plan) == [("executing", "")]  # an earlier start may have done it
    assert fates(executed(books, plan)) == [(ActionResult.DONE, "")]
    assert [kind for kind, *_ in markers(books, hung.producer_id)] == [Marker.COMMIT, Marker.ABORT]


def test_one_that_its_next_transaction_has_committed_meanwhile_is_left_as_it_is(books: LiveBooks) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))
    again = come_back_and_commit(books)
    (outcome,) = executed(books, plan).outcomes
    assert outcome.fate is ActionResult.REFUSED
    assert outcome.reason.startswith(f"it has ended: commit of epoch {again.producer_epoch} at ")
    assert Marker.ABORT not in [kind for kind, *_ in markers(books, hung.producer_id)]
    assert effects(books, plan) == [RepairEffect.CHANGED]


@pytest.fixture
def no_coordinator_answers(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Until it is undone, some coordinator is always missing."""
    monkeypatch.setattr(open_transactions, "_all_coordinators_answer", lambda _: False)
    return monkeypatch


def test_a_broker_that_dies_before_the_marker_is_waited_for_and_the_transaction_ended_by_the_same_start(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abort_transactions, "_ANSWER_SECONDS", 300)
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))
    steps: list[str] = []
    looks: list[object] = []

    def strike(step: str, figures: Mapping[str, object]) -> None:
        steps.append(step)
        if step == ExecutorStep.EVIDENCE_KEPT:
            books.stack.broker.kill()
        if step == ExecutorStep.UNANSWERED:
            looks.append(figures["looks"])
            revive(books.stack.broker)

    try:
        execution = executed(books, plan, on_progress=strike)
    finally:
        revive(books.stack.broker)  # other tests need it too
    assert fates(execution) == [(ActionResult.DONE, "")]
    before, after = steps.index(ExecutorStep.EVIDENCE_KEPT), steps.index(ExecutorStep.MARKED)
    assert set(steps[before + 1 : after]) == {ExecutorStep.UNANSWERED}
    assert looks == list(range(1, len(looks) + 1))
    assert [kind for kind, *_ in markers(books, hung.producer_id)] == [Marker.COMMIT, Marker.ABORT]
    assert effects(books, plan) == [RepairEffect.CLEARED]


def test_what_the_coordinators_never_answer_is_refused_with_its_line_and_ended_by_a_start_that_they_do_answer(
    books: LiveBooks, no_coordinator_answers: pytest.MonkeyPatch
) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))
    no_coordinator_answers.setattr(abort_transactions, "_ANSWER_SECONDS", 0.5)
    (outcome,) = executed(books, plan).outcomes
    assert outcome.fate is ActionResult.REFUSED
    assert outcome.reason == (
        "not provable now: not every coordinator answers, or this account may not DESCRIBE all transactional ids; "
        "looked for 0.5 s"
    )
    assert action_states(books, plan) == [("refused", outcome.reason)]
    assert trail(books, plan)[-3:] == ["executing", "refused", "finished"]
    assert [kind for kind, *_ in markers(books, hung.producer_id)] == [Marker.COMMIT]
    no_coordinator_answers.undo()
    assert fates(executed(books, plan)) == [(ActionResult.DONE, "")]


def test_a_broker_that_stays_away_stops_the_start_and_leaves_what_it_has_begun_to_the_next(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang(books)
    plan = found_hanging(books, *open_now(books))

    def away(*_: object) -> None:
        raise BrokerUnreachable("no broker")

    with monkeypatch.context() as patch:
        patch.setattr(abort_transactions, "_ANSWER_SECONDS", 0.5)
        patch.setattr(abort_transactions, "look_at", away)
        with pytest.raises(BrokerUnreachable, match="no broker"):
            executed(books, plan)
    assert action_states(books, plan) == [("executing", "")]
    assert trail(books, plan)[-2:] == ["executing", "stopped"]
    assert fates(executed(books, plan)) == [(ActionResult.DONE, "")]


def test_one_that_ends_while_the_coordinators_are_asked_again_is_refused_at_once(
    books: LiveBooks, no_coordinator_answers: pytest.MonkeyPatch
) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))
    no_coordinator_answers.setattr(abort_transactions, "_ANSWER_SECONDS", 300)
    looks: list[RawProducer] = []

    def end_it(step: str, figures: object) -> None:
        if step == ExecutorStep.UNANSWERED:
            looks.append(come_back_and_commit(books))

    (outcome,) = executed(books, plan, on_progress=end_it).outcomes
    (again,) = looks
    assert outcome.reason.startswith(f"it has ended: commit of epoch {again.producer_epoch} at ")
    assert Marker.ABORT not in [kind for kind, *_ in markers(books, hung.producer_id)]


def test_a_switch_that_is_thrown_while_the_coordinators_are_asked_again_stops_it(
    books: LiveBooks, no_coordinator_answers: pytest.MonkeyPatch
) -> None:
    hung = hang(books)
    plan = found_hanging(books, *open_now(books))
    no_coordinator_answers.setattr(abort_transactions, "_ANSWER_SECONDS", 300)
    stop = SwitchSetting(contract=books.contract.name, stopped=True, by="eve", because="wait", at_utc=NOON)

    def throw(step: str, figures: object) -> None:
        if step == ExecutorStep.UNANSWERED:
            no_coordinator_answers.undo()
            set_switch(books.store, stop)

    with pytest.raises(ActingStopped):
        executed(books, plan, on_progress=throw)
    assert [kind for kind, *_ in markers(books, hung.producer_id)] == [Marker.COMMIT]
