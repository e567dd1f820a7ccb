"""Writes what Tallystick is made of, as CycloneDX JSON: `make sbom` makes build/sbom.cdx.json from the locks.

Packages of Python, jars with their sha256, and base images. What only tests and the lab need has the scope `excluded`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from jars import read_locks
from packageurl import PackageURL
from pin_images import FILES, images_of

ROOT = Path(__file__).resolve().parent.parent
SBOM = ROOT / "build" / "sbom.cdx.json"


def make_sbom(root: Path) -> Bom:
    """List everything that the locks of this checkout name."""
    version = re.search(r'^version = "(.+)"$', (root / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version is not None
    bom = Bom(components=[*_packages(root), *_jars(), *_images(root)])
    whole = Component(name="tallystick", version=version[1], type=ComponentType.APPLICATION, bom_ref="tallystick")
    bom.metadata.component = whole
    bom.register_dependency(whole, bom.components)
    return bom


def _packages(root: Path) -> list[Component]:
    locks = ("runtime", "dev", "docs", "uv")
    runtime, *others = (_pins(root / "requirements" / f"{name}.lock") for name in locks)
    return [
        Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"pypi:{name}@{version}",
            purl=PackageURL("pypi", name=name, version=version),
            scope=ComponentScope.REQUIRED if (name, version) in runtime else ComponentScope.EXCLUDED,
        )
        for name, version in sorted(runtime.union(*others))
    ]


def _pins(lock: Path) -> set[tuple[str, str]]:
    """Name and version; some have another version on another system."""
    return set(re.findall(r"^([a-z0-9_.-]+)==([^\s;]+)", lock.read_text(), flags=re.MULTILINE))


def _jars() -> list[Component]:
    return [
        Component(
            group=jar.coordinates[0],
            name=jar.coordinates[1],
            version=jar.coordinates[2],
            type=ComponentType.LIBRARY,
            bom_ref=f"{jar.configuration}:{':'.join(jar.coordinates)}",
            purl=PackageURL("maven", *jar.coordinates),
            scope=ComponentScope.REQUIRED if jar.configuration == "spark" else ComponentScope.EXCLUDED,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)],
        )
        for jar in read_locks()
    ]


def _images(root: Path) -> list[Component]:
    images = {image for name in FILES for image in images_of((root / name).read_text())}
    return [
        Component(
            name=image.name,
            version=image.tag,
            type=ComponentType.CONTAINER,
            bom_ref=f"image:{image.name}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=image.digest.partition(":")[2])]
            if image.digest
            else (),
        )
        for image in sorted(images)
    ]


def main() -> int:
    """Write the file and say how much is in it."""
    bom = make_sbom(ROOT)
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n")
    print(f"{SBOM.relative_to(ROOT)}: {len(bom.components)} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())
