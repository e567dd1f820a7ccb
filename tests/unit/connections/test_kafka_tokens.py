"""What an identity provider answers: a token, or a reason that is told in a sentence without the secret."""

import base64
import itertools
import json
import os
import re
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from lab.doors.certificates import make_certificates
from tallystick.connections import kafka_tokens
from tallystick.connections.connections import ConnectionNotGiven, KafkaSettings
from tallystick.connections.kafka_tokens import TokenNotGiven, ask_endpoint

SECRET = "s3cret"


@dataclass
class Endpoint:
    """A token endpoint that answers as it is told to."""

    code: int = 200
    body: str = json.dumps({"access_token": "a.b.c", "expires_in": 300})
    location: str = ""
    seen: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def settings(self) -> dict[str, str]:
        return {
            "sasl.oauthbearer.client.id": "reader",
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{self.port}/token",
        }


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with answering() as told:
        yield told


@contextmanager
def answering(context: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """Run one on a free port, behind TLS where there is a context."""
    told = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """A client that follows a 302 asks so."""
            told.seen.append((self.headers["Authorization"], self.path))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(told.body.encode())

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            told.seen.append((self.headers["Authorization"], form))
            self.send_response(told.code)
            if told.location:
                self.send_header("Location", told.location)
            self.end_headers()
            self.wfile.write(told.body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_port
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refusal(settings: dict[str, str]) -> str:
    with pytest.raises(TokenNotGiven) as raised:
        ask_endpoint(settings)
    assert SECRET not in str(raised.value)
    assert raised.value.retryable
    return str(raised.value)


def test_a_client_is_given_a_token_for_what_it_asks(endpoint: Endpoint) -> None:
    token, ends_at = ask_endpoint(endpoint.settings | {"sasl.oauthbearer.scope": "kafka orders"})
    assert token == "a.b.c"
    ((account, form),) = endpoint.seen
    assert base64.b64decode(account.removeprefix("Basic ")).decode() == f"reader:{SECRET}"
    assert form == "grant_type=client_credentials&scope=kafka+orders"
    endpoint.body = json.dumps({"access_token": "a.b.c"})
    assert ask_endpoint(endpoint.settings)[1] < ends_at


@pytest.mark.parametrize(
    ("code", "body", "says"),
    [
        (401, '{"error": "invalid_client"}', "refuses client reader (401 invalid_client); correct sasl.oauthbearer"),
        (400, '{"error": "<b>s3cret</b>"}', "refuses client reader (400); correct"),
        (403, "a page", "refuses client reader (403); correct"),
        (503, "", "is out of order (503); have it looked at"),
        (200, "a page", "answers without an access_token"),
        (200, '{"access_token": ""}', "answers without an access_token"),
        (200, '{"access_token": "a", "expires_in": "soon"}', "answers without an access_token"),
        (200, "[]", "answers without an access_token"),
    ],
)
def test_an_endpoint_that_gives_no_token_is_told_by_its_answer(
    endpoint: Endpoint, code: int, body: str, says: str
) -> None:
    endpoint.code, endpoint.body = code, body
    assert says in refusal(endpoint.settings)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_the_secret_goes_to_no_other_address_where_an_endpoint_redirects(endpoint: Endpoint, code: int) -> None:
    with answering() as elsewhere:
        endpoint.code, endpoint.location = code, f"http://localhost:{elsewhere.port}/other"
        said = refusal(endpoint.settings)
        assert elsewhere.seen == []
    assert f"/token redirects ({code})" in said
    assert "set sasl.oauthbearer.token.endpoint.url to the address that it redirects to" in said


def test_an_endless_answer_is_read_up_to_its_bound_and_no_longer_than_its_time(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_tokens, "_ANSWER_BYTES_MAX", 1 << 10)
    endpoint.body = " " * (1 << 10) + endpoint.body
    assert "answers without an access_token" in refusal(endpoint.settings)
    monkeypatch.setattr(kafka_tokens, "_ANSWER_BYTES_MAX", 1 << 20)
    assert ask_endpoint(endpoint.settings)[0] == "a.b.c"
    clock = itertools.count(0, 11)
    monkeypatch.setattr(kafka_tokens, "time", SimpleNamespace(time=time.time, monotonic=lambda: next(clock)))
    assert "/token does not answer (no whole answer within 10 s); correct" in refusal(endpoint.settings)


def test_an_endpoint_whose_certificate_no_ca_here_has_signed_is_not_proven(tmp_path: Path) -> None:
    ours = make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ours.server)
    with answering(context) as endpoint:
        settings = endpoint.settings | {
            "sasl.oauthbearer.token.endpoint.url": f"https://127.0.0.1:{endpoint.port}/token",
            "https.ca.location": str(ours.ca),
        }
        assert ask_endpoint(settings)[0] == "a.b.c"
        assert "/token is not proven (" in refusal(settings | {"https.ca.location": str(ours.other_ca)})


def test_an_endpoint_that_is_down_is_named(endpoint: Endpoint) -> None:
    nowhere = endpoint.settings | {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:9/token"}
    assert "http://127.0.0.1:9/token does not answer (Connection refused); correct" in refusal(nowhere)


def test_a_token_is_used_for_most_of_its_life_and_then_asked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(kafka_tokens, "time", SimpleNamespace(time=lambda: clock[0]))
    asked: list[float] = []

    def ask() -> tuple[str, float]:
        asked.append(clock[0])
        return f"token {len(asked)}", clock[0] + 100

    tokens = kafka_tokens.KeptTokens(ask, {"a": "b"})
    assert [tokens.token(), tokens.token(), tokens.extensions()] == ["token 1", "token 1", {"a": "b"}]
    clock[0] += 79
    assert tokens.token() == "token 1"
    clock[0] += 1
    assert tokens.token() == "token 2"


MSK = {
    "bootstrap.servers": "b-1.shop.abc.c2.kafka.eu-west-1.amazonaws.com:9098",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
}


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process has no account at AWS; what signs is Amazon's own package, which asks nobody."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    kafka_tokens._tokens_of.cache_clear()


@pytest.fixture
def account(nobody: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that AWS does not know: to sign needs a key, and no network."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")


def signed_for(token: str) -> tuple[str, str]:
    """The server that a token is for, and the account that signed it: key, day, region, service."""
    address = urlsplit(base64.urlsafe_b64decode(token + "===").decode())
    return address.netloc, parse_qs(address.query)["X-Amz-Credential"][0]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("mechanism", ["AWS_MSK_IAM", "OAUTHBEARER"])
def test_msk_is_logged_in_to_by_a_token_that_is_signed_here(mechanism: str) -> None:
    kafka = KafkaSettings(MSK | {"sasl.mechanism": mechanism})
    told = kafka.for_confluent()
    assert told["sasl.mechanism"] == "OAUTHBEARER"
    token, ends_at = told["oauth_cb"]("")
    server, signer = signed_for(token)
    assert server == "kafka.eu-west-1.amazonaws.com"
    assert re.fullmatch(r"AKIDEXAMPLE/\d{8}/eu-west-1/kafka-cluster/aws4_request", signer)
    assert 800 < ends_at - time.time() <= 900
    python = kafka.for_kafka_python()
    assert python["sasl_mechanism"] == "OAUTHBEARER"
    assert signed_for(python["sasl_oauth_token_provider"].token())[0] == server
    java = kafka.for_spark()
    assert java["kafka.sasl.mechanism"] == "AWS_MSK_IAM"
    assert java["kafka.sasl.jaas.config"] == "software.amazon.msk.auth.iam.IAMLoginModule required;"


@pytest.mark.usefixtures("account")
def test_msk_behind_another_name_is_asked_for_in_the_environments_region(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = KafkaSettings(MSK | {"bootstrap.servers": "kafka.shop.example:9098"})
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConnectionNotGiven, match="names no region; expected AWS_REGION"):
        kafka.for_confluent()
    monkeypatch.setenv("AWS_REGION", "us-gov-west-1")
    assert signed_for(kafka.for_confluent()["oauth_cb"]("")[0])[0] == "kafka.us-gov-west-1.amazonaws.com"


@pytest.mark.usefixtures("nobody")
def test_a_process_without_an_account_at_aws_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = KafkaSettings(MSK)
    with pytest.raises(TokenNotGiven, match="this process has no account at AWS that a token for MSK could be signed"):
        kafka.for_kafka_python()
    monkeypatch.setenv("AWS_PROFILE", "shop")
    with pytest.raises(TokenNotGiven, match=r"\(The config profile \(shop\) could not be found\); give it one"):
        kafka.for_kafka_python()


def test_without_amazons_package_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)
    kafka_tokens._tokens_of.cache_clear()
    with pytest.raises(ConnectionNotGiven, match=r"`pip install 'tallystick\[msk\]'`; Spark needs the jar"):
        KafkaSettings(MSK).for_kafka_python()
