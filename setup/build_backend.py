"""Builds the wheel and the source archive: setuptools' own, but the same bytes each time, and with an SBOM (PEP 770).

Times, owners and modes are fixed, since they say where something was built and not what it is. SOURCE_DATE_EPOCH, where
it is set, is the time of every file; otherwise a day is used that is the same everywhere.

The SBOM lies in the wheel's .dist-info/sboms/. It names the versions that the tests ran with, those of
requirements/runtime.lock; the ranges are in the metadata. The standard library writes it, so that a build needs nothing
but setuptools.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from setuptools import build_meta

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "runtime.lock"
SOME_DAY = "1580601600"
"""2020-02-02: a zip archive knows no time before 1980."""

Settings = Any
"""What a build front-end passes on to setuptools, as it is."""

get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
build_editable = build_meta.build_editable


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the .dist-info of the wheel, with the SBOM, and return its name."""
    name: str = build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
    sboms = Path(metadata_directory, name, "sboms")
    sboms.mkdir()
    document = json.dumps(sbom(Path(metadata_directory, name, "METADATA").read_text(), LOCK.read_text()), indent=1)
    (sboms / "tallystick.cdx.json").write_text(document + "\n")
    return name


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the wheel around that .dist-info, and return its name."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", SOME_DAY)
    with tempfile.TemporaryDirectory() as folder:
        if metadata_directory is None:
            metadata_directory = str(Path(folder, prepare_metadata_for_build_wheel(folder, config_settings)))
        name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Build the source archive, and return its name."""
    name: str = build_meta.build_sdist(sdist_directory, config_settings)
    made_alike(Path(sdist_directory, name), int(os.environ.get("SOURCE_DATE_EPOCH", SOME_DAY)))
    return name


def made_alike(archive: Path, seconds: int) -> None:
    """Write a .tar.gz again, its members by name and with what only the place of the build decides taken out."""
    plain = io.BytesIO()
    with tarfile.open(archive) as read, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as written:
        for member in sorted(read.getmembers(), key=lambda one: one.name):
            content = read.extractfile(member) if member.isfile() else None
            member.mtime, member.mode, member.pax_headers = seconds, 0o755 if member.isdir() else 0o644, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            written.addfile(member, content)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as packed:
        packed.write(plain.getvalue())


def sbom(metadata: str, lock: str) -> dict[str, Any]:
    """Return the CycloneDX document of a package with this METADATA that was tested with this lock."""
    version = re.findall(r"^Version: (\S+)$", metadata, flags=re.MULTILINE)[0]
    pins = sorted(set(re.findall(r"^([a-z0-9_.-]+)==([^\s;]+)", lock, flags=re.MULTILINE)))
    components = [_component(name, pinned) for name, pinned in pins]
    whole = {**_component("tallystick", version), "licenses": [{"license": {"id": "Apache-2.0"}}]}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": whole, "lifecycles": [{"phase": "build"}]},
        "components": components,
        "dependencies": [{"ref": whole["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _component(name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name.replace('_', '-')}@{version.replace('+', '%2B')}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
