"""Hides a text in an address of our pages: the place where the next page of items begins may name a key.

Sealed by the secret that Airflow's api-servers share, so that each of them opens what another one sealed.
"""

import base64
from functools import cache
from hashlib import sha256

from airflow.configuration import conf
from cryptography.fernet import Fernet, InvalidToken


def encrypt(text: str) -> str:
    """The text, unreadable; "" stays so."""
    return _box().encrypt(text.encode()).decode() if text else ""


def decrypt(sealed: str) -> str:
    """Return the text that was encrypted; "" for anything that we did not encrypt."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        return ""


@cache
def _box() -> Fernet:
    secret = conf.get_mandatory_value("api", "secret_key")
    return Fernet(base64.urlsafe_b64encode(sha256(f"tallystick-pages {secret}".encode()).digest()))
