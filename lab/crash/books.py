"""Books for a crash matrix, one for each kind of repair, whose real runs have found what is to be repaired.

Rounds of two contracts have books of their own, which both read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from lab.crash.plan import EVENTS_PER_PLAN, CrashRound, PlanKind
from lab.product.command_line import CommandLine
from lab.rounds.delivery_mode_round import prepare
from lab.rounds.round_contracts import payouts_contract, reads_contract, write_contract
from lab.servers.log_ends import LogEnds, Partition
from lab.servers.postgres import STORE_DATABASE
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg, Payment
from lab.services.kafka_clients import new_admin
from lab.services.ledger import Ledger
from lab.services.namespace import PAYMENT_PARTITIONS, PAYOUT_PARTITIONS, Namespace
from lab.services.raw_producer import RawProducer, open_raw_admin, unverified_transactions
from lab.services.workload import CURRENCIES, Workload
from lab.truth.effect_reader import EffectReader, EventReader, MarkerReader, PostReader, ReversalReader

POSTER = "poster_lab"
HANGING_PARTITION = 0
_TIMEOUT_SECONDS = 30.0
_CAP = dict.fromkeys(CURRENCIES, 10_000_000)
_BEYOND_ALL_TIME_OUTS = timedelta(hours=2)
_COPIED = ("event_id", "payment_id", "leg", "amount_minor", "currency", "occurred_at")
_WRITTEN_XID = {"slice_by": "written_xid", "earlier_rows": "archived"}
"""Of a ledger whose owner archives rows, which other ledgers' runs doubt."""
_POSTED = """
CREATE TABLE {0}.posted_action (action_id uuid PRIMARY KEY, plan_hash text NOT NULL);
ALTER TABLE {0}.posting ADD COLUMN written_xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX posting_written_xid ON {0}.posting (written_xid);
CREATE TABLE {0}.posting_archive (LIKE {0}.posting);"""
_ARCHIVE = """
ALTER TABLE {0}.posting DISABLE TRIGGER posting_append_only;
WITH archived AS (DELETE FROM {0}.posting WHERE event_id = ANY('{1}'::uuid[]) RETURNING *)
INSERT INTO {0}.posting_archive SELECT * FROM archived;
ALTER TABLE {0}.posting ENABLE TRIGGER posting_append_only;"""
_SEEN_EARLIER = """
UPDATE tallystick.verdict SET look_ups = jsonb_set(look_ups, '{surroundings,first_sights}', (
    SELECT jsonb_agg(sight || jsonb_build_object('first_seen_utc', (sight->>'first_seen_utc')::timestamptz - %s))
    FROM jsonb_array_elements(look_ups->'surroundings'->'first_sights') AS sight))
WHERE jsonb_array_length(look_ups->'surroundings'->'first_sights') > 0"""


@dataclass(frozen=True, kw_only=True)
class CrashBooks:
    """Books whose runs have found what is to be repaired.

    cut_n: the run that found it; later_cut_n: another one after it. partitions: those whose transactions all end.
    paid: each payment that is to be repaired, by its event's match key. hung: each producer that left a transaction
    hanging, by producer id. other_file: of another contract that reads the same, where there is one.
    """

    kind: PlanKind
    contract_file: Path
    names: Namespace
    partitions: tuple[Partition, ...]
    cut_n: int
    later_cut_n: int
    paid: Mapping[str, Payment] = field(default_factory=dict)
    hung: Mapping[int, RawProducer] = field(default_factory=dict)
    other_file: Path | None = None

    @property
    def contract_files(self) -> tuple[Path, ...]:
        return (self.contract_file, self.other_file) if self.other_file else (self.contract_file,)


