"""The reasons why PostgreSQL refuses a connection, and what to do about each. Decides nothing.

libpq says what happened, in the server's words or its own; these are the sentences that go behind them.
"""

_TO_DO = (
    (
        "unsupported startup parameter",
        "a pooler such as PgBouncer is in between, which hands no settings of a session on: let the connection lead "
        "past it, to the server itself",
    ),
    ("password authentication failed", "correct user and password of the connection"),
    ("no password supplied", "the server asks for a password, and the connection has none"),
    (
        "server does not support SSL",
        "the server speaks no TLS, and sslmode asks for it: turn TLS on there, or correct the connection's sslmode",
    ),
    (
        "no encryption",
        "the server's pg_hba.conf does not let this user in without TLS: set the connection's sslmode=verify-full and "
        "sslrootcert, or have a line added there",
    ),
    ("no pg_hba.conf entry", "the server's pg_hba.conf does not let this user in from here: have a line added there"),
    (
        "root certificate file",
        "expected the certificates of the server's CAs there, in PEM; correct sslrootcert, or put the file there",
    ),
    (
        "certificate verify failed",
        "the server's certificate is not proven by sslrootcert; let it name the CA that signed it",
    ),
    (
        "does not match host name",
        "the server's certificate is for another name; connect by the name that it has, or have one made for this",
    ),
    ("Connection refused", "nothing listens there; correct host and port of the connection, or start the server"),
    ("failed to resolve host", "there is no host of that name; correct the connection"),
    ("timeout", "nothing answers there; correct host and port, or let this host through to the server"),
    ("does not exist", "correct the connection, or have it made there"),
    ("too many", "the server takes no more connections; close some, or raise its limit"),
)
"""A part of the words, and what to do; the first that fits is told, so what says more comes first."""


def what_to_do(said: str) -> str:
    """Return the advice behind libpq's words: a semicolon and a sentence, or nothing for unknown words."""
    return next((f"; {to_do}" for part, to_do in _TO_DO if part in said), "")
