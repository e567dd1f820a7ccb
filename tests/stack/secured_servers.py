"""Servers that let in whom they know: a broker with TLS and accounts; TLS before a PostgreSQL, and before nothing."""

import asyncio
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.servers.broker import Broker
from lab.servers.ports import free_port

USER, PASSWORD = "reader", "the-r1ght-one"
_PEM = serialization.Encoding.PEM
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)
"""By which libpq asks for TLS. Source: PostgreSQL manual, message formats, SSLRequest."""


@dataclass(frozen=True)
class Certificates:
    """Of a server on 127.0.0.1, its key before it; of the CA that signed it and a client; of another CA."""

    server: Path
    ca: Path
    other_ca: Path
    client: Path
    client_key: Path


def make_certificates(folder: Path) -> Certificates:
    """Write them, valid for some days."""
    made = Certificates(
        *(folder / f"{name}.pem" for name in ("server", "ca", "other_ca", "client")), folder / "client.pk8"
    )
    ca_key, other_key, key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
    made.ca.write_bytes(_signed("lab", ca_key, by=ca_key))
    made.other_ca.write_bytes(_signed("another", other_key, by=other_key))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    made.server.write_bytes(key.private_bytes(_PEM, *form) + _signed("server", key, by=ca_key, issuer="lab"))
    made.client.write_bytes(_signed("client", client_key, by=ca_key, issuer="lab"))
    made.client_key.write_bytes(client_key.private_bytes(_PEM, *form))
    made.client_key.chmod(0o600)
    return made


def _signed(name: str, key: ec.EllipticCurvePrivateKey, *, by: ec.EllipticCurvePrivateKey, issuer: str = "") -> bytes:
    now = datetime.now(UTC)
    subject, signer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (name, issuer or name))
    certificate = x509.CertificateBuilder(
        issuer_name=signer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(days=1),
        not_valid_after=now + timedelta(days=2),
    ).add_extension(x509.BasicConstraints(ca=not issuer, path_length=None), critical=True)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return certificate.add_extension(here, critical=False).sign(by, hashes.SHA256()).public_bytes(_PEM)


@dataclass(kw_only=True)
class SecuredBroker(Broker):
    """With three listeners more: TLS, accounts, and both."""

    certificates: Certificates
    tls_port: int = field(default_factory=free_port)
    accounts_port: int = field(default_factory=free_port)
    both_port: int = field(default_factory=free_port)

    def _settings(self) -> dict[str, str]:
        settings = super()._settings()
        more = {
            "TLS": ("SSL", self.tls_port),
            "ACCOUNTS": ("SASL_PLAINTEXT", self.accounts_port),
            "BOTH": ("SASL_SSL", self.both_port),
        }
        for name, (protocol, port) in more.items():
            for key in ("listeners", "advertised.listeners"):
                settings[key] += f",{name}://127.0.0.1:{port}"
            settings["listener.security.protocol.map"] += f",{name}:{protocol}"
            prefix = f"listener.name.{name.lower()}"
            if "SSL" in protocol:
                settings[f"{prefix}.ssl.keystore.type"] = "PEM"
                settings[f"{prefix}.ssl.keystore.location"] = str(self.certificates.server)
            if "SASL" in protocol:
                login = f'{_LOGIN} required user_{USER}="{PASSWORD}";'
                settings[f"{prefix}.plain.sasl.jaas.config"] = login
        return settings | {"sasl.enabled.mechanisms": "PLAIN"}


@dataclass(kw_only=True)
class GuardedBroker(Broker):
    """Whose accounts may only do what an ACL allows; who comes by the plain listener is its administrator."""

    accounts_port: int = field(default_factory=free_port)
    accounts: tuple[str, ...] = ()

    def _settings(self) -> dict[str, str]:
        settings = super()._settings()
        for key in ("listeners", "advertised.listeners"):
            settings[key] += f",ACCOUNTS://127.0.0.1:{self.accounts_port}"
        settings["listener.security.protocol.map"] += ",ACCOUNTS:SASL_PLAINTEXT"
        known = " ".join(f'user_{name}="{PASSWORD}"' for name in self.accounts)
        return settings | {
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
def tls_in_front_of(port: int, certificates: Certificates, *, asks_clients: bool = False) -> Iterator[int]:
    """A port that leads to a PostgreSQL over TLS only, as 127.0.0.1: the wheel's own server is built without it.

    asks_clients: lets in only who shows a certificate of the CA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server)
    if asks_clients:
        context.load_verify_locations(certificates.ca)
        context.verify_mode = ssl.CERT_REQUIRED

    async def lead(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await client.readexactly(len(_SSL_REQUEST)) == _SSL_REQUEST:
                back.write(b"S")
                await back.start_tls(context)
                server, there = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_pass_on(client, there), _pass_on(server, back))
        back.close()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listener = asyncio.run_coroutine_threadsafe(asyncio.start_server(lead, "127.0.0.1", 0), loop).result()
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(listener.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _pass_on(one: asyncio.StreamReader, other: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await one.read(1 << 16):
            other.write(data)
            await other.drain()
    other.close()


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
            connection.recv(len(_SSL_REQUEST))
            connection.sendall(b"S")
            context.wrap_socket(connection, server_side=True).close()
