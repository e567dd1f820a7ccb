"""A client's certificate in every form that a connection may have it, and a login by token."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12

PASSWORD = "s3cret-of-the-key"
TLS = {"bootstrap.servers": "broker:9093", "security.protocol": "SSL"}
_PEM, _OLD = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "reader")])
CERTIFICATE = (
    x509.CertificateBuilder(NAME, NAME, KEY.public_key(), 1)
    .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
    .not_valid_after(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=36_500))
    .sign(KEY, hashes.SHA256())
)
CHAIN = CERTIFICATE.public_bytes(_PEM).decode()
OLD_KEY = KEY.private_bytes(_PEM, _OLD, serialization.BestAvailableEncryption(PASSWORD.encode())).decode()

OIDC = {
    "bootstrap.servers": "b:1",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "reader",
    "sasl.oauthbearer.client.secret": 's3"cret',
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.extensions": "logicalCluster=lkc-1, identityPoolId=pool-2",
    "sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
    "https.ca.pem": CHAIN,
}


def forms_in(folder: Path) -> dict[str, dict[str, str]]:
    """Write the files that some name, and return the settings by form."""
    certificate, key, store = (folder / name for name in ("c.pem", "k.pem", "k.p12"))
    certificate.write_text(CHAIN)
    key.write_text(OLD_KEY)
    encrypted = serialization.BestAvailableEncryption(PASSWORD.encode())
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"reader", KEY, CERTIFICATE, None, encrypted))
    files = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key), "ssl.key.password": PASSWORD}
    inline = {"ssl.certificate.pem": CHAIN, "ssl.key.pem": OLD_KEY, "ssl.key.password": PASSWORD}
    kept = {"ssl.keystore.location": str(store), "ssl.keystore.password": PASSWORD}
    return {"files": TLS | files, "inline": TLS | inline, "keystore": TLS | kept}
