"""The door that the reconciler comes in by: a listener of its own on each broker, which knows its two accounts and asks
each for its rights; and TLS before every PostgreSQL that it is told of.

The lab's own services, and whoever plants faults, keep to the plain listener, where they may do all. So what the
reconciler finds, in the log and in the ledger, it finds with nothing but what `tallystick grants` prints.
"""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from sqlalchemy import make_url

from lab.doors.acls import all_acls, grant
from lab.doors.certificates import Certificates, make_certificates
from lab.doors.identity_provider import AUDIENCE, SCOPE, IdentityProvider, identity_provider
from lab.doors.tls_front import tls_in_front_of
from lab.servers.ports import free_port

READER, EXECUTOR = "reader", "executor"
ACCOUNTS = (READER, EXECUTOR)
_KAFKAS = "org.apache.kafka.common.security"
_ITERATIONS = 4096  # the least that Kafka takes


class Security(StrEnum):
    """The proof that a client gives of itself; the broker always proves itself by its certificate."""

    SCRAM = "scram"
    MTLS = "mtls"
    OAUTH = "oauth"


@dataclass(frozen=True, kw_only=True)
class Door:
    """One for all servers of a stack. ports: one for each broker that there may be."""

    security: Security
    certificates: Certificates
    ports: tuple[int, ...]
    passwords: dict[str, str] = field(repr=False)
    provider: IdentityProvider | None = None
    _fronts: dict[int, int] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    @property
    def listener(self) -> str:
        """Return the name of the listener."""
        return self.security.upper()

    @property
    def protocol(self) -> str:
        return "SSL" if self.security is Security.MTLS else "SASL_SSL"

    @property
    def java_options(self) -> tuple[str, ...]:
        """Return what a broker's Java must be told before it reads keys from a file."""
        if self.provider is None:
            return ()
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.provider.keys.as_uri()}",)

    def broker_settings(self) -> dict[str, str]:
        """Return a broker's settings, beside its listener. Who comes by a plain listener administers it."""
        named = f"listener.name.{self.security}"
        settings = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            f"{named}.ssl.keystore.type": "PEM",
            f"{named}.ssl.keystore.location": str(self.certificates.server),
        }
        match self.security:
            case Security.SCRAM:
                return settings | {
                    f"{named}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                    f"{named}.scram-sha-512.sasl.jaas.config": f"{_KAFKAS}.scram.ScramLoginModule required;",
                }
            case Security.MTLS:
                return settings | {
                    f"{named}.ssl.client.auth": "required",
                    f"{named}.ssl.truststore.type": "PEM",
                    f"{named}.ssl.truststore.location": str(self.certificates.ca),
                    f"{named}.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
                }
            case Security.OAUTH:
                assert self.provider is not None
                login, validator = (
                    f"{_KAFKAS}.oauthbearer.{name}"
                    for name in ("OAuthBearerLoginModule", "OAuthBearerValidatorCallbackHandler")
                )
                return settings | {
                    f"{named}.sasl.enabled.mechanisms": "OAUTHBEARER",
                    f"{named}.oauthbearer.sasl.jaas.config": f"{login} required;",
                    f"{named}.oauthbearer.sasl.server.callback.handler.class": validator,
                    "sasl.oauthbearer.jwks.endpoint.url": self.provider.keys.as_uri(),
                    "sasl.oauthbearer.expected.audience": AUDIENCE,
                    "sasl.oauthbearer.expected.issuer": self.provider.issuer,
                }

    def client(self, account: str, *, brokers: int) -> dict[str, str]:
        """Return the connection of an account, as its owner would write it."""
        settings = {
            "bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self.ports[:brokers]),
            "security.protocol": self.protocol,
            "ssl.ca.location": str(self.certificates.ca),
        }
        match self.security:
            case Security.SCRAM:
                return settings | {
                    "sasl.mechanisms": "SCRAM-SHA-512",
                    "sasl.username": account,
                    "sasl.password": self.passwords[account],
                }
            case Security.MTLS:
                certificate, key = self.certificates.of(account)
                return settings | {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
            case Security.OAUTH:
                assert self.provider is not None
                return settings | {
                    "sasl.mechanisms": "OAUTHBEARER",
                    "sasl.oauthbearer.method": "oidc",
                    "sasl.oauthbearer.client.id": account,
                    "sasl.oauthbearer.client.secret": self.passwords[account],
                    "sasl.oauthbearer.scope": SCOPE,
                    "sasl.oauthbearer.token.endpoint.url": self.provider.token_url,
                    "https.ca.location": str(self.certificates.ca),
                }

    def make_accounts(self, bootstrap_servers: str) -> None:
        """Make them known to the brokers, where those keep them."""
        if self.security is not Security.SCRAM:
            return
        kept = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
        changes: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, kept, password.encode()) for name, password in self.passwords.items()
        ]
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        for done in admin.alter_user_scram_credentials(changes).values():
            done.result(30)

    def grant(self, bootstrap_servers: str, printed: str) -> None:
        """Apply what `tallystick grants` has printed for these accounts."""
        grant(AdminClient({"bootstrap.servers": bootstrap_servers}), *all_acls(printed))

    def over_tls(self, dsn: str) -> str:
        """Return the address of the same database behind TLS, whose certificate is to be for its host."""
        url = make_url(dsn)
        assert url.port is not None
        if url.port not in self._fronts:
            self._fronts[url.port] = self._open.enter_context(tls_in_front_of(url.port, self.certificates))
        asked = {"sslmode": "verify-full", "sslrootcert": str(self.certificates.ca)}
        there = url.set(port=self._fronts[url.port]).update_query_dict(asked)
        return there.render_as_string(hide_password=False)


@contextmanager
def open_door(security: Security, folder: Path, *, brokers: int) -> Iterator[Door]:
    """Make certificates and passwords in a folder, and what has to serve beside the brokers."""
    folder.mkdir(parents=True, exist_ok=True)
    certificates = make_certificates(folder, clients=ACCOUNTS)
    passwords = {account: secrets.token_urlsafe(18) for account in ACCOUNTS}
    with ExitStack() as stack:
        provider = (
            stack.enter_context(identity_provider(folder, certificates, passwords))
            if security is Security.OAUTH
            else None
        )
        yield Door(
            security=security,
            certificates=certificates,
            ports=tuple(free_port() for _ in range(brokers)),
            passwords=passwords,
            provider=provider,
            _open=stack,
        )
