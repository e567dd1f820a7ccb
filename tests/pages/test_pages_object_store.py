"""The pages show what another process has written to a store of objects: no folder is shared between the two."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from lab.servers.object_store import ObjectStoreServer
from tallystick.report.write_report import render_report
from tallystick.store.runs.run_store import read_run
from tests.stored_books import LAST_BROKEN, payouts

NAME = payouts().name
BELOW = "/tallystick"
RUN = f"{BELOW}/run/{NAME}/{LAST_BROKEN}"
REPORT = f"{BELOW}/report/{NAME}/{LAST_BROKEN}"


@pytest.fixture
def address(s3: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prefix of this test's own, with the account in a connection of Airflow's provider of Amazon."""
    connection = {
        "conn_type": "aws",
        "login": s3.access_key,
        "password": s3.secret_key,
        "extra": {"region_name": "us-east-1", "endpoint_url": s3.endpoint},
    }
    made = s3.address(uuid.uuid4().hex)
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", made)
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_CONN_ID", "artifacts_s3")
    monkeypatch.setenv("AIRFLOW_CONN_ARTIFACTS_S3", json.dumps(connection))
    return made


def write_report_elsewhere(s3: ObjectStoreServer, address: str, store_dsn: str, folder: Path) -> str:
    """By a process in a folder of its own, whose account is AWS's own variables."""
    environment = {
        **os.environ,
        **s3.environment(),
        "TALLYSTICK_STORE_DSN": store_dsn,
        "TALLYSTICK_ARTIFACTS_DIR": address,
    }
    del environment["TALLYSTICK_ARTIFACTS_CONN_ID"]
    argv = [sys.executable, "-m", "tallystick", "report", f"{NAME}/{LAST_BROKEN}"]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    return done.stdout.strip()


def test_a_report_of_another_process_is_shown(
    viewer: Any, store: Engine, store_dsn: str, s3: ObjectStoreServer, address: str, tmp_path: Path
) -> None:
    before = viewer.get(REPORT)
    assert before.status_code == 404 and "No such file lies in the store of artifacts." in before.text
    assert REPORT not in viewer.get(RUN).text
    assert write_report_elsewhere(s3, address, store_dsn, tmp_path) == f"{address}/reports/{NAME}/{LAST_BROKEN}.html"
    shown = viewer.get(REPORT)
    run = read_run(store, NAME, LAST_BROKEN)
    assert run is not None
    assert (shown.status_code, shown.text) == (200, render_report(run, payouts()))
    assert shown.headers["content-type"].startswith("text/html")
    assert "sandbox" in shown.headers["content-security-policy"]
    assert REPORT in viewer.get(RUN).text


@pytest.mark.parametrize("path", ["../../reports/x.html", "%2e%2e/%2e%2e/reports/x.html", "/etc/passwd"])
def test_no_address_leads_out_of_the_contracts_data_docs(viewer: Any, address: str, path: str) -> None:
    answer = viewer.get(f"{BELOW}/data-docs/{NAME}/{path}")
    assert answer.status_code in (404, 307)
    assert "root:" not in answer.text


def test_a_store_that_is_gone_is_told_and_the_run_is_shown_all_the_same(
    viewer: Any, s3: ObjectStoreServer, address: str
) -> None:
    s3.stop()
    try:
        answer, run = viewer.get(REPORT), viewer.get(RUN)
    finally:
        s3.start()
    assert answer.status_code == 503
    assert "The store of reports does not answer" in answer.text
    assert s3.secret_key not in answer.text and "127.0.0.1" not in answer.text
    assert run.status_code == 200 and REPORT in run.text


def test_a_connection_that_does_not_do_is_told(viewer: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ARTIFACTS_S3", '{"conn_type": "aws", "extra": {"profile_name": "x"}}')
    answer = viewer.get(REPORT)
    assert answer.status_code == 503
    assert "the extra has profile_name; expected at most aws_session_token" in answer.text
    assert viewer.get(RUN).status_code == 200
