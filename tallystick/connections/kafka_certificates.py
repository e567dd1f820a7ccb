"""A Kafka client's certificate and key, from wherever a connection has them, in the one form that both readers take.

librdkafka reads the settings itself. Python's ssl takes files alone, and Java PKCS#8 alone, so both get them from here.
"""

import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from tallystick.connections.connections import ConnectionNotGiven

PROBE = "probe"
"""librdkafka's word for the usual places of a system's CAs, which the other clients look in by themselves."""

_PEM, _PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


@dataclass(frozen=True)
class ClientCertificate:
    """A chain in PEM, the client's own first, and its key."""

    chain: str
    key: PrivateKeyTypes = field(repr=False)

    def key_pem(self, password: str = "") -> str:
        """Write the key in PEM, PKCS#8; encrypted where there is a password."""
        how = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        return self.key.private_bytes(_PEM, _PKCS8, how).decode()


def client_certificate(settings: Mapping[str, str]) -> ClientCertificate | None:
    """Read the client's certificate; None where the connection has none. Raises ConnectionNotGiven."""
    if "ssl.keystore.location" in settings:
        return _of_keystore(settings)
    chain, key = (_text(settings, f"ssl.{part}") for part in ("certificate", "key"))
    if chain is None or key is None:
        return None
    password = settings.get("ssl.key.password")
    try:
        read = serialization.load_pem_private_key(key, password.encode() if password else None)
    except (ValueError, TypeError):
        raise ConnectionNotGiven(
            f"a Kafka connection's {_named(settings, 'ssl.key')}: no key that can be read; "
            "expected one in PEM, and ssl.key.password to be its own where it is encrypted"
        ) from None
    return ClientCertificate(chain.decode(), read)


def load_client_certificate(context: ssl.SSLContext, found: ClientCertificate) -> None:
    """Let a context show it. Python reads files alone, so it stands encrypted in a private one while it is read.

    Raises ConnectionNotGiven where the key is not the certificate's.
    """
    password = secrets.token_urlsafe(32)
    with NamedTemporaryFile("w", suffix=".pem") as file:  # readable by this user alone
        file.write(found.key_pem(password) + found.chain)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=password)
        except ssl.SSLError as error:
            raise ConnectionNotGiven(
                f"a Kafka connection's client certificate and key do not fit ({error.reason}); expected the "
                "certificate of this key, in PEM, and behind it those of its CAs"
            ) from None


def load_cas(context: ssl.SSLContext, settings: Mapping[str, str], prefix: str) -> None:
    """Let a context believe the CAs of `<prefix>.ca.location` or `.ca.pem`; without them the system's.

    Raises ConnectionNotGiven.
    """
    name, text = f"{prefix}.ca.location", settings.get(f"{prefix}.ca.pem")
    path = settings.get(name, PROBE)
    if text is None and path == PROBE:
        context.load_default_certs()
        return
    wanted = f"expected the certificates of its CAs there, in PEM; correct {name}, or put the file there"
    try:
        context.load_verify_locations(cafile=None if text else path, cadata=text)
    except ssl.SSLError:
        said = f"{prefix}.ca.pem" if text else f"{name}: {path}"
        raise ConnectionNotGiven(f"a Kafka connection's {said} has no certificate; {wanted}") from None
    except OSError as error:
        raise ConnectionNotGiven(f"a Kafka connection's {name}: {path}: {error.strerror}; {wanted}") from None


def _of_keystore(settings: Mapping[str, str]) -> ClientCertificate:
    from cryptography.hazmat.primitives.serialization import pkcs12  # X.509 as a whole: for keystores alone

    path, password = settings["ssl.keystore.location"], settings.get("ssl.keystore.password", "")
    try:
        key, own, others = pkcs12.load_key_and_certificates(_bytes_of(path, "ssl.keystore.location"), password.encode())
    except ValueError:
        key, own, others = None, None, []
    if key is None or own is None:
        raise ConnectionNotGiven(
            f"a Kafka connection's ssl.keystore.location: {path}: no certificate and key that can be read; "
            "expected them there in PKCS#12, "
            "and ssl.keystore.password to be the file's own"
        )
    return ClientCertificate("".join(one.public_bytes(_PEM).decode() for one in (own, *others)), key)


def _text(settings: Mapping[str, str], name: str) -> bytes | None:
    if f"{name}.pem" in settings:
        return settings[f"{name}.pem"].encode()
    path = settings.get(f"{name}.location")
    return _bytes_of(path, f"{name}.location") if path else None


def _bytes_of(path: str, name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConnectionNotGiven(
            f"a Kafka connection's {name}: {path}: {error.strerror}; correct {name}, or put the file there"
        ) from None


def _named(settings: Mapping[str, str], name: str) -> str:
    path = settings.get(f"{name}.location")
    return f"{name}.location: {path}" if path else f"{name}.pem"
