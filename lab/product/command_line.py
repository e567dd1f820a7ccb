"""The reconciler as its users run it: the command line, in a process of its own, told everything by its environment."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from lab.doors.door import EXECUTOR, READER, Door
from lab.rounds.round_contracts import KAFKA, LEDGER
from lab.rounds.second_person import SecondPerson
from lab.servers import process, warm_python
from lab.servers.airflow_environment import SMALL_SPARK
from lab.servers.orphan_reaper import start_guard
from lab.servers.postgres import LEDGER_READER, STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabAddresses

TALLYSTICK = str(Path(sys.executable).with_name("tallystick"))
STEP_BY_STEP = (sys.executable, "-m", "lab.crash.barrier_script", TALLYSTICK)
"""The same, and it waits at the end of each line until it is told to go on."""
_COMMAND = (sys.executable, "-m", "tallystick")

_JUDGED = (0, 1, 3)  # matched, broken, inconclusive
_REFUSED = 2
_ACTED = (*_JUDGED, _REFUSED)
_DEADLINE_SECONDS = 600.0
_NOTHING_ELSE: Mapping[str, str] = {}


class CommandFailed(RuntimeError):
    """The command stored no verdict; the message carries the end of its log."""


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """`tallystick`, for the servers of one stack.

    kafka: id of the broker's connection. ledgers: those that stand elsewhere, by the connection's id. door: with one,
    the reader and the executor have an account each, and they and the ledger's reader the rights that
    `tallystick grants` prints for a contract.
    """

    addresses: LabAddresses
    folder: Path
    kafka: str = KAFKA
    ledgers: dict[str, str] = field(default_factory=dict, repr=False)
    door: Door | None = None
    _granted: set[Path] = field(default_factory=set)

    @property
    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def migrate_store(self) -> None:
        """As the store's owner, who grants the rights that all else is done with."""
        owner = {"TALLYSTICK_STORE_DSN": self._over_tls(self.addresses.store_owner_dsn)}
        self._run("store", "migrate", "--grant-to", STORE_ROLE, exit_codes=(0,), told=owner)

    @contextmanager
    def warm_spark(self) -> Iterator[None]:
        """Keep a Spark Connect server for the length of a block: what is reconciled in it starts no Java."""
        with start_guard() as guard:
            self._run("spark", "start", exit_codes=(0,))
            try:
                guard.watch(json.loads((self.folder / "artifacts" / "spark" / "server.json").read_text())["pid"])
                yield
            finally:
                self._run("spark", "stop", exit_codes=(0,))

    def reconcile(self, contracts: Sequence[Path]) -> None:
        """One window of each contract; whatever the verdicts. Raises CommandFailed, NotReadyInTime."""
        self._grant(contracts)
        self._run("run", *(str(path) for path in contracts), exit_codes=_JUDGED)

    def cut(self, contracts: Sequence[Path]) -> None:
        """Settle and store the next cut of each contract. Raises CommandFailed, NotReadyInTime."""
        self._grant(contracts)
        self._run("cut", *(str(path) for path in contracts), exit_codes=(0,))

    def plan(self, contract: Path) -> str:
        """Have a plan of the newest run kept; give its hash. Raises CommandFailed."""
        return str(self.plan_document(contract)["plan_hash"])

    def plan_document(self, contract: Path) -> dict[str, Any]:
        """The same; give all of it."""
        self._grant([contract])
        document: dict[str, Any] = json.loads(
            self._said("compensation", "plan", str(contract), "--by", "planner", "--json")
        )
        return document

    def execute(self, contract: Path, plan_hash: str) -> None:
        """Start an executor of a plan, and return once it has ended, whatever it did or refused."""
        asked = ("compensation", "execute", str(contract), plan_hash, "--by", "lab", "--json")
        self._run(*asked, exit_codes=_ACTED, account=EXECUTOR)

    def reopen(self, contract: Path, action_id: str, second: SecondPerson) -> None:
        """Two people have looked, and let the next plan repair the action's break again. Raises CommandFailed."""
        asked = ("compensation", "reopen", str(contract), action_id, "--by", "Ada", "--reason", "nothing was paid")
        sheet = self.folder / f"reopen-{action_id}.json"
        sheet.write_text(self._said(*asked))
        second.sign(sheet)
        self._run(*asked, "--approval", str(sheet), exit_codes=(0,), told=second.environment)

    def write_off(self, contract_name: str, break_id: str) -> bool:
        """A person gives a break up; False where the store does not let them. Raises CommandFailed, NotReadyInTime."""
        by = ("--by", "Carol", "--reason", "paid by bank transfer")
        return self._run("write-off", contract_name, break_id, *by, exit_codes=(0, _REFUSED)) != _REFUSED

    @property
    def log(self) -> Path:
        return self.folder / "command_line.log"

    def _grant(self, contracts: Sequence[Path]) -> None:
        """Have the accounts granted what a contract needs, before it is first asked for."""
        if self.door is None:
            return
        roles = ("--reader", READER, "--executor", EXECUTOR, "--environment", "production")
        for contract in contracts:
            if contract not in self._granted:
                printed = self._said("grants", str(contract), "--for", "kafka", *roles)
                self.door.grant(self.addresses.bootstrap_servers, printed)
                printed = self._said("grants", str(contract), "--for", "postgres", "--reader", LEDGER_READER)
                with psycopg.connect(self.addresses.ledger_admin_dsn) as admin:
                    admin.execute(printed.encode())
                self._granted.add(contract)

    def _over_tls(self, dsn: str) -> str:
        return self.door.over_tls(dsn) if self.door and dsn.startswith("postgresql://") else dsn

    def _said(self, *arguments: str) -> str:
        """What a command prints. Raises CommandFailed."""
        child = warm_python.spawn_piped([*_COMMAND, *arguments], log=self.log, environment=self.environment())
        output, code = child.read(_DEADLINE_SECONDS), child.wait()
        if code != 0:
            raise CommandFailed(f"tallystick {' '.join(arguments[:2])}: exit code {code}\n{self.log_tail}")
        return output.decode()

    def _run(
        self,
        *arguments: str,
        exit_codes: tuple[int, ...],
        told: Mapping[str, str] = _NOTHING_ELSE,
        account: str = READER,
    ) -> int:
        argv, environment = [*_COMMAND, *arguments], {**self.environment(account), **told}
        child = warm_python.spawn(argv, log=self.log, environment=environment, death_signal=signal.SIGTERM)
        try:
            code = child.wait(_DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise process.NotReadyInTime(f"tallystick {arguments[0]}: not within {_DEADLINE_SECONDS:.0f} s") from None
        finally:
            process.stop(child)  # by SIGTERM first, so that it stops its Spark
        if code not in exit_codes:
            raise CommandFailed(f"tallystick {arguments[0]}: exit code {code}\n{self.log_tail}")
        return code

    def environment(self, account: str = READER) -> dict[str, str]:
        """What every process of the reconciler is told; addresses carry passwords. account: where there is a door."""
        addresses = {f"TALLYSTICK_CONN_{name.upper()}": dsn for name, dsn in self.ledgers.items()} | {
            "TALLYSTICK_STORE_DSN": self.addresses.store_dsn,
            f"TALLYSTICK_CONN_{LEDGER.upper()}": self.addresses.ledger_reader_dsn,
        }
        return (
            os.environ
            | {name: self._over_tls(dsn) for name, dsn in addresses.items()}
            | {
                f"TALLYSTICK_CONN_{self.kafka.upper()}": json.dumps(self._kafka(account)),
                "TALLYSTICK_ARTIFACTS_DIR": str(self.folder / "artifacts"),
                "TALLYSTICK_JARS_DIR": str(REPOSITORY / ".jars" / "spark"),
                "TALLYSTICK_SPARK_MASTER": "local[2]",
                "TALLYSTICK_SPARK_CONF": json.dumps(SMALL_SPARK),
            }
        )

    def _kafka(self, account: str) -> dict[str, str]:
        servers = self.addresses.bootstrap_servers
        if self.door is None:
            return {"bootstrap.servers": servers}
        return self.door.client(account, brokers=servers.count(",") + 1)
