"""The stack that the soak strikes; it goes with the soak, since a broker takes its time idle, too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.servers.stack import LabStack, start_stack
from tests.lab.conftest import lab_folder

__all__ = ["lab_folder"]  # a fixture


@pytest.fixture(scope="module")
def lab_stack(build_folder: Path) -> Iterator[LabStack]:
    with start_stack(build_folder / "stack") as stack:
        yield stack