def crash_contract(kind: PlanKind, name: str, namespace: str) -> dict[str, Any]:
    """What one kind of repair needs, a few events a plan."""
    caps = {"max_items": EVENTS_PER_PLAN, "max_amount_minor": _CAP, "four_eyes_above_minor": _CAP}
    match kind:
        case PlanKind.REPUBLISH:
            return payouts_contract(
                name, namespace, compensation=caps | {"classes": ["missing_in_topic_never_produced"]}
            )
        case PlanKind.REVERSE:
            return payouts_contract(
                name,
                namespace,
                compensation=caps | {"classes": ["duplicate_in_topic_new_session"], "reversal": "negated"},
            )
        case PlanKind.POST:
            post = {
                "connection": POSTER,
                "actions_table": f"{namespace}.posted_action",
                "columns": {column: column for column in _COPIED},
                "rows": {
                    "payment": [{"side": "debit", "account": "cash"}, {"side": "credit", "account": "receivable"}]
                },
            }
            rules = caps | {"classes": ["missing_in_ledger"], "post": post}
            contract = reads_contract(name, namespace, compensation=rules)
            return contract | {"ledger": contract["ledger"] | _WRITTEN_XID}
        case PlanKind.ABORT:
            return reads_contract(name, namespace, compensation=caps | {"abort_hanging_transactions": True})


def write_contracts(folder: Path, kind: PlanKind, names: Namespace, *, twice: bool) -> tuple[Path, ...]:
    """The contract of some books, and another one over the same topic and table where two read them."""
    contracts = [names.name, *([f"{names.name}_other"] if twice else [])]
    return tuple(write_contract(folder, crash_contract(kind, one, names.name)) for one in contracts)


def rounds_of(rounds: Sequence[CrashRound]) -> dict[str, list[CrashRound]]:
    """By the name of the books that they are played on."""
    played: dict[str, list[CrashRound]] = {}
    for crash in rounds:
        played.setdefault(crash.books, []).append(crash)
    return played


def events_needed(rounds: Sequence[CrashRound]) -> int:
    """So many must be there to repair, that each plan of each round is full."""
    return EVENTS_PER_PLAN * sum(crash.plans for crash in rounds)


def counted_partitions(kind: PlanKind, names: Namespace) -> tuple[Partition, ...]:
    """Those whose transactions all end."""
    leg = leg_of(kind)
    count = PAYOUT_PARTITIONS if leg is Leg.PAYOUT else PAYMENT_PARTITIONS
    hanging = {HANGING_PARTITION} if kind is PlanKind.ABORT else set()
    return tuple((names.topic(leg), number) for number in range(count) if number not in hanging)


def new_reader(stack: LabStack, books: CrashBooks) -> EffectReader:
    """Whoever counts the effects of their kind."""
    match books.kind:
        case PlanKind.REPUBLISH:
            return EventReader(stack.bootstrap_servers, books.partitions)
        case PlanKind.REVERSE:
            return ReversalReader(stack.bootstrap_servers, books.partitions)
        case PlanKind.POST:
            return PostReader(stack.ledger_owner_dsn, books.names.schema)
        case PlanKind.ABORT:
            return MarkerReader(stack.broker.folder / "data" / f"{books.names.topic(Leg.PAYMENT)}-{HANGING_PARTITION}")


def prepare_posting(stack: LabStack, names: Namespace) -> None:
    """The owner's table of action ids, their archive, and the column that tells which rows are new."""
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner:
        owner.execute(_POSTED.format(names.schema))


def archive(stack: LabStack, names: Namespace, event_ids: Collection[str]) -> None:
    """The owner takes the rows of these events out of the ledger."""
    with psycopg.connect(stack.ledger_owner_dsn) as owner:
        owner.execute(_ARCHIVE.format(names.schema, "{" + ",".join(event_ids) + "}"))


def write_late(desk: Workload, kind: PlanKind, payment: Payment) -> None:
    """What is missing, by the original's own producer: the relay, or the poster."""
    if kind is PlanKind.POST:
        desk.post(payment.event(Leg.PAYMENT))
        return
    row = Ledger(desk.names).find_payout(desk.connection, payment)
    assert row is not None
    desk.publish(row.event, source=row.source)


def write_by_hand(desk: Workload, kind: PlanKind, payment: Payment) -> None:
    """The same, by a person: no header says who, and a row says when the money moved."""
    if kind is PlanKind.POST:
        event = payment.event(Leg.PAYMENT)
        with desk.connection.transaction():
            Ledger(desk.names).post(desk.connection, event, once=False, at=payment.occurred_at)
        return
    event, producer = payment.event(Leg.PAYOUT), desk.idempotent("console").producer
    producer.produce(desk.names.topic(event.leg), key=event.message_key, value=event.to_value())
    if producer.flush(_TIMEOUT_SECONDS):
        raise TimeoutError(f"console: unanswered after {_TIMEOUT_SECONDS:.0f} s")


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


