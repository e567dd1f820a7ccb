"""Places in a real server of S3's interface, each test's own."""

import json
import uuid

import pytest

from lab.servers.object_store import ObjectStoreServer
from tallystick.host.artifacts import ObjectPlace, artifacts_place
from tests.unit.conftest import broken_run, contract, matched_run

__all__ = ["broken_run", "contract", "matched_run"]  # fixtures


@pytest.fixture
def settings(s3: ObjectStoreServer) -> dict[str, str]:
    """Variables that name a prefix of this test's own, and the connection that has the account."""
    return {
        "TALLYSTICK_ARTIFACTS_DIR": s3.address(f"team/{uuid.uuid4().hex}"),
        "TALLYSTICK_ARTIFACTS_CONN_ID": "artifacts_s3",
        "TALLYSTICK_CONN_ARTIFACTS_S3": json.dumps(s3.keywords()),
    }


@pytest.fixture
def place(settings: dict[str, str]) -> ObjectPlace:
    made = artifacts_place(settings)
    assert isinstance(made, ObjectPlace)
    return made
