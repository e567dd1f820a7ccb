"""A real Kafka 4.3 broker: one KRaft node from Kafka's own jars, on 127.0.0.1, alone or among others
(lab/servers/kafka_cluster.py).

Two listeners for clients: `bootstrap_servers` is the broker itself; who asks the second one, which is reached only
through the lab's TCP proxy, is told the proxy's port and so stays behind the proxy.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab.servers import process
from lab.servers.class_archives import archive_options
from lab.servers.ports import free_port

DEFAULT_JARS = process.REPOSITORY / ".jars" / "broker"
_LOG4J_FILE = Path(__file__).with_name("log4j2.xml")
_CLUSTER_ID = "bGFiLXRhbGx5c3RpY2stMQ"  # any 16 bytes in base64; fixed, so that saved lab data names its origin

# The broker lives for minutes on a shared machine: the quick compiler and the small collector start soonest.
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]

_SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAIN",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAIN:PLAINTEXT,PROXIED:PLAINTEXT",
    # Few partitions start sooner than the stock 50.
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    # Transactions may stay open for an hour, and one that timed out is aborted within a second.
    "transaction.max.timeout.ms": "3600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # A node that was killed comes back once its session is over: sooner than the stock 9 seconds.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    "metadata.max.idle.interval.ms": "10000",  # a record that says nothing, else twice a second
    # A compacted topic is compacted within seconds, by a cleaner that fits into a small heap.
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "4194304",
}


class BrokerJarsMissing(FileNotFoundError):
    """Kafka's jars were not fetched yet."""


class BrokerDidNotStart(RuntimeError):
    """The broker ended before it answered; the message carries the end of its log."""


def replication(copies: int, *, in_sync_min: int) -> dict[str, str]:
    """The settings that say how many nodes keep each topic, Kafka's own included, and how many must have a write."""
    everywhere = {"default.replication.factor": str(copies), "min.insync.replicas": str(in_sync_min)}
    return everywhere | {
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync_min),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(in_sync_min),
    }


@dataclass
class Broker:
    """One Kafka node with a data folder and ports of its own. `settings` and `voters` differ in a cluster."""

    folder: Path
    proxied_port: int  # where the proxy listens
    jars: Path = DEFAULT_JARS
    node_id: int = 1
    heap_megabytes: int = 768
    settings: dict[str, str] = field(default_factory=lambda: replication(1, in_sync_min=1))
    voters: tuple[str, ...] = ()  # of the controllers' quorum; none: itself alone
    is_controller: bool = True
    listeners: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # more of them: protocol and port by name
    java_options: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    upstream_port: int = field(default_factory=free_port)  # where the proxy connects to
    controller_port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def proxied_bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.proxied_port}"

    @property
    def voter(self) -> str:
        return f"{self.node_id}@127.0.0.1:{self.controller_port}"

    @property
    def log(self) -> Path:
        return self.folder.with_suffix(".log")

    @property
    def is_running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def initialise(self) -> None:
        """Write the settings and format the data folder. Raises BrokerJarsMissing."""
        if not any(self.jars.glob("kafka_*.jar")):
            raise BrokerJarsMissing(f"no Kafka jars in {self.jars}: fetch them first (see setup/)")
        self.folder.mkdir(parents=True)
        self._settings_file.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
        argv = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._settings_file)]
        if self._java(*argv).wait(60) != 0:
            raise BrokerDidNotStart(_tail(self.log))

    def start(self) -> None:
        """Start the broker and return once it serves requests. Raises BrokerDidNotStart."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the broker and return at once: in a cluster none is ready before the others."""
        self.child = self._java("kafka.Kafka", str(self._settings_file))

    def wait_ready(self) -> None:
        """Return once the broker serves requests. Raises BrokerDidNotStart."""
        process.wait_until(self._answers, what=f"Kafka on port {self.port}", deadline_seconds=60)

    def kill(self) -> None:
        """SIGKILL the broker."""
        process.kill_tree(self.child)

    def restart(self) -> None:
        """Start again on the same data and ports; stops the broker first where it still runs."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Shut down in order; safe to call again, and when the broker never started."""
        process.stop(self.child)

    @property
    def _settings_file(self) -> Path:
        return self.folder / "server.properties"

    def _settings(self) -> dict[str, str]:
        controller = f",CONTROLLER://127.0.0.1:{self.controller_port}" if self.is_controller else ""
        more = "".join(f",{name}://127.0.0.1:{port}" for name, (_, port) in self.listeners.items())
        protocols = "".join(f",{name}:{protocol}" for name, (protocol, _) in self.listeners.items())
        return {
            **_SETTINGS,
            **self.settings,
            "process.roles": "broker,controller" if self.is_controller else "broker",
            "node.id": str(self.node_id),
            "controller.quorum.voters": ",".join(self.voters or (self.voter,)),
            "listeners": f"PLAIN://127.0.0.1:{self.port},PROXIED://127.0.0.1:{self.upstream_port}{controller}{more}",
            "advertised.listeners": f"PLAIN://127.0.0.1:{self.port},PROXIED://127.0.0.1:{self.proxied_port}{more}",
            "listener.security.protocol.map": _SETTINGS["listener.security.protocol.map"] + protocols,
            "log.dirs": str(self.folder / "data"),
        }

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        java, *command = java_command(self.jars, heap_megabytes=self.heap_megabytes)
        return process.spawn([java, *self.java_options, *command, *arguments], log=self.log, cwd=self.folder)

    def _answers(self) -> bool:
        if not self.is_running:
            raise BrokerDidNotStart(_tail(self.log))
        if not process.port_answers(self.port) or not process.port_answers(self.upstream_port):
            return False
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        try:
            cluster = admin.describe_cluster(request_timeout=5).result()
        except KafkaException:
            return False
        return cluster.controller is not None and self.node_id in {node.id for node in cluster.nodes}


def java_command(jars: Path, *, heap_megabytes: int = 256) -> list[str]:
    """Begin the command line of one of Kafka's own programs; its class name and arguments follow."""
    heap = [f"-Xms{min(heap_megabytes, 256)}m", f"-Xmx{heap_megabytes}m"]
    shared = shlex.split(archive_options(jars.with_suffix(".jsa")))
    return [_java_binary(), *_JVM, *shared, *heap, f"-Dlog4j2.configurationFile={_LOG4J_FILE}", "-cp", f"{jars}/*"]


def _java_binary() -> str:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if found is None:
        raise FileNotFoundError("no java on PATH and no JAVA_HOME: Kafka 4.3 needs Java 17 or newer")
    return found


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
