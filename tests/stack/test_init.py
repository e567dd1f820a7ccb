"""`tallystick init` on the shop of docs/walk.md: what it writes is the contract that the walk has by hand."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lab.servers.log_ends import LogEnds
from lab.servers.postgres import LEDGER_DATABASE, LEDGER_OWNER
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.kafka_clients import new_admin, new_producer
from tallystick.cli.app import app
from tallystick.contract.contract import load_contract

SHOP = REPOSITORY / "docs" / "examples" / "walk"


@pytest.fixture(scope="module")
def shop(stack: LabStack) -> LabStack:
    """Twenty orders, nineteen of them booked; behind them an aborted one of another shape."""
    environment = {
        "SHOP_BROKER": stack.bootstrap_servers,
        "SHOP_DATABASE": stack.ledger_owner_dsn,
    }
    for arguments in (["open"], ["sell", "20", "--forget", "1"]):
        subprocess.run([sys.executable, str(SHOP / "shop.py"), *arguments], env=environment, check=True)
    producer = new_producer(
        stack.bootstrap_servers, DeliveryMode.EXACTLY_ONCE, client_id="init", transactional_id="init"
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("shop.orders", key=b"x", value=b"never committed")
    producer.flush(30)
    producer.abort_transaction(30)
    LogEnds(new_admin(stack.bootstrap_servers)).wait_until_decided([("shop.orders", 0), ("shop.orders", 1)])
    return stack


@pytest.fixture
def connections(shop: LabStack, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = json.dumps({"bootstrap.servers": shop.bootstrap_servers})
    monkeypatch.setenv("TALLYSTICK_CONN_SHOP_KAFKA", kafka)
    monkeypatch.setenv("TALLYSTICK_CONN_SHOP_LEDGER", shop.ledger_reader_dsn)


def init(folder: Path, *more: str, table: str = "shop.booking", topic: str = "shop.orders") -> Result:
    sides = ["--topic", topic, "--table", table, "--kafka", "shop_kafka", "--ledger", "shop_ledger"]
    return CliRunner().invoke(app, ["init", "shop_orders", *sides, "--folder", str(folder), *more])


@pytest.mark.usefixtures("connections")
def test_what_is_written_pairs_what_the_walks_own_contract_pairs(tmp_path: Path) -> None:
    written = init(tmp_path)
    assert written.exit_code == 0, written.output
    counted = re.search(r"(\d+) of (\d+) values found in the column", written.stdout)
    assert counted, written.stdout
    assert int(counted[1]) == int(counted[2]) - 1 >= 19  # other tests may have sold more in this shop
    ours, walks = load_contract(tmp_path / "shop_orders.yaml"), load_contract(SHOP / "shop_orders.yaml")
    assert (ours.event, ours.legs, ours.direction) == (walks.event, walks.legs, walks.direction)
    assert ours.ledger.columns == walks.ledger.columns
    assert written.stderr == ""  # the aborted record was not looked at


@pytest.mark.usefixtures("connections")
def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "shop_orders.yaml").write_text("mine")
    refused = init(tmp_path)
    assert (refused.exit_code, (tmp_path / "shop_orders.yaml").read_text()) == (2, "mine")
    assert "is there already" in refused.stderr


@pytest.mark.usefixtures("connections")
def test_a_table_of_something_else_gives_no_file_and_says_what_is_missing(shop: LabStack, tmp_path: Path) -> None:
    with shop.ledger_server.connect(LEDGER_OWNER, LEDGER_DATABASE) as owner:
        owner.execute("CREATE TABLE IF NOT EXISTS shop.staff (staff_id bigint PRIMARY KEY, name text)")
    refused = init(tmp_path, table="shop.staff")
    assert (refused.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "match_key: no key of the payload (amount_minor, currency, event_id, leg, order_id)" in refused.stderr


@pytest.mark.usefixtures("connections")
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ({"table": "shop.nothing"}, "no such table, or this role may not see its schema"),
        ({"topic": "shop.nothing"}, "shop.nothing"),
        ({"table": "booking"}, "--table: got 'booking'; expected schema.table"),
    ],
)
def test_what_is_not_there_is_a_sentence(tmp_path: Path, place: dict[str, str], reason: str) -> None:
    refused = init(tmp_path, **place)
    assert (refused.exit_code, reason in refused.stderr) == (2, True), refused.output


@pytest.mark.usefixtures("connections")
def test_another_database_is_looked_at_by_its_own_catalogue(
    shop: LabStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.ledger_server.connect(LEDGER_OWNER, LEDGER_DATABASE) as owner:
        rows = owner.execute("SELECT booking_id, event_id::text, order_id, leg, cents, currency FROM shop.booking")
        booked = rows.fetchall()
    with sqlite3.connect(tmp_path / "books.db") as books:
        books.execute(
            "CREATE TABLE booking (booking_id integer PRIMARY KEY, event_id text, order_id text, leg text,"
            " cents integer, currency text)"
        )
        books.executemany("INSERT INTO booking VALUES (?, ?, ?, ?, ?, ?)", booked)
    monkeypatch.setenv("TALLYSTICK_CONN_SHOP_LEDGER", f"sqlite:///{tmp_path}/books.db")
    written = init(tmp_path, "--kind", "jdbc", table="main.booking")
    assert written.exit_code == 0, written.output
    ledger = load_contract(tmp_path / "shop_orders.yaml").ledger
    assert (ledger.kind, ledger.order_by, ledger.columns.amount_minor) == ("jdbc", "booking_id", "cents")
