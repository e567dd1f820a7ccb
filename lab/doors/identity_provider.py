"""A stand-in for an identity provider: over TLS it gives tokens to clients that know their secret, and brokers read the
public key from a file. OAuth 2.0 and JSON Web Tokens are as they are everywhere; it has no users, consent and pages.

Source: RFC 6749, 4.4 and 5; RFC 7519; RFC 7517.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from lab.doors.certificates import Certificates

AUDIENCE, SCOPE = "kafka", "kafka"
_KEY_ID = "lab-1"
_LIFE_SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class IdentityProvider:
    """Where it answers. keys: a file with the public key, as a JSON Web Key Set."""

    port: int
    keys: Path

    @property
    def issuer(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def token_url(self) -> str:
        return f"{self.issuer}/token"


@contextmanager
def identity_provider(
    folder: Path, certificates: Certificates, clients: Mapping[str, str]
) -> Iterator[IdentityProvider]:
    """Serve while the block runs. clients: id to secret."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    keys = folder / "keys.json"
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    keys.write_text(json.dumps({"keys": [public | {"kid": _KEY_ID, "alg": "RS256", "use": "sig"}]}))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(key, clients))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield IdentityProvider(port=server.server_port, keys=keys)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(key: rsa.RSAPrivateKey, clients: Mapping[str, str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
            client = self._client()
            if self.path != "/token":
                self._answer(404, {"error": "not_found"})
            elif client is None:
                self._answer(401, {"error": "invalid_client"})
            elif form.get("grant_type") != ["client_credentials"]:
                self._answer(400, {"error": "unsupported_grant_type"})
            elif not set(form.get("scope", [SCOPE])[0].split()) <= {SCOPE}:
                self._answer(400, {"error": "invalid_scope"})
            else:
                token = self._token(client)
                self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": _LIFE_SECONDS})

        def _client(self) -> str | None:
            kind, _, account = self.headers.get("Authorization", "").partition(" ")
            client, _, secret = base64.b64decode(account).decode().partition(":")
            return client if kind == "Basic" and secret and clients.get(client) == secret else None

        def _token(self, client: str) -> str:
            now = int(time.time())
            claims = {
                "iss": f"https://127.0.0.1:{self.connection.getsockname()[1]}",
                "sub": client,
                "aud": AUDIENCE,
                "scope": SCOPE,
                "iat": now,
                "exp": now + _LIFE_SECONDS,
            }
            return jwt.encode(claims, key, algorithm="RS256", headers={"kid": _KEY_ID})

        def _answer(self, code: int, body: Mapping[str, object]) -> None:
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
