"""On-call's receiver: takes what is posted to it and appends it to a file, one JSON line each.

Answers 202 as PagerDuty does. Runs in a thread of the lab, on 127.0.0.1. Sends nothing on.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lab.servers.ports import free_port


@dataclass(frozen=True, kw_only=True)
class Pager:
    """A running receiver: where to post, and what came."""

    address: str
    file: Path

    def pages(self) -> list[dict[str, Any]]:
        """Read all pages so far, oldest first."""
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []


@contextmanager
def start_pager(file: Path, *, port: int | None = None) -> Iterator[Pager]:
    """Take pages for the length of a block."""
    port = port or free_port()
    file.parent.mkdir(parents=True, exist_ok=True)
    one_at_a_time = threading.Lock()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            with one_at_a_time, file.open("a") as lines:
                lines.write(json.dumps(json.loads(body)) + "\n")
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep the lab's output for the lab."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    thread = threading.Thread(target=server.serve_forever, name="lab-pager", daemon=True)
    thread.start()
    try:
        yield Pager(address=f"http://127.0.0.1:{port}/pages", file=file)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
