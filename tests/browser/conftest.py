"""A real Airflow with the pages inside, a store that was filled once, and Chromium. No broker, so nothing is judged."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from lab.servers.airflow import WHAT_A_READER_NEEDS, AirflowStack, start_airflow
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.postgres import AIRFLOW_DATABASE, STORE_DATABASE, STORE_OWNER, STORE_ROLE, PostgresServer
from lab.servers.stack import LabAddresses
from tallystick.report.write_report import write_report
from tallystick.store.engine import connect_store, migrate, open_store
from tallystick.store.runs.run_store import read_run
from tests.stored_books import CONTRACTS, HOUR, LAST_BROKEN, fill, payments, payouts

from .visiting import PATIENCE_MS

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="session")
def last_hour() -> datetime:
    """A quarter past the hour: the newest window of the payouts that has ended."""
    now = datetime.now(UTC)
    quarter_past = now.replace(minute=15, second=0, microsecond=0)
    return quarter_past if quarter_past <= now else quarter_past - HOUR


@pytest.fixture(scope="module")
def airflow(build_folder: Path, store_server: PostgresServer, last_hour: datetime) -> Iterator[AirflowStack]:
    """Both example contracts, to be looked at: the broker that they name is not there, and neither is a scheduler."""
    store_dsn = store_server.dsn(STORE_ROLE, STORE_DATABASE)
    store_owner_dsn = store_server.dsn(STORE_OWNER, STORE_DATABASE)
    migrate(connect_store(store_owner_dsn), grant_to=STORE_ROLE)
    store = open_store(store_dsn)
    fill(store, payouts(), last_hour=last_hour)
    fill(store, payments(), last_hour=last_hour.replace(minute=0), windows=3)
    run = read_run(store, payouts().name, LAST_BROKEN)
    assert run is not None
    write_report(run, payouts(), build_folder / "artifacts")
    nowhere = "127.0.0.1:9"  # the discard port
    addresses = LabAddresses(
        folder=str(build_folder),
        bootstrap_servers=nowhere,
        proxied_bootstrap_servers=nowhere,
        ledger_owner_dsn=f"postgresql://nobody:none@{nowhere}/none",
        ledger_reader_dsn=f"postgresql://nobody:none@{nowhere}/none",
        ledger_admin_dsn=f"postgresql://nobody:none@{nowhere}/none",
        store_dsn=store_dsn,
        store_owner_dsn=store_owner_dsn,
        airflow_dsn=store_server.dsn(AIRFLOW_DATABASE, AIRFLOW_DATABASE),
        proxy_control_port=9,
    )
    home = build_folder / "airflow"
    home.mkdir()
    settings = AirflowSettings(home=home, contracts=CONTRACTS, artifacts=build_folder / "artifacts")
    with start_airflow(settings, addresses, components=WHAT_A_READER_NEEDS, deadline_seconds=240) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, which asks nobody outside."""
    assert CHROMIUM.is_file(), f"{CHROMIUM} is not there: run `make browser-setup`, which installs Debian's package"
    quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield chromium
        chromium.close()