def find_all(stack: LabStack, folder: Path, rounds: Sequence[CrashRound], *, seed: int) -> dict[str, CrashBooks]:
    """The books that the rounds are played on, and three real runs of each: the baseline, the finding, another one."""
    played = rounds_of(rounds)
    books = {name: _begin(stack, folder, name, some, seed) for name, some in played.items()}
    files = [file for one in books.values() for file in one.contract_files]
    command_line = CommandLine(addresses=stack, folder=folder)
    command_line.reconcile(files)
    for name, one in books.items():
        with Workload.open(stack, one.names.name, "relay", f"{seed}:wrong") as desk:
            paid = [desk.payment() for _ in range(events_needed(played[name]))]
            hung = _go_wrong(stack, desk, one.kind, paid)
        books[name] = replace(one, hung=hung, paid=by_match_key(one.kind, paid))
    for window in range(2):
        for one in books.values():
            with Workload.open(stack, one.names.name, "relay", f"{seed}:{window}") as desk:
                _go_on(desk, one.kind)
        command_line.reconcile(files)
    _see_earlier(stack)
    return books


def leg_of(kind: PlanKind) -> Leg:
    """Of what this kind repairs."""
    return Leg.PAYOUT if kind in (PlanKind.REPUBLISH, PlanKind.REVERSE) else Leg.PAYMENT


def by_match_key(kind: PlanKind, paid: Sequence[Payment]) -> dict[str, Payment]:
    return {str(payment.event(leg_of(kind)).event_id): payment for payment in paid}


def _begin(stack: LabStack, folder: Path, name: str, rounds: Sequence[CrashRound], seed: int) -> CrashBooks:
    kind, names = rounds[0].kind, Namespace(f"crash_{name}")
    prepare(stack, DeliveryMode.AT_LEAST_ONCE, seed, names.name)  # its ledger does not refuse a second posting
    if kind is PlanKind.POST:
        prepare_posting(stack, names)
    file, *other = write_contracts(folder, kind, names, twice=rounds[0].has_two_contracts)
    return CrashBooks(
        kind=kind,
        contract_file=file,
        names=names,
        partitions=counted_partitions(kind, names),
        cut_n=1,
        later_cut_n=2,
        other_file=other[0] if other else None,
    )


def _go_wrong(stack: LabStack, desk: Workload, kind: PlanKind, paid: Sequence[Payment]) -> Mapping[int, RawProducer]:
    """Write what there is to repair; give the producers of what hangs, by producer id."""
    match kind:
        case PlanKind.REPUBLISH:
            for payment in paid:
                desk.add_payout(payment)
        case PlanKind.REVERSE:
            published = [desk.add_payout(payment).event for payment in paid]
            desk.publish(*published)
            desk.publish(*published)
        case PlanKind.POST:
            desk.publish(*(payment.event(Leg.PAYMENT) for payment in paid))
        case PlanKind.ABORT:
            return leave_hanging(stack, desk.names, *(payment.event(Leg.PAYMENT) for payment in paid))
    return {}


def _go_on(desk: Workload, kind: PlanKind) -> None:
    """One more event, on both sides; behind what hangs none would be read."""
    if kind is PlanKind.POST:
        posted = desk.payment().event(Leg.PAYMENT)
        desk.publish(posted)
        desk.post(posted)
    elif kind is not PlanKind.ABORT:
        row = desk.add_payout(desk.payment())
        desk.publish(row.event, source=row.source)


def _see_earlier(stack: LabStack) -> None:
    """What time would do: the runs have seen what hangs since longer than any time-out. No verdict may be changed, so
    it takes the store's superuser.
    """
    with stack.store_server.connect(database=STORE_DATABASE) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(_SEEN_EARLIER, (_BEYOND_ALL_TIME_OUTS,))
