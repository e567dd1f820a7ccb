"""Holes in locked packages are found by the real pip-audit, here of a server that answers as OSV does."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import audit
import pytest

LOCK = "six==1.17.0 \\\n    --hash=sha256:4721f391ed90541fddacab5896cf9fbc1ac4c2f5b5bc3a9e6a2ab4a8c4bb9cf2\n"
HOLES = {"jinja2": "PYSEC-2019-217", "six": "PYSEC-2099-1"}


class Osv(BaseHTTPRequestHandler):
    """Knows of holes in these packages."""

    knows: tuple[str, ...] = ()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = asked["package"]["name"]
        body = json.dumps({"vulns": [self.hole(name)]} if name in self.knows else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def hole(name: str) -> dict[str, Any]:
        ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}]
        affected = [{"package": {"name": name, "ecosystem": "PyPI"}, "ranges": ranges}]
        return {"id": HOLES[name], "summary": "a hole", "affected": affected, "published": "2019-04-08T00:00:00Z"}

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def osv() -> Iterator[list[str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Osv)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield ["--osv-url", f"http://127.0.0.1:{server.server_port}/v1/query"]
    server.shutdown()
    server.server_close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "requirements").mkdir()
    for lock in audit.LOCKS:
        (tmp_path / lock).write_text(LOCK)
    return tmp_path


@pytest.mark.parametrize(("knows", "code"), [(("jinja2",), 0), (("jinja2", "six"), 1)])
def test_a_locked_package_with_a_hole_is_named_and_one_without_is_not(
    osv: list[str], root: Path, knows: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(Osv, "knows", knows)
    assert audit.main(osv, root=root) == code
    assert ("six 1.17.0: PYSEC-2099-1" in capsys.readouterr().out) is (code == 1)


def test_a_service_that_knows_no_hole_at_all_has_audited_nothing(osv: list[str], root: Path, capsys: Any) -> None:
    """As a mirror does that has the packages and not what is known of them."""
    assert audit.main(osv, root=root) == 3
    assert "NOT AUDITED" in capsys.readouterr().err


def test_a_service_that_does_not_answer_has_audited_nothing(root: Path, capsys: Any) -> None:
    assert audit.main(["--osv-url", "http://127.0.0.1:9/v1/query"], root=root) == 3
    assert "NOT AUDITED" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "accepted", "code"),
    [
        ({"six 1.17.0": ["A", "B"]}, {"A": "not called", "B": "not called"}, 0),
        ({"six 1.17.0": ["A", "B"]}, {"A": "not called"}, 1),
        ({}, {"A": "not called"}, 1),
    ],
    ids=["each has its reason", "one has none", "a reason for none"],
)
def test_an_advisory_is_let_pass_for_a_reason_and_only_while_it_is_there(
    found: dict[str, list[str]], accepted: dict[str, str], code: int, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "audit", lambda *_, **__: found)
    assert audit.main([], root=root, accepted=accepted) == code


@pytest.mark.parametrize(("audited", "code"), [(0, 0), (1, 1), (3, 0)], ids=["none", "a hole", "nobody to ask"])
def test_each_build_asks_before_its_tests_and_ends_where_a_hole_is(tmp_path: Path, audited: int, code: int) -> None:
    """The real script; make, and the Python that asks, only write down that they were called."""
    for folder in (".ci", ".venv/bin", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(audit.ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    for name, ends_with in ((".venv/bin/python", audited), ("bin/make", 0)):
        command = tmp_path / name
        command.write_text(f'#!/bin/sh\necho "$@" >> called\nexit {ends_with}\n')
        command.chmod(0o700)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run([tmp_path / ".ci" / "run"], env=os.environ | {"PATH": path}, capture_output=True, check=False)
    called = (tmp_path / "called").read_text().splitlines()
    behind = ["test", "simulate SCHEDULES=400 SEED=1"] if code == 0 else []
    assert (done.returncode, called[0], called[4:]) == (code, "packages", ["setup/audit.py", *behind])
    of_tests, lint, setup = sorted(called[1:4])  # beside each other, in any order
    assert (of_tests.split()[0], lint, setup) == ("browser-setup", "lint", "setup")


@pytest.mark.parametrize("part", ["lint", "setup"])
def test_a_build_one_of_whose_parts_fails_says_so_and_tests_nothing(tmp_path: Path, part: str) -> None:
    """The real script, with a make that fails for that part alone."""
    for folder in (".ci", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(audit.ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    make = tmp_path / "bin" / "make"
    make.write_text(f'#!/bin/sh\necho "$@" >> called\n[ "$1" != {part} ] || {{ echo why it fails; exit 2; }}\n')
    make.chmod(0o700)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run([tmp_path / ".ci" / "run"], env=os.environ | {"PATH": path}, capture_output=True, check=False)
    assert (done.returncode, b"why it fails" in done.stdout) == (1, True)
    assert "test" not in (tmp_path / "called").read_text().splitlines()
