"""A ledger in a real MariaDB: what is wrong is found and nothing else, through `tallystick run` too."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pymysql
import pytest

from lab.servers.mariadb import READER, MariadbServer
from lab.servers.process import REPOSITORY
from tallystick.connections.connections import environment_variable
from tallystick.contract.contract import Contract
from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
from tallystick.model.verdict import Verdict
from tallystick.pipeline.open_ledger import open_ledger_of
from tests.stack.live_books import Event, LiveBooks, doubts, expected, kinds, payment, payments

from .live import SPARK_SETTINGS, NewBooks

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(300)]

MARIADB = "ledger_mariadb"

_POSTING = """
CREATE TABLE posting (
    entry_id bigint AUTO_INCREMENT PRIMARY KEY, event_id varchar(40) NOT NULL, payment_id uuid NOT NULL,
    leg varchar(20) NOT NULL, side varchar(6) NOT NULL, amount_minor {amount} NOT NULL, currency char(3) NOT NULL,
    KEY (event_id)
)"""


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    parent = REPOSITORY / "build" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="mariadb-", dir=parent))
    server = MariadbServer(folder / "data")
    try:
        server.initialise()
        server.start()
        server.passwords[READER] = "a password: with @ and %40/'"
        with server.connect() as root, root.cursor() as admin:
            admin.execute(f"CREATE USER {READER}@'127.0.0.1' IDENTIFIED BY %s", server.passwords[READER])
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class MariadbBooks:
    """Books whose ledger is a table in MariaDB, and its owner's connection."""

    books: LiveBooks
    owner: "pymysql.Connection[Any]"

    def execute(self, statement: str, *values: object) -> None:
        with self.owner.cursor() as cursor:
            cursor.execute(statement, values or None)

    def post(self, *events: Event) -> None:
        """Two postings per event, of which the contract picks one, in one transaction."""
        self._post([(one, one.amount_minor) for one in events])

    def post_as(self, amounts: Mapping[Event, str]) -> None:
        """The same of events whose rows say another amount, or say it otherwise."""
        self._post(list(amounts.items()))

    def _post(self, rows: Sequence[tuple[Event, int | str]]) -> None:
        with self.owner.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.executemany(
                "INSERT INTO posting (event_id, payment_id, leg, side, amount_minor, currency) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (one.event_id, one.payment_id, one.leg, side, amount, one.currency)
                    for one, amount in rows
                    for side in ("debit", "credit")
                ],
            )
            cursor.execute("COMMIT")


@pytest.fixture
def mariadb(server: MariadbServer, new_books: NewBooks, monkeypatch: pytest.MonkeyPatch) -> Iterator[MariadbBooks]:
    """One writer at a time, so that rows are committed in the order of their numbers: no overlap is needed."""
    name = f"m{uuid.uuid4().hex[:10]}"
    with server.connect() as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"GRANT SELECT ON {name}.* TO {READER}@'127.0.0.1'")
        monkeypatch.setenv(environment_variable(MARIADB), server.url(READER, name).replace(*_PASSWORD_IN_A_URL))
        ledger = {"kind": "jdbc", "connection": MARIADB, "table": f"{name}.posting", "order_by": "entry_id"}
        with (
            server.connect(database=name) as owner,
            new_books(direction="ledger_to_topic", ledger={**ledger, "overlap": 0}) as books,
        ):
            there = MariadbBooks(books=books, owner=owner)
            there.execute(_POSTING.format(amount="bigint"))
            yield there
        cursor.execute(f"DROP DATABASE {name}")


_PASSWORD_IN_A_URL = ("a password: with @ and %40/'", "a%20password%3A%20with%20%40%20and%20%2540%2F%27")


def test_each_fault_of_many_is_found_and_nothing_else(mariadb: MariadbBooks) -> None:
    """Of 300 payments every tenth is wrong in one of five ways: 0 missed, 0 false, none called another thing."""
    books, draw = mariadb.books, random.Random(7)
    books.take_cut()
    events = [payment(f"p{number}", draw.randrange(1, 10**9)) for number in range(300)]
    wrong = draw.sample(events, 30)
    lost, invented, doubled, changed, again = (wrong[first::5] for first in range(5))
    mariadb.post(*(one for one in events if one not in invented), *doubled)
    said = [replace(one, amount_minor=one.amount_minor + 1) if one in changed else one for one in events]
    books.produce(*(one for one in said if one.payment not in {gone.payment for gone in lost}))
    books.produce(*again, writer="another")
    run = books.next_run()
    assert run.result.verdict is Verdict.BROKEN
    assert kinds(run) == sorted(
        [
            *expected(*(("missing_in_topic_never_produced", one) for one in lost)),
            *expected(*(("phantom_in_topic", one) for one in invented)),
            *expected(*(("duplicate_in_ledger", one) for one in doubled)),
            *expected(*(("amount_mismatch", one) for one in changed)),
            *expected(*(("duplicate_in_topic_new_session", one) for one in again)),
        ]
    )
    assert doubts(run) == []
    assert run.result.figures.ledger_rows == 300
    assert books.judge_again(run).digest == run.result.digest

    events = payments("next a", "next b")
    mariadb.post(*events)
    books.produce(*events)
    after = books.next_run()
    assert (after.result.verdict, kinds(after), doubts(after)) == (Verdict.MATCHED, [], [])


