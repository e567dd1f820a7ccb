"""A real schema registry, Apicurio (`make registry-setup`), on 127.0.0.1, with the interface of Confluent's.

It keeps all in memory, so what is registered is gone with the process.
"""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from lab.servers import process
from lab.servers.ports import free_port

_PROGRAM = process.REPOSITORY / ".tools" / "apicurio"


class RegistryDidNotStart(RuntimeError):
    """The registry is not fetched, or ended before it answered."""


@dataclass
class SchemaRegistry:
    """One registry with a port of its own."""

    folder: Path
    port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address that clients of Confluent's registry are given."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start the registry and return once it answers. Raises RegistryDidNotStart."""
        jars = sorted(_PROGRAM.glob("*-runner.jar"))
        if not jars:
            raise RegistryDidNotStart(f"no registry in {_PROGRAM}; `make registry-setup` fetches it")
        self.folder.mkdir(parents=True, exist_ok=True)
        argv = ["java", "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        argv += [f"-Dquarkus.http.port={self.port}", "-Dquarkus.http.host=127.0.0.1", "-jar", str(jars[0])]
        self.child = process.spawn(argv, log=self.folder / "registry.log")
        process.wait_until(self._answers, what=f"the registry on port {self.port}", deadline_seconds=120)

    def stop(self) -> None:
        """Stop it; safe to call again."""
        process.stop(self.child)

    def register(self, subject: str, schema: str, *, kind: str = "AVRO", references: tuple[str, ...] = ()) -> int:
        """Register a schema and return its id. references: subjects, each under its own name, at version 1."""
        given = {
            "schema": schema,
            "schemaType": kind,
            "references": [{"name": name, "subject": name, "version": 1} for name in references],
        }
        answer = httpx.post(f"{self.url}/subjects/{subject}/versions", json=given, timeout=30)
        answer.raise_for_status()
        return int(answer.json()["id"])

    def _answers(self) -> bool:
        if self.child is not None and self.child.poll() is not None:
            raise RegistryDidNotStart((self.folder / "registry.log").read_text()[-2000:])
        try:
            return httpx.get(f"{self.url}/subjects", timeout=5).is_success
        except httpx.HTTPError:
            return False
