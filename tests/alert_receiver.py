"""A receiver of alerts over real HTTP, which answers as it is told and keeps what came."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """answer: a status, or "reset" (closes the connection), "silence" (none), "dribble" (a byte now and then), "late"
    (takes the message, and answers when nobody waits any more).
    first_answers: what it answers before that, one for each request.

    asked: how often. taken: the JSON bodies it answered with 2xx; requests: path, headers and body of every one.
    """

    answer: int | str = 200
    first_answers: list[int | str] = field(default_factory=list)
    answer_headers: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    taken: list[Any] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.base}/hook?token=s3cret"

    @property
    def story(self) -> list[tuple[str, str]]:
        return [(message["action"], message["dedup_key"].rsplit("/", 1)[1]) for message in self.taken]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run one on a free port for the length of a block."""
    told = Receiver()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.asked += 1
            told.requests.append((self.path, {name.lower(): text for name, text in self.headers.items()}, body))
            answer = told.first_answers.pop(0) if told.first_answers else told.answer
            if answer == "reset":
                self.connection.close()
            elif answer == "silence":
                ended.wait(30)
            elif answer == "dribble":
                self._dribble()
            elif answer == "late":
                told.taken.append(json.loads(body))
                ended.wait(30)
            else:
                assert isinstance(answer, int)
                if answer < 300:
                    told.taken.append(json.loads(body))
                self.send_response(answer)
                for name, text in told.answer_headers.items():
                    self.send_header(name, text)
                self.end_headers()

        def _dribble(self) -> None:
            try:
                while not ended.wait(0.02):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n"[:1])
                    self.wfile.flush()
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield told
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
