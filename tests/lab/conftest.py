"""A stack for each module, in a folder of its own under build/, so that two test runs do not meet."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack, start_stack


@pytest.fixture
def lab_folder() -> Iterator[Path]:
    with _new_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def lab_stack() -> Iterator[LabStack]:
    """Of each module its own: servers that stay until the end take time from all other tests, idle as they are."""
    with _new_folder() as folder, start_stack(folder) as stack:
        yield stack


@pytest.fixture(scope="module")
def lab_cluster() -> Iterator[LabStack]:
    """The same with three brokers."""
    with _new_folder() as folder, start_stack(folder, brokers=3) as stack:
        yield stack


class _new_folder:
    """A folder that is gone afterwards. Not pytest's tmp_path: pytest closes that to PostgreSQL's system user."""

    def __enter__(self) -> Path:
        parent = REPOSITORY / "build" / "lab"
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="tests-", dir=parent))
        return self.folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
