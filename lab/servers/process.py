"""Child processes that never outlive the lab.

Every child is the leader of a process group of its own, so a Ctrl-C in the terminal reaches only the lab, which then
stops its children in order. Where the lab itself is killed, the kernel signals the children (PR_SET_PDEATHSIG, Linux):
`setpriv` of util-linux asks for that. Python between fork and exec would run the fork handlers of each library that is
loaded, and gRPC's can wait for ever for a thread that the child does not have.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from pwd import struct_passwd
from typing import IO, Any, Protocol

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
_SETPRIV = shutil.which("setpriv")
"""Not there on macOS, where children outlive a lab that is killed."""

# The kernel sends the death signal when the *thread* that forked ends, so all children are forked by one thread that
# lives as long as the process.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lab-spawner")


class Child(Protocol):
    """A process that we have started, as subprocess.Popen has it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


class NotReadyInTime(TimeoutError):
    """Something the lab waits for did not happen before its deadline."""


def spawn(
    argv: Sequence[str],
    *,
    log: Path | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
    account: struct_passwd | None = None,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path = REPOSITORY,
) -> subprocess.Popen[bytes]:
    """Start a child in a process group of its own; it gets `death_signal` when the lab dies.

    What it writes to stderr, and to stdout unless `stdout` is given, is appended to the file `log`, or dropped without
    one. With `account`, the child runs as that system user.
    """
    settings: dict[str, Any] = {}
    if account is not None:
        settings = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def start() -> subprocess.Popen[bytes]:
        with open(log or os.devnull, "ab") as output:
            return subprocess.Popen(
                [*_dying_with_parent(death_signal), *argv],
                stdin=stdin,
                stdout=output if stdout is None else stdout,
                stderr=output,
                env=dict(environment) if environment is not None else None,
                cwd=cwd,
                start_new_session=True,
                **settings,
            )

    return _SPAWNER.submit(start).result()


def stop(process: Child | None, *, first: signal.Signals = signal.SIGTERM, patience_seconds: float = 10.0) -> None:
    """Ask a child to end, then SIGKILL its process group; returns once it is reaped. Safe to call again."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGCONT)  # a stopped process takes no other signal
    process.send_signal(first)
    try:
        process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        kill_tree(process)


def freeze(process: Child) -> None:
    """SIGSTOP a child; returns once all its threads stand (Linux): those of a busy machine go on for a while."""
    process.send_signal(signal.SIGSTOP)
    threads = Path("/proc", str(process.pid), "task")

    def all_stand() -> bool:
        try:
            return all(file.read_text().rpartition(")")[2].split()[0] == "T" for file in threads.glob("*/stat"))
        except (FileNotFoundError, ProcessLookupError):  # a thread that was just ending; look at the others again
            return False

    wait_until(all_stand, what=f"process {process.pid} stopped")


def kill_tree(process: Child | None) -> None:
    """SIGKILL a child and all its descendants; returns once none of them is left."""
    if process is None:
        return
    family: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait()
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=10)


def in_parallel(*actions: Callable[[], object]) -> None:
    """Run all actions at once and wait for all, also when one fails or Ctrl-C comes; then raise the first error."""
    with ThreadPoolExecutor(len(actions)) as pool:
        futures = [pool.submit(action) for action in actions]
    for future in futures:
        future.result()


def wait_until(
    condition: Callable[[], bool], *, what: str, deadline_seconds: float = 30.0, every_seconds: float = 0.02
) -> None:
    """Poll until `condition` holds. Raises NotReadyInTime, which names `what`, at the deadline."""
    end = time.monotonic() + deadline_seconds
    while not condition():
        if time.monotonic() > end:
            raise NotReadyInTime(f"{what}: not within {deadline_seconds:.0f} s")
        time.sleep(every_seconds)


def port_answers(port: int) -> bool:
    """Tell whether something accepts connections on this port of 127.0.0.1."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _dying_with_parent(death_signal: signal.Signals) -> tuple[str, ...]:
    return (_SETPRIV, "--pdeathsig", death_signal.name.removeprefix("SIG"), "--") if _SETPRIV else ()
