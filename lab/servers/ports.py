"""Free ports that stay free for a restart."""

import random
import socket

# Below the kernel's range for outgoing connections (32768 and up on Linux), so that no connection can take the port
# of a server that is down for a moment.
_PORT_START, _PORT_END = 20_000, 32_000

_handed_out: set[int] = set()


def free_port() -> int:
    """Pick a port of 127.0.0.1 that nothing listens on; never the same twice in one process."""
    while True:
        port = random.SystemRandom().randrange(_PORT_START, _PORT_END)
        if port not in _handed_out and _can_bind(port):
            _handed_out.add(port)
            return port


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
