"""The key that `trace -` reads is one line of stdin: a line end of either kind is no part of it."""

import io
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.store import engine
from tallystick.store.views import overview_store
from tallystick.tracing import trace_key


@pytest.fixture
def keys_asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let an empty store answer. Gives the keys that were asked for."""
    asked: list[str] = []
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", "postgresql://nobody@127.0.0.1:1/verdicts")
    stand_ins: list[tuple[Any, str, Callable[..., Any]]] = [
        (engine, "open_store", lambda _: SimpleNamespace()),
        (overview_store, "list_contracts", lambda _: ()),
        (trace_key, "newest_contracts", lambda *_: ()),
        (trace_key, "trace_key", lambda _, __, key, **___: asked.append(key) or ()),
    ]
    for module, name, stand_in in stand_ins:
        monkeypatch.setattr(module, name, stand_in)
    return asked


@pytest.mark.parametrize("line", [b"key", b"key\n", b"key\r\n", b"key\r\nnext\r\n"])
def test_a_line_end_is_no_part_of_the_key(line: bytes, keys_asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    as_python_opens_it = io.TextIOWrapper(io.BytesIO(line), encoding="utf-8", newline="\n")
    monkeypatch.setattr("sys.stdin", as_python_opens_it)
    app(["trace", "-"], standalone_mode=False)
    assert keys_asked == ["key"]


@pytest.mark.parametrize(
    ("line", "said"),
    [(b"\r\n", "got no key"), (b"a\xffb\n", "byte 1 is no UTF-8"), (b"a\0b\n", "stdin: got a NUL character")],
    ids=["empty", "no UTF-8", "NUL"],
)
def test_a_line_that_is_no_key_is_refused(line: bytes, said: str, keys_asked: list[str]) -> None:
    result = CliRunner().invoke(app, ["trace", "-"], input=line)
    assert (result.exit_code, keys_asked) == (2, [])
    assert said in re.sub(r"[\s│]+", " ", result.stderr)


def test_a_key_of_the_command_line_is_asked_as_it_is(keys_asked: list[str]) -> None:
    assert CliRunner().invoke(app, ["trace", "key\r"]).exit_code == 0
    assert keys_asked == ["key\r"]
