"""A server of S3's interface on a folder of this machine: versitygw, as setup/object_store.py builds it."""

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.servers.ports import free_port
from lab.servers.process import REPOSITORY, port_answers, spawn, stop, wait_until

SERVER = REPOSITORY / ".tools" / "versitygw"
BUCKET = "artifacts"


@dataclass
class ObjectStoreServer:
    """One server with an account of its own. Stopped and started again, it has what it had."""

    folder: Path
    port: int = field(default_factory=free_port)
    access_key: str = field(default_factory=lambda: secrets.token_hex(10))
    secret_key: str = field(default_factory=lambda: secrets.token_hex(20), repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and return once it answers; the bucket is there."""
        objects = self.folder / "objects"
        for folder in (objects / BUCKET, self.folder / "metadata"):
            folder.mkdir(parents=True, exist_ok=True)
        argv = [str(SERVER), "--port", f"127.0.0.1:{self.port}", "posix"]
        argv += ["--sidecar", str(self.folder / "metadata"), str(objects)]
        account = {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}
        self._process = spawn(argv, log=self.folder / "server.log", environment=account)
        wait_until(lambda: port_answers(self.port), what="the object store answers")

    def stop(self) -> None:
        """End it; a server that does not run stays as it is."""
        stop(self._process)
        self._process = None

    def address(self, prefix: str) -> str:
        """Return the address of a prefix in the bucket."""
        return f"s3://{BUCKET}/{prefix}"

    def environment(self) -> dict[str, str]:
        """Return the account as AWS's own clients read it."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def keywords(self) -> dict[str, str]:
        """Return the same account as keywords of pyarrow's file system."""
        return {
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "region": "us-east-1",
            "endpoint_override": self.endpoint,
        }


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStoreServer]:
    """Run a server on a folder until the end of the block."""
    server = ObjectStoreServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
