"""Writes .env for docker-compose.yml: each name of .env.example with a fresh random value.

    python3 setup/compose_env.py        needs nothing but Python 3

Exit 0: it is there, readable for its owner alone. 1: there was one already, and it is left alone.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def filled(example: str) -> str:
    """Return the text of .env.example with a value behind each name."""
    return re.sub(r"^(TALLYSTICK_\w+)=$", lambda line: f"{line[1]}={_value_of(line[1])}", example, flags=re.MULTILINE)


def _value_of(name: str) -> str:
    if name == "TALLYSTICK_FERNET_KEY":
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    if name == "TALLYSTICK_JWT_SECRET":
        return secrets.token_hex(64)
    if name == "TALLYSTICK_KAFKA_CLUSTER_ID":  # a UUID as Kafka writes one: never with a - in front
        return base64.urlsafe_b64encode(bytes([secrets.randbelow(0xF8)]) + secrets.token_bytes(15)).decode().rstrip("=")
    return secrets.token_hex(24)


def main() -> int:
    """Write the file once."""
    try:
        made = os.open(ROOT / ".env", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print("compose: .env is there already, and is left as it is", file=sys.stderr)
        return 1
    with open(made, "w") as file:
        file.write(filled((ROOT / ".env.example").read_text()))
    print("compose: .env is written; docker compose up --build --wait")
    return 0


if __name__ == "__main__":
    sys.exit(main())
