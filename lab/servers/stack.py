"""The lab's servers as one value: one broker or three, the ledger's database, a second database, and the proxy.

`start_stack` runs them for the length of a `with`; `python -m lab.servers.stack --folder DIR` runs them until SIGINT
or SIGTERM and writes the addresses to `DIR/stack.json`, which `read_addresses` reads in any other process. The folder
begins empty: what an earlier stack left in it is removed. Only one stack at a time runs in a folder.
"""

import argparse
import fcntl
import json
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from lab.doors.door import Door
from lab.servers import process
from lab.servers.broker import DEFAULT_JARS, Broker
from lab.servers.kafka_cluster import BROKERS_MAX, NO_SETTINGS, Cluster, broker_name, new_cluster
from lab.servers.postgres import (
    AIRFLOW_DATABASE,
    LEDGER_DATABASE,
    LEDGER_OWNER,
    LEDGER_READER,
    NEWEST,
    STORE_DATABASE,
    STORE_OWNER,
    STORE_ROLE,
    PostgresServer,
    binaries_of,
    create_ledger,
    create_store,
)
from lab.servers.proxy import Proxy, ProxyControl

ADDRESSES_FILE = "stack.json"


class FolderInUse(RuntimeError):
    """Another stack runs in this folder."""


@dataclass(frozen=True, kw_only=True)
class LabAddresses:
    """Where the lab's servers answer. The dsn's carry passwords, so they stay out of the repr."""

    folder: str  # where the data and the logs lie
    bootstrap_servers: str
    proxied_bootstrap_servers: str  # the same broker, behind the proxy that can lose acknowledgements
    ledger_owner_dsn: str = field(repr=False)
    ledger_reader_dsn: str = field(repr=False)
    ledger_admin_dsn: str = field(repr=False)  # the superuser: for tests that ask what no reader may
    store_dsn: str = field(repr=False)
    store_owner_dsn: str = field(repr=False)  # to migrate it; nothing else is done as its owner
    airflow_dsn: str = field(repr=False)
    proxy_control_port: int

    @property
    def proxy(self) -> ProxyControl:
        return ProxyControl(self.proxy_control_port)


@dataclass(frozen=True, kw_only=True)
class LabStack(LabAddresses):
    """The addresses, and the servers themselves to kill and restart."""

    cluster: Cluster
    ledger_server: PostgresServer
    store_server: PostgresServer
    door: Door | None = None
    """By which the reconciler comes in; without one, by the plain listener."""

    @property
    def broker(self) -> Broker:
        """The only broker, or the first."""
        return self.cluster.brokers[0]

    def addresses(self) -> LabAddresses:
        """Give the part that another process can use."""
        return LabAddresses(**{item.name: getattr(self, item.name) for item in fields(LabAddresses)})


@contextmanager
def start_stack(
    folder: Path,
    *,
    jars: Path = DEFAULT_JARS,
    brokers: int = 1,
    controllers: int = BROKERS_MAX,
    broker_settings: Mapping[str, str] = NO_SETTINGS,
    door: Door | None = None,
    ledger_version: int = NEWEST,
) -> Iterator[LabStack]:
    """Run the servers on data in `folder`; all are stopped when the block ends, however it ends.

    controllers: of three brokers, so many are controllers too. broker_settings: beside the lab's own.
    door: where the reconciler is to come in; the ledger's reader then sees nothing that it was not granted.
    ledger_version: of the ledger's PostgreSQL, its first number.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as cleanup:
        cleanup.enter_context(_only_stack_in(folder))
        _clear(folder)
        cluster = new_cluster(
            folder, brokers=brokers, jars=jars, controllers=controllers, settings=broker_settings, door=door
        )
        proxy = Proxy(folder / "proxy.log", {each.proxied_port: each.upstream_port for each in cluster.brokers})
        ledger_server = PostgresServer(folder / "ledger", fsync=True, binaries=binaries_of(ledger_version))
        store_server = PostgresServer(folder / "store", fsync=False)
        cleanup.callback(process.in_parallel, cluster.stop, ledger_server.stop, store_server.stop, proxy.stop)
        process.in_parallel(
            cluster.start,
            lambda: _start_ledger(ledger_server, open_to_reader=door is None),
            lambda: _start_store(store_server),
            proxy.start,
        )
        if door is not None:
            door.make_accounts(cluster.bootstrap_servers)
        yield replace(_describe(folder, cluster, ledger_server, store_server, proxy), door=door)


def read_addresses(folder: Path) -> LabAddresses:
    """Read the addresses of the stack that runs in `folder` in another process."""
    return LabAddresses(**json.loads((folder / ADDRESSES_FILE).read_text()))


def write_addresses(stack: LabStack, folder: Path) -> Path:
    """Write the addresses for other processes of the same user; the file holds passwords, so its mode is 0600."""
    path = folder / ADDRESSES_FILE
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(json.dumps(asdict(stack.addresses()), indent=2) + "\n")
    return path


def _start_ledger(server: PostgresServer, *, open_to_reader: bool) -> None:
    server.initialise()
    server.start()
    create_ledger(server, open_to_reader=open_to_reader)


def _start_store(server: PostgresServer) -> None:
    server.initialise()
    server.start()
    create_store(server)


def _describe(folder: Path, cluster: Cluster, ledger: PostgresServer, store: PostgresServer, proxy: Proxy) -> LabStack:
    return LabStack(
        folder=str(folder),
        bootstrap_servers=cluster.bootstrap_servers,
        proxied_bootstrap_servers=cluster.proxied_bootstrap_servers,
        ledger_owner_dsn=ledger.dsn(LEDGER_OWNER, LEDGER_DATABASE),
        ledger_reader_dsn=ledger.dsn(LEDGER_READER, LEDGER_DATABASE),
        ledger_admin_dsn=ledger.dsn("postgres", LEDGER_DATABASE),
        store_dsn=store.dsn(STORE_ROLE, STORE_DATABASE),
        store_owner_dsn=store.dsn(STORE_OWNER, STORE_DATABASE),
        airflow_dsn=store.dsn(AIRFLOW_DATABASE, AIRFLOW_DATABASE),
        proxy_control_port=proxy.control_port,
        cluster=cluster,
        ledger_server=ledger,
        store_server=store,
    )


@contextmanager
def _only_stack_in(folder: Path) -> Iterator[None]:
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(f"another lab stack runs in {folder}") from None
        yield


def _clear(folder: Path) -> None:
    for name in (*(broker_name(number) for number in range(1, BROKERS_MAX + 1)), "ledger", "store", "services"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / f"{name}.log").unlink(missing_ok=True)
    (folder / ADDRESSES_FILE).unlink(missing_ok=True)


def main() -> None:
    """Run a stack until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="Run the lab's servers until Ctrl-C.")
    parser.add_argument("--folder", type=Path, required=True, help="an ignored folder for the data")
    folder: Path = parser.parse_args().folder
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with start_stack(folder) as stack:
        path = write_addresses(stack, folder)
        print(f"ready: {path}", flush=True)
        stopped.wait()
        path.unlink()


if __name__ == "__main__":
    main()
