"""A fake of a schema registry, for what no real one does on demand: GET /schemas/ids/ID, /subjects/NAME/versions/N.

It can ask for a password, speak TLS, be told what to answer, and count what it was asked. tests/stack has a real one.
"""

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class FakeRegistry:
    """schemas: by id. subjects: what others refer to, by name. status: of every answer, where it is not 200."""

    schemas: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    subjects: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    user: str = ""
    status: int = 200
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, authorization: str) -> tuple[int, Mapping[str, Any]]:
        self.asked.append(path)
        if self.status != 200:
            return self.status, {"error_code": self.status, "message": "as the test wants it"}
        if self.user and authorization != "Basic " + base64.b64encode(self.user.encode()).decode():
            return 401, {"error_code": 401, "message": "who are you"}
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["schemas", "ids"] and int(parts[2]) in self.schemas:
            return 200, self.schemas[int(parts[2])]
        if parts[0] == "subjects" and parts[1] in self.subjects:
            return 200, {"subject": parts[1], "version": 1, "id": 900, **self.subjects[parts[1]]}
        return 404, {"error_code": 40403, "message": "no such schema"}


@contextmanager
def fake_registry(*, certificate: str = "", **given: Any) -> Iterator[FakeRegistry]:
    """Run one. certificate: a file with it and its key, to speak TLS."""
    registry = FakeRegistry(**given)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization", ""))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    registry.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