def test_the_command_line_reconciles_it(mariadb: MariadbBooks, tmp_path: Path) -> None:
    books = mariadb.books
    books.take_cut()
    mariadb.post(*payments("a", "lost"))
    books.produce(*payments("a"))
    environment = {
        **os.environ,  # the connections are there
        "TALLYSTICK_STORE_DSN": books.store.url.render_as_string(hide_password=False),
        "TALLYSTICK_ARTIFACTS_DIR": str(tmp_path),
        "TALLYSTICK_JARS_DIR": str(REPOSITORY / ".jars" / "spark"),
        "TALLYSTICK_SPARK_MASTER": "local[2]",
        "TALLYSTICK_SPARK_CONF": json.dumps(
            {name: value for name, value in SPARK_SETTINGS.items() if name != "spark.jars"}
        ),
    }
    command = [sys.executable, "-m", "tallystick", "run", str(books.contract_file), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert (document["verdict"], document["matched_rows"]) == ("BROKEN", 1)
    assert "missing_in_topic_never_produced" in done.stdout
    assert "a password" not in done.stderr + done.stdout


def test_decimals_in_major_units_are_exact_and_one_with_more_digits_than_its_currency_equals_nothing(
    mariadb: MariadbBooks,
) -> None:
    books = with_ledger(mariadb.books, amount_unit="major")
    mariadb.execute("ALTER TABLE posting MODIFY amount_minor double NOT NULL")
    with pytest.raises(LedgerRefused, match=r"amount_minor: got DOUBLE.*floating point holds no exact money"):
        books.take_cut()
    mariadb.execute("ALTER TABLE posting MODIFY amount_minor decimal(40, 20) NOT NULL")
    books.take_cut()
    right = (
        payment("eur", 1_250),
        payment("jpy", 5, "JPY"),
        payment("kwd", -1_234, "KWD"),
        payment("large", 2**63 - 1),
    )
    wrong = (payment("finer", 1_250), payment("yen and a half", 5, "JPY"), payment("a cent", 1_250))
    mariadb.post_as(dict(zip(right, ("12.5", "5", "-1.234", "92233720368547758.07"), strict=True)))
    mariadb.post_as(dict(zip(wrong, ("12.50000000000000000001", "5.5", "12.51"), strict=True)))
    books.produce(*right, *wrong)
    run = books.next_run()
    assert kinds(run) == expected(*(("amount_mismatch", one) for one in wrong))
    assert (run.result.figures.matched_rows, doubts(run)) == (4, [])
    assert books.judge_again(run).digest == run.result.digest


def with_ledger(books: LiveBooks, **changes: object) -> LiveBooks:
    """The same books under a contract that says something else of its ledger."""
    document = books.contract.model_dump(mode="json", exclude_defaults=True)
    changed = Contract.model_validate(document | {"ledger": document["ledger"] | changes})
    return replace(books, contract=changed)


def test_keys_that_differ_in_case_or_by_a_space_at_the_end_are_different_keys(mariadb: MariadbBooks) -> None:
    """To MariaDB they are equal texts; an event of one is no event of the other."""
    books = mariadb.books
    books.take_cut()
    insert = (
        "INSERT INTO posting (event_id, payment_id, leg, side, amount_minor, currency) "
        "VALUES (%s, uuid(), %s, %s, 1, 'EUR')"
    )
    for key in ("Key", "key", "key "):
        mariadb.execute(insert, key, "payment", "credit")
    cut = books.take_cut()
    with open_ledger_of(books.store, books.contract, books.connections) as there:
        found = there.look_up_rows(["key", "KEY"], cut.ledger_slice)
        later = replace(cut.ledger_slice, position_start=2, position_end=4)
        last = replace(cut.ledger_slice, position_start=3, position_end=4)
        assert there.keys_below(cut.ledger_slice, below=9) == ("Key", "key", "key ")
        assert there.keys_seen_before(later) == there.keys_seen_before(last) == ()
        mariadb.execute(insert, "Key", "payment", "credit")
        assert there.keys_seen_before(replace(last, position_end=9)) == ("Key",)
    assert {key: [row.row_id for row in rows] for key, rows in found.items()} == {"key": ["2"]}


def test_what_does_not_fit_is_refused_and_nothing_is_written(
    mariadb: MariadbBooks, server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = mariadb.books
    for changes, words in (
        ({"where": "sid = 'credit'"}, "Unknown column 'sid'"),
        ({"where": "no_such(side)"}, "no_such"),
        ({"table": f"{books.contract.ledger.table}s"}, "no such table"),
        ({"order_by": "leg"}, "got VARCHAR"),
    ):
        with pytest.raises(LedgerRefused, match=words):
            with_ledger(books, **changes).take_cut()
    monkeypatch.setenv(environment_variable(MARIADB), server.url("root", books.contract.ledger.table.split(".")[0]))
    with (
        pytest.raises(LedgerUnreachable, match="READ ONLY transaction"),
        open_ledger_of(books.store, books.contract, books.connections) as there,
    ):
        there.connection.exec_driver_sql("DELETE FROM posting")  # type: ignore[attr-defined]
