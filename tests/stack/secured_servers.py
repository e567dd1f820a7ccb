"""Servers that let in whom they know: a broker with TLS and accounts; TLS before nothing."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from lab.doors.certificates import Certificates
from lab.doors.tls_front import SSL_REQUEST
from lab.servers.broker import Broker
from lab.servers.ports import free_port

USER, PASSWORD = "reader", "the-r1ght-one"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(kw_only=True)
class SecuredBroker(Broker):
    """With more listeners: TLS, accounts, both; one that asks for a client's certificate; one for another host."""

    certificates: Certificates
    tls_port: int = field(default_factory=free_port)
    accounts_port: int = field(default_factory=free_port)
    both_port: int = field(default_factory=free_port)
    clients_port: int = field(default_factory=free_port)
    elsewhere_port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.listeners = {
            "TLS": ("SSL", self.tls_port),
            "ACCOUNTS": ("SASL_PLAINTEXT", self.accounts_port),
            "BOTH": ("SASL_SSL", self.both_port),
            "CLIENTS": ("SSL", self.clients_port),
            "ELSEWHERE": ("SSL", self.elsewhere_port),
        }

    def _settings(self) -> dict[str, str]:
        settings = super()._settings()
        for name, (protocol, _) in self.listeners.items():
            prefix = f"listener.name.{name.lower()}"
            if "SSL" in protocol:
                settings[f"{prefix}.ssl.keystore.type"] = "PEM"
                of = self.certificates.elsewhere if name == "ELSEWHERE" else self.certificates.server
                settings[f"{prefix}.ssl.keystore.location"] = str(of)
            if name == "CLIENTS":
                settings[f"{prefix}.ssl.client.auth"] = "required"
                settings[f"{prefix}.ssl.truststore.type"] = "PEM"
                settings[f"{prefix}.ssl.truststore.location"] = str(self.certificates.ca)
            if "SASL" in protocol:
                login = f'{_LOGIN} required user_{USER}="{PASSWORD}";'
                settings[f"{prefix}.plain.sasl.jaas.config"] = login
        return settings | {"sasl.enabled.mechanisms": "PLAIN"}


@dataclass(kw_only=True)
class GuardedBroker(Broker):
    """Whose accounts may only do what an ACL allows; who comes by the plain listener is its administrator."""

    accounts_port: int = field(default_factory=free_port)
    accounts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.listeners = {"ACCOUNTS": ("SASL_PLAINTEXT", self.accounts_port)}

    def _settings(self) -> dict[str, str]:
        known = " ".join(f'user_{name}="{PASSWORD}"' for name in self.accounts)
        return super()._settings() | {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.accounts.plain.sasl.jaas.config": f"{_LOGIN} required {known};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def as_account(self, name: str) -> dict[str, str]:
        """A client's settings."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.accounts_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": name,
            "sasl.password": PASSWORD,
        }


@contextmanager
def tls_for_libpq(certificates: Certificates) -> Iterator[int]:
    """A port that answers libpq's wish for TLS, shakes hands, and hangs up: for clients that do not get further."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_shake_hands, args=(listener, context))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _shake_hands(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            connection.recv(len(SSL_REQUEST))
            connection.sendall(b"S")
            context.wrap_socket(connection, server_side=True).close()
