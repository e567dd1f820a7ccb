"""The shop of docker-compose.yml trades without Docker, as its role, and its contract is judged while it does."""

import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
import yaml
from confluent_kafka.admin import AdminClient

from lab.servers.process import REPOSITORY, wait_until
from lab.servers.stack import LabStack
from tallystick.contract.contract import load_contract

from .live import RUN_SETTINGS

COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SCRIPT = REPOSITORY / "docs" / "examples" / "walk" / "shop.py"
CONTRACT = REPOSITORY / "docs" / "examples" / "compose" / "shop_orders.yaml"

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class ShopDatabase:
    """A database with the roles that the compose file makes, under names of this test's own."""

    shop: str
    reader: str


@pytest.fixture
def ledger(stack: LabStack) -> Iterator[ShopDatabase]:
    """Carry out the compose file's own SQL on the lab's server; drops what it made."""
    (sql,) = re.findall(r"<<'SQL'\n(.*?)^SQL", COMPOSE["configs"]["ledger-roles"]["content"], flags=re.M | re.S)
    suffix = uuid.uuid4().hex[:8]
    shop, reader, database = f"shop_{suffix}", f"reader_{suffix}", f"ledger_{suffix}"
    sql = sql.replace("ledger_reader", reader).replace("ROLE shop", f"ROLE {shop}").replace("TO shop", f"TO {shop}")
    sql = sql.replace("DATABASE ledger", f"DATABASE {database}").replace(":'shop'", "'a'").replace(":'reader'", "'b'")
    server = stack.ledger_server
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {database}")
        for statement in sql.split(";\n"):
            admin.execute(statement)
    address = f"127.0.0.1:{server.port}/{database}"
    yield ShopDatabase(shop=f"postgresql://{shop}:a@{address}", reader=f"postgresql://{reader}:b@{address}")
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {database} WITH (FORCE)")
        admin.execute(f"DROP ROLE {shop}, {reader}")


@pytest.fixture
def environment(stack: LabStack, ledger: ShopDatabase, store_dsn: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of the shop, and of runs that start a Spark as the product sets it by itself."""
    yield {
        **os.environ,
        "SHOP_BROKER": stack.bootstrap_servers,
        "SHOP_DATABASE": ledger.shop,
        "TALLYSTICK_CONN_SHOP_KAFKA": f'{{"bootstrap.servers": "{stack.bootstrap_servers}"}}',
        "TALLYSTICK_CONN_SHOP_LEDGER": ledger.reader,
        "TALLYSTICK_STORE_DSN": store_dsn,
        "TALLYSTICK_ARTIFACTS_DIR": str(tmp_path / "artifacts"),
        "TALLYSTICK_JARS_DIR": str(REPOSITORY / ".jars" / "spark"),
        "TALLYSTICK_SPARK_MASTER": "local[2]",
    }
    admin = AdminClient(
        {"bootstrap.servers": stack.bootstrap_servers}
    )  # held by a name, lest it ends before it is done
    admin.delete_topics(["shop.orders"])["shop.orders"].result(30)


def booked(ledger: ShopDatabase) -> int:
    """Count what the reader sees; none while there is no table."""
    with psycopg.connect(ledger.reader) as reader:
        if reader.execute("SELECT to_regclass('shop.booking')").fetchone() == (None,):
            return 0
        found = reader.execute("SELECT count(*) FROM shop.booking").fetchone()
    return int(found[0]) if found else 0


def judge(contract: Path, environment: dict[str, str]) -> tuple[int, str]:
    command = [sys.executable, "-m", "tallystick", "run", str(contract)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_shop_trades_and_its_contract_is_judged(
    ledger: ShopDatabase, environment: dict[str, str], warm_spark: dict[str, str], tmp_path: Path
) -> None:
    warm = environment | RUN_SETTINGS | warm_spark
    folder = tmp_path / "contracts"
    folder.mkdir()
    published = folder / CONTRACT.name
    command = [sys.executable, str(SCRIPT), "trade", str(CONTRACT), str(folder), "--every", "0.3"]
    opened = datetime.now(UTC).replace(microsecond=0)
    shop = subprocess.Popen(command, env=environment)
    try:
        wait_until(
            lambda: published.is_file() and booked(ledger) > 0, what="the shop to have sold", deadline_seconds=60
        )
        assert opened <= load_contract(published).start_date <= datetime.now(UTC)
        code, said = judge(published, warm)
        assert code == 3, said  # the baseline
        sold = booked(ledger)
        wait_until(lambda: booked(ledger) >= sold + 6, what="two more sales", deadline_seconds=60)
        code, said = judge(published, warm)
        assert code == 0, said
    finally:
        shop.send_signal(signal.SIGTERM)
        assert shop.wait(60) == 0

    begun = published.read_text()
    published.write_text(begun.replace("partner_grace_seconds: 60", "partner_grace_seconds: 0 "))
    subprocess.run([sys.executable, str(SCRIPT), "sell", "3", "--forget", "1"], env=environment, check=True)
    code, said = judge(published, environment)
    assert code == 1, said
    assert "Missing in ledger: 1 break" in said


def test_a_shop_that_opens_again_leaves_its_contract_alone(tmp_path: Path) -> None:
    """Else each restart would begin later, and a window in between would be judged by nobody."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        from shop import publish_contract
    finally:
        sys.path.remove(str(SCRIPT.parent))
    publish_contract(CONTRACT, tmp_path, datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC))
    first = (tmp_path / CONTRACT.name).read_text()
    publish_contract(CONTRACT, tmp_path, datetime(2026, 3, 2, tzinfo=UTC))
    assert (tmp_path / CONTRACT.name).read_text() == first
    assert load_contract(tmp_path / CONTRACT.name).start_date == datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
    assert [file.name for file in tmp_path.iterdir()] == [CONTRACT.name]
