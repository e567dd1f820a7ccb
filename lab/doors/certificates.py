"""Certificates for servers on this machine and for their clients, by a CA of the lab; and by another, which nobody
believes.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM


CLIENT, STRANGER = "client", "stranger"


@dataclass(frozen=True)
class Certificates:
    """Of a server on 127.0.0.1, its key before it; of one elsewhere; of the CA that signed both; of another CA.

    clients: those that the CA signed; STRANGER is signed by the other one.
    """

    folder: Path

    @property
    def server(self) -> Path:
        return self.folder / "server.pem"

    @property
    def elsewhere(self) -> Path:
        """Return a server's certificate that is for another host."""
        return self.folder / "elsewhere.pem"

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def other_ca(self) -> Path:
        return self.folder / "other_ca.pem"

    @property
    def client(self) -> Path:
        return self.of(CLIENT)[0]

    @property
    def client_key(self) -> Path:
        return self.of(CLIENT)[1]

    def of(self, client: str) -> tuple[Path, Path]:
        """Return a client's certificate and its key, in PKCS#8."""
        return self.folder / f"{client}.pem", self.folder / f"{client}.pk8"


def make_certificates(folder: Path, *, clients: Sequence[str] = (CLIENT,)) -> Certificates:
    """Write them, valid for some days."""
    made = Certificates(folder)
    ca_key, other_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    made.ca.write_bytes(_signed("lab", ca_key, by=ca_key))
    made.other_ca.write_bytes(_signed("another", other_key, by=other_key))
    for path, host in ((made.server, _HERE), (made.elsewhere, x509.DNSName("broker.elsewhere.example"))):
        key = ec.generate_private_key(ec.SECP256R1())
        path.write_bytes(_in_pkcs8(key) + _signed("server", key, by=ca_key, issuer="lab", host=host))
    for name, signer, issuer in (
        *((client, ca_key, "lab") for client in clients),
        (STRANGER, other_key, "another"),
    ):
        key, (certificate, key_file) = ec.generate_private_key(ec.SECP256R1()), made.of(name)
        certificate.write_bytes(_signed(name, key, by=signer, issuer=issuer))
        key_file.touch(mode=0o600)
        key_file.write_bytes(_in_pkcs8(key))
    return made


_HERE = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def _in_pkcs8(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    by: ec.EllipticCurvePrivateKey,
    issuer: str = "",
    host: x509.GeneralName = _HERE,
) -> bytes:
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
    names = x509.SubjectAlternativeName([host])
    return certificate.add_extension(names, critical=False).sign(by, hashes.SHA256()).public_bytes(_PEM)
