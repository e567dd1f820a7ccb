"""Servers that let in whom they know: a broker with TLS and accounts, and TLS in front of nothing."""

import ipaddress
import socket
import ssl
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

from lab.broker import Broker
from lab.ports import free_port

USER, PASSWORD = "reader", "the-r1ght-one"
_PEM = serialization.Encoding.PEM
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SSL_REQUEST = 8
"""Bytes by which libpq asks for TLS. Source: PostgreSQL manual, message formats, SSLRequest."""


@dataclass(frozen=True)
class Certificates:
    """Of a server on 127.0.0.1, its key before it; of the CA that signed it; and of one that signed nothing."""

    server: Path
    ca: Path
    other_ca: Path


def make_certificates(folder: Path) -> Certificates:
    """Write them, valid for some days."""
    made = Certificates(folder / "server.pem", folder / "ca.pem", folder / "other_ca.pem")
    ca_key, other_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    made.ca.write_bytes(_signed("lab", ca_key, by=ca_key))
    made.other_ca.write_bytes(_signed("another", other_key, by=other_key))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    made.server.write_bytes(key.private_bytes(_PEM, *form) + _signed("server", key, by=ca_key, issuer="lab"))
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
            connection.recv(_SSL_REQUEST)
            connection.sendall(b"S")
            context.wrap_socket(connection, server_side=True).close()
