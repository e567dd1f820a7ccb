"""Books for a crash matrix, one for each kind of repair, whose real runs have found what is to be repaired."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from lab.clients import new_admin
from lab.command_line import CommandLine
from lab.crash_plan import EVENTS_PER_PLAN, CrashRound, Kind
from lab.desk import CURRENCIES, Desk
from lab.effect_reader import EffectReader, EventReader, MarkerReader, PostReader, ReversalReader
from lab.event import Event, Leg
from lab.log_ends import LogEnds, Partition
from lab.mode import DeliveryMode
from lab.namespace import PAYMENT_PARTITIONS, PAYOUT_PARTITIONS, Namespace
from lab.postgres import STORE_DATABASE
from lab.raw_produce import RawProducer, open_raw_admin, unverified_transactions
from lab.round_contracts import payouts_contract, reads_contract, write_contract
from lab.rounds import prepare
from lab.stack import LabStack

POSTER = "poster_lab"
HANGING_PARTITION = 0
_AMOUNT_MINOR_MAX = 10_000_000
_BEYOND_ALL_TIME_OUTS = timedelta(hours=2)
_COPIED = ("event_id", "payment_id", "leg", "amount_minor", "currency", "occurred_at")
_ACTIONS = "CREATE TABLE {}.posted_action (action_id uuid PRIMARY KEY, plan_hash text NOT NULL)"
_SEEN_EARLIER = """
UPDATE tallystick.verdict SET look_ups = jsonb_set(look_ups, '{surroundings,first_sights}', (
    SELECT jsonb_agg(sight || jsonb_build_object('first_seen_utc', (sight->>'first_seen_utc')::timestamptz - %s))
    FROM jsonb_array_elements(look_ups->'surroundings'->'first_sights') AS sight))
WHERE jsonb_array_length(look_ups->'surroundings'->'first_sights') > 0"""


@dataclass(frozen=True, kw_only=True)
class CrashBooks:
    """Books whose runs have found what is to be repaired.

    cut_n: the run that found it; later_cut_n: another one after it. partitions: those whose transactions all end.
    hung: each producer that left a transaction hanging, by producer id.
    """

    contract_file: Path
    names: Namespace
    partitions: tuple[Partition, ...]
    cut_n: int
    later_cut_n: int
    hung: Mapping[int, RawProducer] = field(default_factory=dict)


def crash_contract(kind: Kind, name: str) -> dict[str, Any]:
    """What one kind of repair needs, a few events a plan."""
    caps = {"max_items": EVENTS_PER_PLAN, "max_amount_minor": dict.fromkeys(CURRENCIES, _AMOUNT_MINOR_MAX)}
    match kind:
        case Kind.REPUBLISH:
            return payouts_contract(name, name, compensation=caps | {"classes": ["missing_in_topic_never_produced"]})
        case Kind.REVERSE:
            return payouts_contract(
                name, name, compensation=caps | {"classes": ["duplicate_in_topic_new_session"], "reversal": "negated"}
            )
        case Kind.POST:
            post = {
                "connection": POSTER,
                "actions_table": f"{name}.posted_action",
                "columns": {column: column for column in _COPIED},
                "rows": {
                    "payment": [{"side": "debit", "account": "cash"}, {"side": "credit", "account": "receivable"}]
                },
            }
            return reads_contract(name, name, compensation=caps | {"classes": ["missing_in_ledger"], "post": post})
        case Kind.ABORT:
            return reads_contract(name, name, compensation=caps | {"abort_hanging_transactions": True})


def events_needed(rounds: tuple[CrashRound, ...], kind: Kind) -> int:
    """So many must be there to repair, that each plan of each round is full."""
    return EVENTS_PER_PLAN * sum(crash.plans for crash in rounds if crash.kind is kind)


def counted_partitions(kind: Kind, names: Namespace) -> tuple[Partition, ...]:
    """Those whose transactions all end."""
    published = kind in (Kind.REPUBLISH, Kind.REVERSE)
    leg, count = (Leg.PAYOUT, PAYOUT_PARTITIONS) if published else (Leg.PAYMENT, PAYMENT_PARTITIONS)
    hanging = {HANGING_PARTITION} if kind is Kind.ABORT else set()
    return tuple((names.topic(leg), number) for number in range(count) if number not in hanging)


def new_reader(kind: Kind, stack: LabStack, books: CrashBooks) -> EffectReader:
    """Whoever counts the effects of this kind."""
    match kind:
        case Kind.REPUBLISH:
            return EventReader(stack.bootstrap_servers, books.partitions)
        case Kind.REVERSE:
            return ReversalReader(stack.bootstrap_servers, books.partitions)
        case Kind.POST:
            return PostReader(stack.ledger_owner_dsn, books.names.schema)
        case Kind.ABORT:
            return MarkerReader(stack.broker.folder / "data" / f"{books.names.topic(Leg.PAYMENT)}-{HANGING_PARTITION}")


def create_posted_action(stack: LabStack, names: Namespace) -> None:
    """The owner's table of action ids."""
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner:
        owner.execute(_ACTIONS.format(names.schema))


