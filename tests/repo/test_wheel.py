"""The wheel holds every committed file of the packages, and is the same bytes wherever and from whatever it is built.

What a checkout can do, an installation can.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import tarfile
from base64 import urlsafe_b64encode
from email import message_from_bytes
from email.message import Message
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from build_backend import sbom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[2]
PACKAGES = {  # where it lies in the checkout: where it is imported from
    "tallystick/": "tallystick/",
    "spark_apps/tallystick_spark/": "tallystick_spark/",
    "plugins/tallystick_airflow/": "tallystick_airflow/",
    "expectations/tallystick_expectations/": "tallystick_expectations/",
}


@pytest.fixture(scope="module")
def committed() -> list[str]:
    return [name for name in git_ls_files() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def sdist(committed: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(committed, tmp_path_factory.mktemp("first"), "--sdist")


@pytest.fixture(scope="module")
def wheel(committed: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(committed, tmp_path_factory.mktemp("second"), "--wheel")


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    return message_from_bytes(dist_info(wheel, "METADATA"))


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path, committed: list[str]) -> None:
    expected = {
        package + name.removeprefix(folder)
        for folder, package in PACKAGES.items()
        for name in committed
        if name.startswith(folder)
    }
    assert expected
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name for name in held if not name.endswith(".so")} == expected
    assert {name.partition(".")[0] for name in held - expected} == {
        "tallystick/contract/_compared_texts",
        "tallystick/formats/_flat_avro",
        "tallystick/formats/_flat_protobuf",
        "tallystick/kafka_log/_simple_events",
        "tallystick_spark/matching/_text_hashes",
    }


def test_a_second_build_in_another_folder_gives_the_same_bytes(
    sdist: Path, wheel: Path, committed: list[str], tmp_path: Path
) -> None:
    """Build the second wheel from what the sdist holds, so that the sdist holds what builds."""
    again = build(committed, tmp_path / "elsewhere", "--sdist")
    assert again.read_bytes() == sdist.read_bytes()
    with tarfile.open(again) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert build_in(unpacked, tmp_path / "dist", "--wheel").read_bytes() == wheel.read_bytes()


def test_the_time_of_the_files_is_the_one_that_is_asked_for(committed: list[str], tmp_path: Path) -> None:
    other = build(committed, tmp_path, "--sdist", SOURCE_DATE_EPOCH="1700000000")
    with tarfile.open(other) as archive:
        assert {member.mtime for member in archive.getmembers()} == {1700000000}


def test_the_sdist_holds_no_test_and_nothing_of_the_lab(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert tops == {
        *("LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "tallystick.egg-info"),
        *("tallystick", "plugins", "spark_apps", "expectations", "setup", "requirements"),
    }


def test_the_wheel_has_an_sbom_that_names_every_locked_version(wheel: Path) -> None:
    """Source: PEP 770."""
    text = dist_info(wheel, "sboms/tallystick.cdx.json").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/tallystick@0.1.0"
    lock = (ROOT / "requirements" / "runtime.lock").read_text()
    pins = {line.split(" ")[0].replace("==", "@") for line in lock.splitlines() if "==" in line}
    assert {part["purl"].removeprefix("pkg:pypi/") for part in document["components"]} == pins


def test_an_sbom_of_a_broken_document_is_noticed() -> None:
    document = sbom("Version: 1.0\n", "a==1\n")
    document["components"][0]["type"] = "nonsense"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is not None


def test_the_record_has_the_hash_of_every_file(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        listed = {name: digest for name, digest, _ in csv.reader(dist_info(wheel, "RECORD").decode().splitlines())}
        for name in archive.namelist():
            digest = urlsafe_b64encode(sha256(archive.read(name)).digest()).decode().rstrip("=")
            assert listed.pop(name) in ({f"sha256={digest}"} if not name.endswith("/RECORD") else {""}), name
    assert listed == {}


def test_the_metadata_says_what_it_is_for_whom_and_in_which_types(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).startswith("# Tallystick")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"Framework :: Apache Airflow", "Typing :: Typed"} <= set(metadata.get_all("Classifier", ()))
    extras = {
        "airflow",
        "spark",
        "postgres",
        "mysql",
        "iceberg",
        "gx",
        "otel",
        "apprise",
        "msk",
        "avro",
        "protobuf",
        "all",
    }
    assert set(metadata.get_all("Provides-Extra", ())) == extras


def test_every_package_says_that_it_has_types(wheel: Path) -> None:
    held = set(ZipFile(wheel).namelist())
    assert {f"{package}py.typed" for package in PACKAGES.values()} <= held


def dist_info(wheel: Path, inside: str) -> bytes:
    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(f".dist-info/{inside}"))
        return archive.read(name)


def git_ls_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


def copy_files(names: list[str], folder: Path) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def build(committed: list[str], folder: Path, what: str, **environment: str) -> Path:
    copy_files(committed, folder / "checkout")
    return build_in(folder / "checkout", folder / "dist", what, **environment)


def build_in(checkout: Path, dist: Path, what: str, **environment: str) -> Path:
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "--quiet", "build", what, "--no-build-isolation", "--out-dir", str(dist), str(checkout)]
    given = {"VIRTUAL_ENV": str(Path(sys.executable).parent.parent), "PATH": f"{uv.parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=given | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = dist.glob("tallystick-*")
    return built
