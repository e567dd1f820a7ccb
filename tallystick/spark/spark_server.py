"""A Spark Connect server on this machine that stays, so that a run need not start Java: started, found, stopped.

It listens on a loopback port and asks each client for a token. Where it listens, and the token, stand in a file that
only its owner reads; neither is in an argv.
"""

import fcntl
import json
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from tallystick.host.private_files import private_file, private_folder, system_refusals
from tallystick.model.errors import TallystickError
from tallystick.spark.spark_job import (
    REMOTE_VARIABLE,
    TOKEN_VARIABLE,
    last_words,
    lasting_settings,
    submit_with,
)

_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS_MAX = 120.0
_STOP_SECONDS_MAX = 15.0
_LOOK_AGAIN_SECONDS = 0.1


class SparkServerNotStarted(TallystickError):
    """The server ended before it answered, or took too long. The message has its last words."""


class SparkServerRuns(TallystickError):
    """There is one already, or somebody is starting one."""


@dataclass(frozen=True, kw_only=True)
class SparkServer:
    """A server that was started here. created: the process's time of birth, by which its number is told from another's.

    python: whose packages its tasks run with.
    """

    pid: int
    created: float
    port: int
    python: str
    token: str = field(repr=False)

    @property
    def remote(self) -> str:
        """The address for clients. Source: Spark Connect's client connection string."""
        return f"sc://localhost:{self.port}"  # by this name alone Spark's client sends a token without TLS

    @property
    def lives(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return process.create_time() == self.created and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def for_clients(self) -> dict[str, str]:
        """The environment of its clients."""
        return {REMOTE_VARIABLE: self.remote, TOKEN_VARIABLE: self.token}


def start_server(folder: Path, *, environment: Mapping[str, str]) -> SparkServer:
    """Start a server and return once it answers. folder: of the artifacts.

    Raises SparkServerRuns, SparkServerNotStarted, SparkNotReady, FolderRefused.
    """
    private_folder(_state(folder).parent, below=folder)
    with _alone(folder):
        if found := running_server(folder):
            raise SparkServerRuns(
                f"{found.remote}: runs already, as process {found.pid}; stop it with: tallystick spark stop"
            )
        return _start(folder, environment)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process start a server for these artifacts; the system ends its lock with it. Raises SparkServerRuns."""
    lock = private_file(_state(folder).with_name("start.lock"))
    with lock.open("wb") as held:
        with system_refusals(lock):
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SparkServerRuns(
                    f"{folder}: another process is starting a Spark server for these artifacts; once it has, runs read "
                    "with that one: see tallystick spark status"
                ) from None
        yield


def _start(folder: Path, environment: Mapping[str, str]) -> SparkServer:
    port, token, log = _free_port(), secrets.token_urlsafe(32), log_of(folder)
    argv = _argv(port, environment)
    with private_file(log).open("wb") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**environment, TOKEN_VARIABLE: token, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,
        )
    try:
        _wait_until_answers(process, port, log)
        server = SparkServer(
            pid=process.pid,
            created=psutil.Process(process.pid).create_time(),
            port=port,
            python=sys.executable,
            token=token,
        )
        state = private_file(_state(folder))
        with system_refusals(state):
            state.write_text(json.dumps(asdict(server)), encoding="utf-8")
    except BaseException:
        with suppress(psutil.NoSuchProcess):  # it has ended by itself
            _end(psutil.Process(process.pid))
        raise
    return server


def running_server(folder: Path) -> SparkServer | None:
    """Return the server that was started for this folder of artifacts and still lives. Raises FolderRefused."""
    state, text = _state(folder), ""
    try:
        with system_refusals(state), suppress(FileNotFoundError, NotADirectoryError):
            text = state.read_text(encoding="utf-8")
        found = SparkServer(**json.loads(text))
    except (ValueError, TypeError):
        return None
    return found if found.lives else None


def stop_server(folder: Path) -> SparkServer | None:
    """Stop it with all that it started, and return it; None where none runs. Raises FolderRefused."""
    server = running_server(folder)
    if server is not None:
        with suppress(psutil.NoSuchProcess):
            _end(psutil.Process(server.pid))
    with system_refusals(_state(folder)):
        _state(folder).unlink(missing_ok=True)
    return server


def with_running_server(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment of a Spark app: with the server that runs, where none is named and this Python's does."""
    server = None if environment.get(REMOTE_VARIABLE) else running_server(folder)
    if server is None or server.python != sys.executable:
        return dict(environment)
    return {**environment, **server.for_clients()}


def log_of(folder: Path) -> Path:
    """Return the file in which the server of a folder of artifacts writes its log."""
    return folder / "spark" / "server.log"


def _state(folder: Path) -> Path:
    return folder / "spark" / "server.json"


def _argv(port: int, environment: Mapping[str, str]) -> list[str]:
    settings = lasting_settings(environment) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    return [*submit_with(settings, environment, "--class", _SERVER_CLASS, "--name", "tallystick"), "spark-internal"]


def _wait_until_answers(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while not _answers(port):
        if (code := process.poll()) is not None:
            raise SparkServerNotStarted(
                f"the Spark server ended with exit code {code}: {last_words(log)}; its log is {log}"
            )
        if time.monotonic() > deadline:
            raise SparkServerNotStarted(
                f"the Spark server does not answer after {_START_SECONDS_MAX:.0f} s; its log is {log}"
            )
        time.sleep(_LOOK_AGAIN_SECONDS)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def _end(leader: psutil.Process) -> None:
    """SIGTERM, so that Spark removes its files, then SIGKILL for what is left of the family."""
    family = [leader, *leader.children(recursive=True)]
    leader.send_signal(signal.SIGTERM)
    _, left = psutil.wait_procs(family, timeout=_STOP_SECONDS_MAX)
    for one in left:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(left, timeout=_STOP_SECONDS_MAX)
