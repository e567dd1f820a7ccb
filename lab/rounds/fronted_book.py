"""A book that a DAG judges, in an Airflow under FAB that knows the servers by the door alone; and who is shown it.

Kafka's account, the ledger and the store come to the DAG as Airflow's connections: over TLS, with the rights that
`tallystick grants` prints. FAB's rights on a DAG are those on the pages of its contract.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx

from lab.doors.door import READER, Door
from lab.product.command_line import CommandLine
from lab.rounds.delivery_mode_round import prepare
from lab.rounds.round_contracts import KAFKA, LEDGER, payouts_contract, write_contract
from lab.servers import fab
from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_connections import postgres_connection
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.stack import LabAddresses, LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.workload import Traffic, Workload
from lab.truth.stored_findings import read_contract

BOOK = "fronted"
READS, READS_ANOTHER = "editor", "other_editor"
ROLES = {"admin": "Admin", READS: READS, READS_ANOTHER: READS_ANOTHER}
"""User to role: who may read the book's DAG, and who may read another one's."""
EXPECTED = {
    "verdicts": ("BROKEN",),
    "found": ("missing_in_topic_never_produced",),
    "shown_to": ("admin", READS),
}
_NOWHERE = "127.0.0.1:9"  # the discard port
_DEADLINE_SECONDS = 300.0
_ORDINARY = 12


@dataclass(frozen=True, kw_only=True)
class Fronted:
    """How the DAG's window ended, what it found, and which users were shown its page."""

    verdicts: tuple[str, ...]
    found: tuple[str, ...]
    shown_to: tuple[str, ...]
    seconds: float

    @property
    def differs(self) -> tuple[str, ...]:
        """Return a sentence for each thing that is not as it should be."""
        seen = asdict(self)
        return tuple(
            f"{BOOK}, behind FAB: {name} {', '.join(seen[name]) or 'none'}; expected {', '.join(expected)}"
            for name, expected in EXPECTED.items()
            if seen[name] != expected
        )


def judge_in_front(stack: LabStack, folder: Path, say: Callable[[str], None]) -> Fronted:
    """Take the book's baseline by the command line, lose a payout, and let Airflow judge that window."""
    assert stack.door is not None
    started = time.monotonic()
    prepare(stack, DeliveryMode.AT_LEAST_ONCE, 1, BOOK)
    contract = write_contract(folder / "contracts", payouts_contract(BOOK, BOOK))
    CommandLine(addresses=stack, folder=folder, door=stack.door).reconcile([contract])
    with Workload.open(stack, BOOK, "relay", "traffic") as desk:
        Traffic(desk).payouts(_ORDINARY)
        desk.add_payout(desk.payment())  # and nobody publishes it
    with airflow_behind(stack.door, stack, folder) as airflow:
        say("an Airflow under FAB is up, which knows the servers by the door alone")
        dag_id = f"reconcile_{BOOK}"
        airflow.wait_dag(dag_id, deadline_seconds=_DEADLINE_SECONDS)
        now = datetime.now(UTC)
        run_id = airflow.trigger(dag_id, interval=(now - timedelta(minutes=1), now))
        airflow.wait_run(dag_id, run_id, deadline_seconds=_DEADLINE_SECONDS)
        stored = read_contract(stack.store_dsn, BOOK)
        return Fronted(
            verdicts=stored.verdicts,
            found=tuple(one.name for one in stored.findings if one.name in EXPECTED["found"]),
            shown_to=tuple(user for user in ROLES if is_shown(airflow, user)),
            seconds=round(time.monotonic() - started, 1),
        )


def airflow_behind(door: Door, stack: LabStack, folder: Path) -> AbstractContextManager[AirflowStack]:
    """Run an Airflow under FAB whose plain addresses lead nowhere."""
    home = folder / "airflow"
    home.mkdir(parents=True)
    brokers = stack.bootstrap_servers.count(",") + 1
    addresses: LabAddresses = replace(
        stack.addresses(),
        bootstrap_servers=_NOWHERE,
        proxied_bootstrap_servers=_NOWHERE,
        ledger_reader_dsn=door.over_tls(stack.ledger_reader_dsn),
        store_dsn=door.over_tls(stack.store_dsn),
    )
    settings = AirflowSettings(
        home=home,
        contracts=folder / "contracts",
        artifacts=folder / "artifacts",
        users=ROLES,
        auth_manager=fab.MANAGER,
        connections={
            KAFKA: {"conn_type": "kafka", "extra": door.client(READER, brokers=brokers)},
            LEDGER: postgres_connection(addresses.ledger_reader_dsn),
        },
    )
    make_users = partial(fab.make_users, settings, roles=ROLES, contract=BOOK, other="another")
    return start_airflow(settings, addresses, make_users=make_users, deadline_seconds=_DEADLINE_SECONDS)


def is_shown(airflow: AirflowStack, user: str) -> bool:
    """Ask for the page of the book's newest window as a user. Raises HTTPStatusError where that is no yes and no no."""
    headers = {"Authorization": f"Bearer {airflow.token(user)}"}
    answer = httpx.get(f"{airflow.base_url}/tallystick/run/{BOOK}/1", headers=headers, timeout=60)
    if answer.status_code in (401, 403):
        return False
    answer.raise_for_status()
    return BOOK in answer.text
