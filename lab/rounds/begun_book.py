"""A plan that has begun, and whose task is cleared once more is known: each event is published once, by whomever.

In a namespace and under a contract of its own, which allows repairs. Its executor dies at a step that the dice draw,
a run judges what there is by then, retention takes it, and the executor is started again, twice.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lab.crash.executor import Executor
from lab.doors.door import EXECUTOR
from lab.faults.event_faults import Planted, broken
from lab.faults.ledger_fault_books import Findings, open_desk
from lab.faults.log_fault_books import LogBook, LogFault
from lab.product.command_line import STEP_BY_STEP, CommandFailed
from lab.servers.log_ends import LogEnds
from lab.services.event import Event, Leg
from lab.services.kafka_clients import new_admin
from lab.services.namespace import Namespace
from lab.services.workload import CURRENCIES
from lab.truth.effect_reader import EventReader
from lab.truth.score import Finding, FindingKind

EVENTS = 3
STARTED_AGAIN = 2
BEFORE_COMMIT = ("executing", "fenced", "progress_read", "proved")
"""Steps at which a transaction is neither open nor committed: the original may come after all, and is read."""
AFTER_COMMIT = ("published", "recorded", "finished")
REPAIRS = {
    "classes": ["missing_in_topic_never_produced"],
    "max_items": EVENTS,
    "max_amount_minor": dict.fromkeys(CURRENCIES, 10_000_000),
    "four_eyes_above_minor": dict.fromkeys(CURRENCIES, 10_000_000),
}


def task_cleared(book: LogBook) -> Planted:
    """Payouts that no relay published. A plan for them is begun, and its task is cleared later."""
    names = Namespace(book.name)
    topic = names.topic(Leg.PAYOUT)
    places = [(topic, number) for number in range(names.partitions[topic])]
    reader = EventReader(book.stack.bootstrap_servers, places)
    with open_desk(book, "first") as desk:
        rows = [desk.add_payout(desk.payment()) for _ in range(EVENTS)]
        absent = broken(desk, "missing_in_topic_never_produced", *(row.event for row in rows))
    book.agree()
    events = [row.event for row in rows]

    def clear() -> Findings:
        plan_hash = book.command_line.plan(book.contract_file)
        step = book.dice.choice((*BEFORE_COMMIT, *AFTER_COMMIT))
        die_at(book, plan_hash, step)
        if step in BEFORE_COMMIT:
            with open_desk(book, "late") as desk:
                desk.publish(rows[0].event, source=rows[0].source)
        log_ends = LogEnds(new_admin(book.stack.bootstrap_servers))
        log_ends.wait_until_decided(places)
        book.command_line.reconcile([book.contract_file])
        reader.read()
        log_ends.expire(log_ends.stable_ends(places))
        for _ in range(STARTED_AGAIN):
            book.command_line.execute(book.contract_file, plan_hash)
        log_ends.wait_until_decided(places)
        book.agree()
        return standing(book.name, events, dict.fromkeys((str(event.event_id) for event in events), 1))

    return Planted(absent, clear, counted=lambda: standing(book.name, events, reader.read()))


BEGUN_FAULTS = (LogFault(plant=task_cleared, fields={"compensation": REPAIRS}),)


def standing(contract: str, events: Sequence[Event], copies: Mapping[str, int]) -> Findings:
    """So often each of the events was ever committed; one that never was is not found."""
    ids = [str(event.event_id) for event in events]
    return tuple(
        Finding(
            contract=contract,
            kind=FindingKind.STANDING,
            name=str(FindingKind.STANDING),
            subject=one,
            copies=copies[one],
        )
        for one in ids
        if copies[one]
    )


def die_at(book: LogBook, plan_hash: str, step: str) -> None:
    """Kill an executor where it tells this step."""
    asked = ["compensation", "execute", str(book.contract_file), plan_hash, "--by", "lab", "--json"]
    command_line = book.command_line
    executor = Executor([*STEP_BY_STEP, *asked], command_line.environment(EXECUTOR), command_line.log)

    def is_there(told: Mapping[str, Any]) -> bool:
        return bool(told["step"] == step)

    try:
        if not executor.run_to(is_there):
            raise CommandFailed(f"{book.name}: the executor never came to {step}\n{command_line.log_tail}")
    finally:
        executor.kill()