def leave_hanging(stack: LabStack, names: Namespace, *events: Event) -> dict[int, RawProducer]:
    """A transaction that hangs for each event, on one partition; give the producers, by producer id.

    Each producer has committed there before: so its coordinator has an epoch there, as most have.
    """
    place = (names.topic(Leg.PAYMENT), HANGING_PARTITION)
    with open_raw_admin(stack.bootstrap_servers) as admin:
        producers = [RawProducer(admin, names.group(f"hanging-{event.event_id}")) for event in events]
        for producer in producers:
            producer.open()
            producer.add_partition(*place)
            producer.end(commit=True)
        LogEnds(new_admin(stack.bootstrap_servers)).wait_until_decided([place])
        with unverified_transactions(admin):
            for producer, event in zip(producers, events, strict=True):
                producer.produce(*place, event, {})
    return {producer.producer_id: producer for producer in producers}


def find_all(stack: LabStack, folder: Path, rounds: tuple[CrashRound, ...], *, seed: int) -> dict[Kind, CrashBooks]:
    """Books of each kind that the rounds have, and three real runs of each: the baseline, the finding, another one."""
    needed = {kind: events_needed(rounds, kind) for kind in Kind}
    books = {kind: _begin(stack, folder, kind, seed) for kind, events in needed.items() if events}
    files = [one.contract_file for one in books.values()]
    command_line = CommandLine(addresses=stack, folder=folder)
    command_line.reconcile(files)
    for kind, one in books.items():
        with Desk.open(stack, one.names.name, "relay", f"{seed}:wrong") as desk:
            books[kind] = replace(one, hung=_go_wrong(stack, desk, kind, needed[kind]))
    for window in range(2):
        for kind, one in books.items():
            with Desk.open(stack, one.names.name, "relay", f"{seed}:{window}") as desk:
                _go_on(desk, kind)
        command_line.reconcile(files)
    _see_earlier(stack)
    return books


def _begin(stack: LabStack, folder: Path, kind: Kind, seed: int) -> CrashBooks:
    names = Namespace(f"crash_{kind}")
    prepare(stack, DeliveryMode.AT_LEAST_ONCE, seed, names.name)  # its ledger does not refuse a second posting
    if kind is Kind.POST:
        create_posted_action(stack, names)
    return CrashBooks(
        contract_file=write_contract(folder, crash_contract(kind, names.name)),
        names=names,
        partitions=counted_partitions(kind, names),
        cut_n=1,
        later_cut_n=2,
    )


def _go_wrong(stack: LabStack, desk: Desk, kind: Kind, events: int) -> Mapping[int, RawProducer]:
    """Write what there is to repair; give the producers of what hangs, by producer id."""
    paid = [desk.payment() for _ in range(events)]
    match kind:
        case Kind.REPUBLISH:
            for payment in paid:
                desk.add_payout(payment)
        case Kind.REVERSE:
            published = [desk.add_payout(payment).event for payment in paid]
            desk.publish(*published)
            desk.publish(*published)
        case Kind.POST:
            desk.publish(*(payment.event(Leg.PAYMENT) for payment in paid))
        case Kind.ABORT:
            return leave_hanging(stack, desk.names, *(payment.event(Leg.PAYMENT) for payment in paid))
    return {}


def _go_on(desk: Desk, kind: Kind) -> None:
    """One more event, on both sides; behind what hangs none would be read."""
    if kind is Kind.POST:
        posted = desk.payment().event(Leg.PAYMENT)
        desk.publish(posted)
        desk.post(posted)
    elif kind is not Kind.ABORT:
        row = desk.add_payout(desk.payment())
        desk.publish(row.event, source=row.source)


def _see_earlier(stack: LabStack) -> None:
    """What time would do: the runs have seen what hangs since longer than any time-out. No verdict may be changed, so
    it takes the store's superuser.
    """
    with stack.store_server.connect(database=STORE_DATABASE) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(_SEEN_EARLIER, (_BEYOND_ALL_TIME_OUTS,))
