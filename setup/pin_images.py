"""Writes the digest of each image's tag into Dockerfile and docker-compose.yml:
`make pin-images REGISTRY=https://HOST`.

A tag can be given to other bytes, a digest cannot. What is written is the SHA-256 of the manifest that the registry
sent, not what it says of it. Nothing is written where one image cannot be asked for.
Exit 0: all are pinned. 2: a registry does not answer, or says something else than a manifest.
Source: OCI Distribution Specification 1.1, pulling manifests; Docker's token authentication.
"""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
FILES = ("Dockerfile", "docker-compose.yml")

BUILT_HERE = "tallystick-airflow"
_IMAGE = re.compile(
    r"^(?P<before>FROM |\s*image: )(?P<name>[a-z0-9./-]+):(?P<tag>[\w.-]+)(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
    r"(?P<after> AS \w+)?$",
    flags=re.MULTILINE,
)
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


class NotPinned(Exception):
    """A registry did not give a manifest; the message names the image."""


@dataclass(frozen=True, order=True)
class Image:
    """A name and a tag, as a file has them; digest: the one beside them, or empty."""

    name: str
    tag: str
    digest: str = ""


def images_of(text: str) -> list[Image]:
    """Find the images that come from a registry, in their order."""
    found = [Image(at["name"], at["tag"], at["digest"] or "") for at in _IMAGE.finditer(text)]
    return [image for image in found if image.name != BUILT_HERE]


def pinned(text: str, digests: dict[tuple[str, str], str]) -> str:
    """Write the digest of (name, tag) behind each tag."""

    def replaced(at: re.Match[str]) -> str:
        digest = digests.get((at["name"], at["tag"]))
        return f"{at['before']}{at['name']}:{at['tag']}@{digest}{at['after'] or ''}" if digest else at[0]

    return _IMAGE.sub(replaced, text)


def resolve(image: Image, client: httpx.Client, registry: str) -> str:
    """Ask the registry for the manifest of a tag; give its SHA-256 as a digest. Raises NotPinned."""
    repository = image.name if "/" in image.name else f"library/{image.name}"
    url = f"{registry}/v2/{repository}/manifests/{image.tag}"
    asked = {"Accept": _MANIFESTS}
    try:
        answer = client.get(url, headers=asked)
        if answer.status_code == 401:
            token = _token(client, answer.headers.get("WWW-Authenticate", ""))
            answer = client.get(url, headers=asked | {"Authorization": f"Bearer {token}"})
        answer.raise_for_status()
    except (httpx.HTTPError, ValueError, KeyError) as error:
        raise NotPinned(f"{image.name}:{image.tag}: expected its manifest of {registry}, got: {error}") from error
    digest = f"sha256:{hashlib.sha256(answer.content).hexdigest()}"
    said = answer.headers.get("Docker-Content-Digest", digest)
    if said != digest or "schemaVersion" not in answer.text:
        raise NotPinned(f"{image.name}:{image.tag}: expected a manifest of digest {said}, got {digest}")
    return digest


def _token(client: httpx.Client, challenge: str) -> str:
    """A token for who is nobody in particular. Raises HTTPError, ValueError, KeyError."""
    given = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    answer = client.get(given.pop("realm"), params=given)
    answer.raise_for_status()
    return str(answer.json()["token"])


def main(arguments: list[str]) -> int:
    """Resolve every image by the registry that is named, then write every file."""
    if len(arguments) != 1:
        print("pin-images: expected the registry's address: make pin-images REGISTRY=https://HOST", file=sys.stderr)
        return 2
    registry = arguments[0].rstrip("/")
    texts = {name: (ROOT / name).read_text() for name in FILES}
    images = sorted({image for text in texts.values() for image in images_of(text)})
    try:
        with httpx.Client(timeout=20, follow_redirects=True) as client:
            digests = {(image.name, image.tag): resolve(image, client, registry) for image in images}
    except NotPinned as fault:
        print(f"pin-images: nothing was written: {fault}", file=sys.stderr)
        return 2
    for name, text in texts.items():
        (ROOT / name).write_text(pinned(text, digests))
    for image in images:
        digest = digests[image.name, image.tag]
        print(f"{image.name}:{image.tag} {digest}{'' if digest == image.digest else ' (new)'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
