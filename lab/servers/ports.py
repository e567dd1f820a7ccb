"""Free ports that stay free until their server listens, and while it restarts."""

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

# Below the kernel's range for outgoing connections (32768 and up on Linux), so that no connection can take the port
# of a server that is down for a moment.
_PORT_START, _PORT_END = 20_000, 32_000

_handed_out: set[int] = set()


def free_port() -> int:
    """Pick a port of 127.0.0.1 that nothing listens on; it is this process's own until that ends.

    Several processes pick at once, each many ports long before its servers listen on them, so that a port which nobody
    listens on yet says little. A lock on the port's byte of one file says whose it is.
    """
    while True:
        port = random.SystemRandom().randrange(_PORT_START, _PORT_END)
        if port not in _handed_out and _lock(port) and _can_bind(port):
            _handed_out.add(port)
            return port


@cache
def _locks() -> IO[bytes]:
    """Open the file whose bytes are locked; its locks end with the process that holds them."""
    return open(Path(tempfile.gettempdir(), f"tallystick-ports-{os.getuid()}"), "ab")


def _lock(port: int) -> bool:
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
