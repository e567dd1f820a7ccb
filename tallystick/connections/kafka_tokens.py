"""Tokens of an identity provider, by which a client logs in with OAUTHBEARER: asked for, kept, and asked for anew.

For kafka-python, and for MSK also librdkafka; otherwise librdkafka and Java ask the same endpoint themselves. Source:
RFC 6749, 4.4; KIP-768.
"""

import base64
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from tallystick.connections.connections import MSK_IAM, ConnectionNotGiven, KafkaSettings
from tallystick.connections.kafka_certificates import load_cas
from tallystick.model.errors import TallystickError

_SECONDS_TO_ASK = 10.0
_RENEW_AT = 0.8
"""Of its life a token is used so much; as librdkafka does."""
_SECONDS_WITHOUT_WORD = 60.0
"""How long a token is kept whose endpoint does not say how long it is valid."""
_ANSWER_BYTES_MAX = 1 << 20
_REGION_OF_HOST = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d+)\.amazonaws\.com")

Asked = tuple[str, float]
"""A token, and the time at which it ends, in seconds since the epoch."""


class TokenNotGiven(TallystickError, ConnectionError):
    """The identity provider gave no token. The message names its address and the client, never the secret."""

    retryable = True


class KeptTokens(AbstractTokenProvider):  # type: ignore[misc]
    """A token that is used until most of its life is over."""

    def __init__(self, ask: Callable[[], Asked], extensions: Mapping[str, str]) -> None:
        super().__init__()
        self._ask, self._extensions = ask, dict(extensions)
        self._text, self._renew_at = "", 0.0

    def token(self) -> str:
        """Return a valid token. Raises TokenNotGiven."""
        now = time.time()
        if now >= self._renew_at:
            self._text, ends_at = self._ask()
            self._renew_at = now + (ends_at - now) * _RENEW_AT
        return self._text

    def extensions(self) -> dict[str, str]:
        """Return what is said beside the token."""
        return self._extensions


def tokens_of(kafka: KafkaSettings) -> KeptTokens:
    """Tokens of a connection that logs in by them, the same for all clients of a process. Asks nothing yet.

    Raises ConnectionNotGiven.
    """
    return _tokens_of(kafka.mechanism, tuple(sorted(kafka.settings.items())))


@cache
def _tokens_of(mechanism: str, given: tuple[tuple[str, str], ...]) -> KeptTokens:
    settings = dict(given)
    if mechanism == MSK_IAM:
        sign = msk_signer(settings["bootstrap.servers"])
        return KeptTokens(lambda: sign(""), {})
    return KeptTokens(lambda: ask_endpoint(settings), extensions_of(settings))


def extensions_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Read sasl.oauthbearer.extensions: key=value, a comma between two. Raises ConnectionNotGiven."""
    pairs = [pair.partition("=") for pair in settings.get("sasl.oauthbearer.extensions", "").split(",") if pair]
    if not all(sign for _, sign, _ in pairs):
        raise ConnectionNotGiven("sasl.oauthbearer.extensions: expected key=value, with a comma between two")
    return {key.strip(): value.strip() for key, _, value in pairs}


def ask_endpoint(settings: Mapping[str, str]) -> Asked:
    """Ask the token endpoint of a connection for one token. Raises TokenNotGiven, ConnectionNotGiven.

    No redirect is followed: the secret goes to the address that the connection names, and nowhere else.
    """
    import httpx  # which a client without tokens needs not

    url = settings["sasl.oauthbearer.token.endpoint.url"]
    client, secret = settings["sasl.oauthbearer.client.id"], settings["sasl.oauthbearer.client.secret"]
    form = {"grant_type": "client_credentials"}
    if scope := settings.get("sasl.oauthbearer.scope"):
        form["scope"] = scope
    account = base64.b64encode(f"{client}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {account}", "Accept": "application/json", "Accept-Encoding": "identity"}
    try:
        with (
            httpx.Client(verify=_context(settings), timeout=_SECONDS_TO_ASK, follow_redirects=False) as asking,
            asking.stream("POST", url, data=form, headers=headers) as answer,
        ):
            status, said = answer.status_code, _beginning(answer.iter_raw())
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise TokenNotGiven(_silence(url, _of_system(error))) from None
    if 300 <= status < 400:
        raise TokenNotGiven(
            f"the token endpoint {url} redirects ({status}), and the secret goes to no other address than the "
            "connection's; set sasl.oauthbearer.token.endpoint.url to the address that it redirects to"
        )
    if not 200 <= status < 300:
        raise TokenNotGiven(_refusal(url, client, status, said))
    return _token_in(said, url)


def _context(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_cas(context, settings, "https")
    return context


def _beginning(chunks: Iterator[bytes]) -> bytes:
    """Return the answer up to its bound. Raises TimeoutError for one that dribbles."""
    said, deadline = b"", time.monotonic() + _SECONDS_TO_ASK
    for chunk in chunks:
        said += chunk
        if len(said) >= _ANSWER_BYTES_MAX:
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"no whole answer within {_SECONDS_TO_ASK:.0f} s")
    return said[:_ANSWER_BYTES_MAX]


def _of_system(error: BaseException) -> BaseException:
    """Return the system's own error behind that of httpx, which hides where it came from; else that of httpx."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, OSError):
        behind = behind.__cause__ or behind.__context__
    return behind or error


