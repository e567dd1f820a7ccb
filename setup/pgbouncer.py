"""Fetches PgBouncer into .tools/ out of Debian's package, for tests that need a pooler before a database.

The package is taken apart and not installed: it would start a server on whoever's machine this is.
"""

from __future__ import annotations

import sys

from debian_file import TOOLS, take_out

PGBOUNCER = TOOLS / "pgbouncer"
RESOLVER = TOOLS / "libcares.so.2"
_RESOLVERS = ("libc-ares2", "libcares2")
"""The package of that library, by Debian 12's name and by 13's."""


def main() -> int:
    """Nothing to do where both are there already."""
    if not PGBOUNCER.exists() and not take_out("pgbouncer", "usr/sbin/pgbouncer"):
        return 1
    if not RESOLVER.exists():
        name = _RESOLVERS[0] if _debian() < 13 else _RESOLVERS[1]
        if not take_out(name, "usr/lib/*/libcares.so.2.*"):
            return 1
        (found,) = TOOLS.glob("libcares.so.2.*")
        found.rename(RESOLVER)
    return 0


def _debian() -> int:
    with open("/etc/debian_version") as file:
        return int(file.read().partition(".")[0])


if __name__ == "__main__":
    sys.exit(main())
