"""Books for a crash matrix: outbox rows whose events nobody publishes, found missing by a real run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.command_line import CommandLine
from lab.crash_plan import EVENTS_PER_PLAN, CrashRound, Fault
from lab.desk import CURRENCIES, Desk
from lab.event import Leg
from lab.log_ends import Partition
from lab.mode import DeliveryMode
from lab.namespace import PAYOUT_PARTITIONS, Namespace
from lab.round_contracts import payouts_contract, write_contract
from lab.rounds import prepare
from lab.stack import LabStack

NAME = "crash"
_AMOUNT_MINOR_MAX = 10_000_000


@dataclass(frozen=True, kw_only=True)
class CrashBooks:
    """Books whose runs have found events missing. cut_n: the run that found them; later_cut_n: another one after it."""

    contract_file: Path
    partitions: tuple[Partition, ...]
    cut_n: int
    later_cut_n: int


def crash_contract(name: str) -> dict[str, Any]:
    """A relay publishes an outbox, and what it has missed may be republished, a few events a plan."""
    return payouts_contract(
        name,
        name,
        compensation={
            "classes": ["missing_in_topic_never_produced"],
            "max_items": EVENTS_PER_PLAN,
            "max_amount_minor": dict.fromkeys(CURRENCIES, _AMOUNT_MINOR_MAX),
        },
    )


def events_needed(rounds: tuple[CrashRound, ...]) -> int:
    """So many must be missing, that each plan of each round is full."""
    return EVENTS_PER_PLAN * sum(2 if crash.fault is Fault.LOG_EXPIRED else 1 for crash in rounds)


def find_missing(stack: LabStack, folder: Path, *, events: int, seed: int) -> CrashBooks:
    """Three real runs: the baseline, the one that finds so many events missing, and another one."""
    prepare(stack, DeliveryMode.EXACTLY_ONCE, seed, NAME)
    contract_file = write_contract(folder, crash_contract(NAME))
    command_line = CommandLine(addresses=stack, folder=folder)
    command_line.reconcile([contract_file])
    with Desk.open(stack, NAME, "relay", str(seed)) as desk:
        for _ in range(events):
            desk.add_payout(desk.payment())
        for _ in range(2):
            paid = desk.add_payout(desk.payment())
            desk.publish(paid.event, source=paid.source)
            command_line.reconcile([contract_file])
    topic = Namespace(NAME).topic(Leg.PAYOUT)
    partitions = tuple((topic, number) for number in range(PAYOUT_PARTITIONS))
    return CrashBooks(contract_file=contract_file, partitions=partitions, cut_n=1, later_cut_n=2)