def _refusal(url: str, client: str, status: int, answer: bytes) -> str:
    """What the endpoint says no with; its `error` is a code of RFC 6749, all else may be a page."""
    code = _object(answer).get("error")
    said = f"{status} {code}" if isinstance(code, str) and re.fullmatch(r"[\w.-]{1,64}", code) else str(status)
    if status >= 500:
        return f"the token endpoint {url} is out of order ({said}); have it looked at"
    return (
        f"the token endpoint {url} refuses client {client} ({said}); correct sasl.oauthbearer.client.id, "
        ".client.secret and .scope, or have the client made there"
    )


def _silence(url: str, reason: BaseException) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"the token endpoint {url} is not proven ({reason.verify_message}); let https.ca.location name the CA that "
            "signed its certificate, and the endpoint's URL the name that it has"
        )
    said = getattr(reason, "strerror", None) or str(reason)
    return (
        f"the token endpoint {url} does not answer ({said}); correct sasl.oauthbearer.token.endpoint.url, start the "
        "identity provider, or let this host through to it"
    )


def _token_in(said: bytes, url: str) -> Asked:
    answer = _object(said)
    token, seconds = answer.get("access_token"), answer.get("expires_in", _SECONDS_WITHOUT_WORD)
    if not isinstance(token, str) or not token or not isinstance(seconds, int | float):
        raise TokenNotGiven(
            f"the token endpoint {url} answers without an access_token; correct sasl.oauthbearer.token.endpoint.url"
        )
    return token, time.time() + seconds


def _object(said: bytes) -> dict[str, Any]:
    try:
        found = json.loads(said)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def msk_signer(servers: str) -> Callable[[str], Asked]:
    """Return what signs a token for MSK, as librdkafka calls it. Raises ConnectionNotGiven."""
    region = _region(servers)
    try:
        # An extra, which brings all of Amazon's client.
        from aws_msk_iam_sasl_signer.MSKAuthTokenProvider import generate_auth_token
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise ConnectionNotGiven(
            "a Kafka connection has sasl.mechanism=AWS_MSK_IAM, and aws_msk_iam_sasl_signer is not installed here: "
            "expected it from `pip install 'tallystick[msk]'`; "
            "Spark needs the jar aws-msk-iam-auth beside its others, too"
        ) from None

    def sign(_: str) -> Asked:
        try:
            token, ends_at_ms = generate_auth_token(region)
        except (AttributeError, ValueError, BotoCoreError) as fault:
            # Where nobody gives it an account, the signer asks None for its key.
            why = f" ({fault})" if isinstance(fault, BotoCoreError) else ""
            raise TokenNotGiven(
                f"this process has no account at AWS that a token for MSK could be signed with{why}; "
                "give it one as for any client of AWS: the role of its pod or machine, or AWS_PROFILE"
            ) from fault
        return token, ends_at_ms / 1000

    return sign


def _region(servers: str) -> str:
    found = _REGION_OF_HOST.search(servers)
    region = found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise ConnectionNotGiven(
            "a Kafka connection has sasl.mechanism=AWS_MSK_IAM, and bootstrap.servers names no region; "
            "expected AWS_REGION in the environment"
        )
    return region
