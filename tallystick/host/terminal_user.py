"""The person at the command line, as the operating system says: by user id, whatever the environment claims."""

import os
import pwd
import socket
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """os_user: login name of the process's real user, or its number where it has none. host: name of the machine."""

    os_user: str
    host: str

    def as_json(self) -> dict[str, str]:
        return {"os_user": self.os_user, "host": self.host}


AT_TERMINAL = "terminal"
"""Key of the detail of a line of the trail that the command line wrote."""


def at_terminal(terminal: Terminal | None) -> dict[str, dict[str, str]]:
    """Return the further detail of such a line in the trail; {} where no command line wrote it."""
    return {AT_TERMINAL: terminal.as_json()} if terminal else {}


def this_terminal() -> Terminal:
    user_id = os.getuid()
    try:
        name = pwd.getpwuid(user_id).pw_name
    except KeyError:
        name = str(user_id)
    return Terminal(os_user=name, host=socket.gethostname())
