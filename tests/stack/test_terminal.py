"""The command line in a real terminal (a pty), and in a pipe, on a real store."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sqlalchemy import Engine

from lab.servers.process import REPOSITORY
from tallystick.model.finding_names import Doubt
from tallystick.model.verdict import Verdict

SECONDS_MAX = 120
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")
CODE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
INTERRUPT = b"\x03"
_IN_TERMINAL = 'exec <"$0" >"$0" 2>&1; printf .; exec "$@"'
"""The first terminal that a session's leader opens is its own, so Ctrl-C reaches it."""


@pytest.fixture(autouse=True)
def environment(store_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", store_dsn)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS", "LINES", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def two_runs(store: Engine, books: Any) -> None:
    """Cut 0 is matched, 1 broken."""
    found = books.missing("ev-7", amount_minor=1250, currency="EUR")
    books.commit(store, books.result(0))
    books.commit(store, books.result(1, verdict=Verdict.BROKEN, breaks=(found,), items=(books.item(found, n=1),)))


class Terminal:
    """A process in a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], keyboard: int) -> None:
        self.process, self._keyboard = process, keyboard
        self.text = ""

    def type(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def read_until(self, words: str) -> None:
        """Wait until the screen was told this."""
        give_up = time.monotonic() + SECONDS_MAX
        while words not in CODE.sub("", self.text):
            assert time.monotonic() < give_up and self._read(), self.text

    def read_to_end(self) -> int:
        """Its exit code."""
        while self._read():
            pass
        return self.process.wait(SECONDS_MAX)

    def _read(self) -> bool:
        try:
            read = os.read(self._keyboard, 65_536)
        except OSError:  # Linux says so when the last process has closed the terminal
            return False
        self.text += read.decode(errors="replace")
        return bool(read)


@contextmanager
def terminal(*arguments: str, width: int) -> Iterator[Terminal]:
    """tallystick in a terminal of this width."""
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    command = ["sh", "-c", _IN_TERMINAL, os.ttyname(screen), sys.executable, "-m", "tallystick", *arguments]
    # pytest loads readline, which puts a width into the C library's environment that os.environ does not show
    process = subprocess.Popen(command, start_new_session=True, env=dict(os.environ))
    opened_by_it = os.read(keyboard, 1)
    assert opened_by_it == b"."
    os.close(screen)
    try:
        yield Terminal(process, keyboard)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)


def in_terminal(*arguments: str, width: int) -> str:
    with terminal(*arguments, width=width) as opened:
        opened.read_to_end()
        return opened.text.replace("\r\n", "\n")


def in_pipe(*arguments: str) -> str:
    command = [sys.executable, "-m", "tallystick", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX).stdout


def test_a_terminal_gets_colour_at_its_width_and_a_pipe_and_plain_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = in_terminal("show", "payouts/1", width=60)
    assert COLOUR.search(narrow)
    assert [line for line in CODE.sub("", narrow).splitlines() if len(line) > 60] == []
    piped = in_pipe("show", "payouts/1")
    assert "\x1b" not in piped
    assert in_terminal("show", "payouts/1", "--plain", width=60) == piped
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOUR.search(in_terminal("runs", width=80))


def test_watching_shows_the_books_and_a_run_that_comes_and_ends_on_ctrl_c(store: Engine, books: Any) -> None:
    with terminal("watch", width=80) as opened:
        opened.read_until("12.50 EUR")
        opened.read_until("BROKEN")
        books.commit(store, books.result(2, verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.VACUOUS_RUN,)))
        opened.read_until("payouts/2")
        opened.read_until("INCONCLUSIVE")
        opened.type(INTERRUPT)
        assert opened.read_to_end() == 0
    assert COLOUR.search(opened.text)
    assert opened.text.rindex("\x1b[?25h") > opened.text.rindex("\x1b[?25l")  # the cursor is back
    assert "interrupted" not in opened.text
    assert "Traceback" not in opened.text


@pytest.mark.parametrize("as_json", [False, True], ids=["lines", "json"])
def test_watching_in_a_pipe_writes_a_line_a_run_at_once(store: Engine, books: Any, as_json: bool) -> None:
    command = [sys.executable, "-m", "tallystick", "watch", *(["--json"] if as_json else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            first = process.stdout.readline()
            for n in (2, 3):
                books.commit(store, books.result(n))
            lines = [first, process.stdout.readline(), process.stdout.readline()]
            process.send_signal(signal.SIGINT)
            assert (process.wait(SECONDS_MAX), process.stdout.read(), process.stderr.read()) == (0, "", "")
        finally:
            process.kill()
    if as_json:
        documents = [json.loads(line) for line in lines]
        for document in documents:
            valid(document, "run.v1.json")
        assert [(one["run"], one["verdict"]) for one in documents] == [
            ("payouts/1", "BROKEN"),
            ("payouts/2", "MATCHED"),
            ("payouts/3", "MATCHED"),
        ]
    else:
        assert [line.rstrip("\n").split("  ")[1:5] for line in lines] == [
            ["payouts/1", "BROKEN", "1", "12.50 EUR"],
            ["payouts/2", "MATCHED", "0", "none"],
            ["payouts/3", "MATCHED", "0", "none"],
        ]


def test_what_is_printed_for_machines_is_what_its_schema_says() -> None:
    for line in json.loads(in_pipe("runs", "--json")):
        valid(line, "run.v1.json")
    run = json.loads(in_pipe("show", "payouts/1", "--json"))
    valid(run, "verdict.v1.json")
    valid(json.loads(in_pipe("explain", run["breaks"][0]["break_id"], "--json")), "story.v1.json")


def valid(document: Any, schema: str) -> None:
    """Raises ValidationError."""
    jsonschema.validate(document, json.loads((Path(REPOSITORY) / "docs" / "schemas" / schema).read_text()))
