"""Images are pinned by what a registry sent, here a real HTTP server that speaks a registry's manifest call."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pin_images
import pytest
from pin_images import FILES, Image, NotPinned, images_of, pinned, resolve

ROOT = Path(__file__).parents[3]
MANIFEST = json.dumps({"schemaVersion": 2, "manifests": []}).encode()
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
POSTGRES = Image("postgres", "18")


class Registry(BaseHTTPRequestHandler):
    """Gives a manifest of library/postgres:18 to who shows the token that it gives to everybody."""

    said = DIGEST
    body = MANIFEST

    def do_GET(self) -> None:
        place = f"http://127.0.0.1:{self.server.server_port}"
        if self.path == "/token?service=here&scope=repository%3Alibrary%2Fpostgres%3Apull":
            self.answer(200, b'{"token": "t0ken"}')
        elif self.path != "/v2/library/postgres/manifests/18":
            self.answer(404, b"{}")
        elif self.headers["Authorization"] != "Bearer t0ken":
            challenge = f'Bearer realm="{place}/token",service="here",scope="repository:library/postgres:pull"'
            self.answer(401, b"{}", **{"WWW-Authenticate": challenge})
        elif "application/vnd.oci.image.index.v1+json" not in self.headers["Accept"]:
            self.answer(406, b"{}")
        else:
            self.answer(200, self.body, **{"Docker-Content-Digest": self.said})

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_tag_is_pinned_by_the_hash_of_the_manifest_that_came(registry: str) -> None:
    with httpx.Client() as client:
        assert resolve(POSTGRES, client, registry) == DIGEST


@pytest.mark.parametrize("image", [Image("postgres", "17"), Image("apache/kafka", "18")])
def test_a_tag_that_the_registry_does_not_have_is_named(registry: str, image: Image) -> None:
    with httpx.Client() as client, pytest.raises(NotPinned, match=f"^{image.name}:{image.tag}: expected its manifest"):
        resolve(image, client, registry)


@pytest.mark.parametrize(
    ("said", "body"), [("sha256:" + "0" * 64, MANIFEST), (f"sha256:{hashlib.sha256(b'{}').hexdigest()}", b"{}")]
)
def test_what_is_no_manifest_or_another_one_than_was_said_pins_nothing(
    registry: str, said: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Registry, "said", said)
    monkeypatch.setattr(Registry, "body", body)
    with httpx.Client() as client, pytest.raises(NotPinned, match="expected a manifest of digest"):
        resolve(POSTGRES, client, registry)


def test_where_one_image_cannot_be_asked_for_no_file_is_written(
    registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Dockerfile's is there, the compose file's is not."""
    texts = {"Dockerfile": "FROM postgres:18\n", "docker-compose.yml": "    image: apache/kafka:4.3.1\n"}
    monkeypatch.setattr(pin_images, "ROOT", tmp_path)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert (pin_images.main([]), pin_images.main([registry])) == (2, 2)
    assert {name: (tmp_path / name).read_text() for name in FILES} == texts
    assert "nothing was written: apache/kafka:4.3.1" in capsys.readouterr().err

    (tmp_path / "docker-compose.yml").write_text("    image: postgres:18\n    image: tallystick-airflow:3.3.2\n")
    assert pin_images.main([registry]) == 0
    assert (tmp_path / "Dockerfile").read_text() == f"FROM postgres:18@{DIGEST}\n"
    compose = (tmp_path / "docker-compose.yml").read_text()
    assert compose == f"    image: postgres:18@{DIGEST}\n    image: tallystick-airflow:3.3.2\n"


def test_a_pin_is_replaced_and_not_doubled() -> None:
    text = f"FROM apache/airflow:3.3.2-python3.11@sha256:{'a' * 64}\n"
    assert pinned(text, {("apache/airflow", "3.3.2-python3.11"): DIGEST}) == (
        f"FROM apache/airflow:3.3.2-python3.11@{DIGEST}\n"
    )


def test_the_name_of_a_stage_stays_behind_its_pin_and_is_no_image_itself() -> None:
    text = "FROM postgres:18 AS base\nFROM base AS wheel\nFROM base\n"
    assert images_of(text) == [POSTGRES]
    assert pinned(text, {("postgres", "18"): DIGEST}) == text.replace(":18", f":18@{DIGEST}")


def test_every_image_of_the_repository_is_seen() -> None:
    """So that none is left behind when a line is written in another way."""
    lines = [
        line
        for name in FILES
        for line in (ROOT / name).read_text().splitlines()
        if line.startswith("FROM apache/") or (line.strip().startswith("image:") and "tallystick-airflow" not in line)
    ]
    assert len(lines) == 4
    assert len([image for name in FILES for image in images_of((ROOT / name).read_text())]) == len(lines)
