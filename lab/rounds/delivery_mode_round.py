"""One round of billing traffic with real faults, and the truth about what they broke.

    billing.requests -> billing service -> billing.payments, billing.invoices -> poster -> ledger postings
    payout desk -> ledger payouts -> relay -> billing.payouts

`prepare` makes topics and tables; a reconciler takes its baseline then. `run_traffic` runs the services, breaks them,
writes more traffic behind transactions held open, and returns with these still open. `release` ends the holds, drains
everything and gives the truth. Does not judge: whether the truth is found is the reconciler's affair.
"""

import argparse
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]
from rich.console import Console
from rich.table import Table

from lab.faults.round_plan import make_plan
from lab.rounds.running_round import Progress, Round, RunningRound
from lab.servers.log_ends import LogEnds
from lab.servers.stack import LabAddresses, start_stack
from lab.services.delivery_mode import DeliveryMode
from lab.services.kafka_clients import new_admin
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace
from lab.truth.truth import Truth

__all__ = ["Round", "RunningRound", "prepare", "run_traffic"]

_TIMEOUT_SECONDS = 30.0


def prepare(addresses: LabAddresses, mode: DeliveryMode, seed: int, namespace: str = "billing") -> Round:
    """Make the topics and tables of a namespace. Raises KafkaException or psycopg.Error where they exist."""
    names = Namespace(namespace)
    admin = new_admin(addresses.bootstrap_servers)
    topics = [NewTopic(topic, num_partitions=count) for topic, count in names.partitions.items()]
    for created in admin.create_topics(topics).values():
        created.result(_TIMEOUT_SECONDS)
    with psycopg.connect(addresses.ledger_owner_dsn) as connection:
        Ledger(names).create(connection, mode)
    LogEnds(admin).wait_until_served(names.places)
    return Round(addresses=addresses, mode=mode, seed=seed, namespace=namespace)


def run_traffic(
    round_: Round,
    *,
    payments: int = 120,
    payouts: int = 60,
    holds: bool = True,
    faults: bool = True,
    progress: Progress = lambda _: None,
) -> RunningRound:
    """Run the seeded traffic with all faults, and drain it as far as the holds allow.

    With `holds` it returns while the transactions are open: in every mode a database transaction of the ledger, in
    exactly_once also a producer transaction. Without, they are ended first. Without `faults` nothing is broken.
    """
    plan = make_plan(
        mode=round_.mode,
        seed=round_.seed,
        namespace=round_.namespace,
        payments=payments,
        payouts=payouts,
        now_utc=datetime.now(UTC),
        faults=faults,
    )
    running = RunningRound(round_, plan, progress)
    try:
        running.run(holds=holds)
    except BaseException:
        running.close()
        raise
    return running


def _table(truth: Truth) -> Table:
    """Show the disagreements that are really there."""
    columns = ("contract", "class", "leg", "event id", "copies", "minor units", "currency", "fault")
    table = Table(*columns, title=f"{truth.mode}, seed {truth.seed}: {len(truth.anomalies)} disagreements")
    for item in truth.anomalies:
        money = (str(item.copies), str(item.amount_minor), item.currency)
        table.add_row(item.contract, item.break_class, item.leg, item.event_id, *money, item.fault)
    return table


def main() -> None:
    """Run one round on servers of its own, and show the truth."""
    parser = argparse.ArgumentParser(description="Run one round of traffic with faults, and show the truth.")
    parser.add_argument("--mode", type=DeliveryMode, choices=list(DeliveryMode), required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="an ignored folder for data and truth.json")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, and so stops the servers
    console = Console()
    with start_stack(options.folder) as stack:
        console.print("broker and databases are up")
        round_ = prepare(stack, options.mode, options.seed)
        with run_traffic(round_, progress=console.print) as running:
            truth = running.release()
    truth.write(options.folder / "truth.json")
    console.print(_table(truth))
    console.print(", ".join(f"{fault} {count}" for fault, count in truth.faults_fired.items()))


if __name__ == "__main__":
    main()
