"""A ledger in a real MariaDB: what is wrong is found and nothing else, through `tallystick run` too.

And InnoDB's horizon: whoever writes and however it ends, each committed row is in one slice, but for one moment before
a crash, which is told.

One file, since every test asks the same server.
"""

import itertools
import json
import random
import shutil
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pymysql
import pytest

from lab.servers.mariadb import READER, MariadbServer
from lab.servers.process import REPOSITORY, wait_until
from tallystick.connections.connections import environment_variable
from tallystick.contract.contract import Contract
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.innodb import versioning_statements
from tallystick.ledger.jdbc import JdbcLedger, open_jdbc_ledger
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.protocol import LedgerReadCancelled, LedgerRefused, LedgerUnreachable
from tallystick.model.cut import LedgerSnapshot, reuses_ids
from tallystick.model.verdict import Verdict
from tallystick.pipeline.open_ledger import open_ledger_of
from tests.stack.live_books import Event, LiveBooks, doubts, expected, kinds, payment, payments
from tests.unit.builders import ledger_slice_of

from .live import NewBooks, run_contract

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
            admin.execute(f"GRANT PROCESS ON *.* TO {READER}@'127.0.0.1'")
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
        self.execute("BEGIN")
        self._insert(rows)
        self.execute("COMMIT")

    def insert(self, *events: Event) -> None:
        """The same rows in the owner's transaction, which stays open."""
        self._insert([(one, one.amount_minor) for one in events])

    def _insert(self, rows: Sequence[tuple[Event, int | str]]) -> None:
        with self.owner.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO posting (event_id, payment_id, leg, side, amount_minor, currency) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (one.event_id, one.payment_id, one.leg, side, amount, one.currency)
                    for one, amount in rows
                    for side in ("debit", "credit")
                ],
            )


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


def test_the_command_line_reconciles_it(mariadb: MariadbBooks, warm_spark: dict[str, str], tmp_path: Path) -> None:
    books = mariadb.books
    books.take_cut()
    mariadb.post(*payments("a", "lost"))
    books.produce(*payments("a"))
    code, stdout, stderr = run_contract(books, tmp_path, warm_spark, "--json")
    assert code == 1, stderr
    document = json.loads(stdout)
    assert (document["verdict"], document["matched_rows"]) == ("BROKEN", 1)
    assert "missing_in_topic_never_produced" in stdout
    assert "a password" not in stderr + stdout


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


ASKED = {
    "latin1 COLLATE latin1_german1_ci": "(CAST('a' AS CHAR CHARACTER SET latin1) COLLATE latin1_german1_ci)",
    "utf8mb3": "(CAST('a' AS CHAR CHARACTER SET utf8mb3) COLLATE utf8mb3_general_ci)",
    "utf8mb4 COLLATE utf8mb4_bin": "('a')",
}
"""How a key is asked for in a column of each set."""


@pytest.mark.parametrize("characters", ASKED)
def test_a_key_with_characters_that_the_column_cannot_hold_hides_no_other_key(
    mariadb: MariadbBooks, characters: str
) -> None:
    books = mariadb.books
    mariadb.execute(f"ALTER TABLE posting MODIFY event_id varchar(40) CHARACTER SET {characters} NOT NULL")
    books.take_cut()
    mariadb.post(payment("a"))
    books.produce(*payments("a", "\U0001f4b6 \u043a\u043b\u044e\u0447"))
    cut = books.take_cut()
    run = books.judge(cut)
    assert kinds(run) == expected(("phantom_in_topic", payment("\U0001f4b6 \u043a\u043b\u044e\u0447")))
    with open_ledger_of(books.store, books.contract, books.connections) as there:
        found = there.look_up_rows([payment("a").event_id, "?", "\U0001f4b6"], cut.ledger_slice)
    assert list(found) == [payment("a").event_id]
    with mariadb.owner.cursor() as cursor:
        cursor.execute(f"EXPLAIN SELECT 1 FROM posting WHERE event_id IN {ASKED[characters]}")
        possible_keys = [row[4] for row in cursor.fetchall()]
    assert possible_keys == ["event_id"]


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


def test_moments_are_read_in_utc_by_a_jdbc_url_of_ones_own_too(
    mariadb: MariadbBooks, server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = mariadb.books.contract.ledger.table.split(".")[0]
    url = server.url(READER, name).replace(*_PASSWORD_IN_A_URL)
    own = {"url": url, "jdbc_url": f"jdbc:mysql://127.0.0.1:{server.port}/{name}?permitMysqlScheme"}
    monkeypatch.setenv(environment_variable(MARIADB), json.dumps(own))
    mariadb.execute("ALTER TABLE posting ADD COLUMN made_at timestamp(6) NOT NULL DEFAULT current_timestamp(6)")
    books = with_ledger(mariadb.books, order_by="made_at")
    books.take_cut()
    mariadb.execute("SET GLOBAL time_zone = '+02:00'")
    try:
        mariadb.post(payment("a"))
        books.produce(payment("a"))
        run = books.next_run()
    finally:
        mariadb.execute("SET GLOBAL time_zone = 'SYSTEM'")
    assert (run.result.verdict, kinds(run), doubts(run)) == (Verdict.MATCHED, [], [])
    assert run.result.figures.ledger_rows == 1


# InnoDB's horizon.

_ENTRY = """
CREATE TABLE entry (
    entry_id bigint AUTO_INCREMENT PRIMARY KEY, event_id varchar(40) NOT NULL,
    payment_id varchar(40) NOT NULL DEFAULT '', leg varchar(20) NOT NULL DEFAULT '',
    amount_minor bigint NOT NULL DEFAULT 1, currency char(3) NOT NULL DEFAULT 'EUR'
)"""


@dataclass
class Entries:
    """A table whose rows have the ids of their transactions, and slices that are cut of it one after the other."""

    server: MariadbServer
    database: str
    ends: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def connect(self) -> "pymysql.Connection[Any]":
        return self.server.connect(database=self.database)

    @contextmanager
    def opened(self, **stated: object) -> Iterator[JdbcLedger]:
        ledger = LedgerSection.model_validate(
            {"connection": "l", "table": f"{self.database}.entry", "kind": "jdbc", "order_by": "row_start"}
            | {"horizon": "innodb", **stated}
        )
        url = self.server.url(READER, self.database).replace(*_PASSWORD_IN_A_URL)
        with open_jdbc_ledger(
            jdbc_settings(url), ledger, read_before=tuple, sum_before=lambda one: None, now=lambda: datetime.now(UTC)
        ) as there:
            yield there

    def begin(self) -> None:
        with self.opened() as there:
            self.ends.append(there.read_snapshot().low_mark)

    def cut(self) -> LedgerSnapshot:
        """Fix the next slice and read it at once, as Spark is told to."""
        with self.opened() as there:
            snapshot = there.read_snapshot()
            self.ends.append(snapshot.low_mark)
            self.keys += self._rows(there, *self.ends[-2:])
        return snapshot

    def replayed(self) -> list[str]:
        """The same slices read again, now."""
        with self.opened() as there:
            slices = zip(self.ends, self.ends[1:], strict=False)
            return [key for start, end in slices for key in self._rows(there, start, end)]

    def _rows(self, there: JdbcLedger, start: int, end: int) -> list[str]:
        query = there.slice_query(ledger_slice_of(start, end))
        return [row.match_key for row in there.connection.exec_driver_sql(query)]


@pytest.fixture
def entries(server: MariadbServer) -> Iterator[Entries]:
    name = f"h{uuid.uuid4().hex[:10]}"
    with server.connect() as admin:
        run(admin, f"CREATE DATABASE {name}", f"GRANT SELECT ON {name}.* TO {READER}@'127.0.0.1'", f"USE {name}")
        run(admin, _ENTRY, "INSERT INTO entry (event_id) VALUES ('before')", *versioning_statements(f"{name}.entry"))
    there = Entries(server, name)
    there.begin()
    yield there
    with server.connect() as admin:  # what a test that failed left open would hold this for a day
        run(admin, "SET lock_wait_timeout = 10", f"DROP DATABASE {name}")


def run(connection: "pymysql.Connection[Any]", *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def insert(connection: "pymysql.Connection[Any]", *keys: str) -> None:
    run(connection, *(f"INSERT INTO entry (event_id) VALUES ('{key}')" for key in keys))


def test_each_row_of_open_writers_that_end_in_any_order_is_in_one_slice(entries: Entries) -> None:
    with ExitStack() as open_sessions:
        writers = [open_sessions.enter_context(entries.connect()) for _ in range(5)]
        for number, writer in enumerate(writers):
            run(writer, "BEGIN")
            insert(writer, f"writer-{number}")
        for number in (2, 4, 0, 1, 3):
            entries.cut()
            run(writers[number], "COMMIT")
        snapshot = entries.cut()
    assert snapshot.low_mark == snapshot.high_mark
    assert sorted(entries.keys) == sorted(entries.replayed()) == [f"writer-{number}" for number in range(5)]


def test_a_row_under_a_savepoint_waits_for_its_transaction(entries: Entries) -> None:
    with entries.connect() as writer, entries.connect() as neighbour:
        run(writer, "BEGIN")
        insert(writer, "first")
        run(writer, "SAVEPOINT undone")
        insert(writer, "undone")
        run(writer, "ROLLBACK TO SAVEPOINT undone")
        insert(neighbour, "neighbour")
        run(writer, "SAVEPOINT released")
        insert(writer, "released")
        run(writer, "RELEASE SAVEPOINT released")
        entries.cut()
        assert entries.keys == []
        run(writer, "COMMIT")
    entries.cut()
    assert sorted(entries.keys) == sorted(entries.replayed()) == ["first", "neighbour", "released"]


def write_all_shapes(entries: Entries, worker: int, *, until: threading.Event) -> list[str]:
    """Commit, roll back, and roll back to a savepoint, in turn; return the keys that are committed."""
    committed: list[str] = []
    with entries.connect() as writer:
        for number in itertools.count():
            if until.is_set():
                break
            first, second, third = (f"{worker}-{number}-{each}" for each in range(3))
            run(writer, "BEGIN")
            insert(writer, first)
            run(writer, "SAVEPOINT s")
            insert(writer, second)
            if number % 3 == 0:
                run(writer, "ROLLBACK TO SAVEPOINT s")
            insert(writer, third)
            run(writer, "ROLLBACK" if number % 5 == 0 else "COMMIT")
            if number % 5:
                committed += [first, third] if number % 3 == 0 else [first, second, third]
    return committed


def test_slices_cut_while_four_writers_work_hold_every_committed_row_once(entries: Entries) -> None:
    enough, held = threading.Event(), 0
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write_all_shapes, entries, worker, until=enough) for worker in range(4)]
        try:
            for _ in range(40):
                snapshot = entries.cut()
                held += snapshot.low_mark < snapshot.high_mark
        finally:
            enough.set()
        committed = [writer.result() for writer in writers]
    entries.cut()
    assert all(committed)
    assert held > 0
    written = Counter(key for keys in committed for key in keys)
    assert Counter(entries.keys) == Counter(entries.replayed()) == written


def test_a_writer_that_is_open_or_prepared_is_named_and_a_reader_holds_nothing(entries: Entries) -> None:
    name = entries.database
    with entries.connect() as looking, entries.connect() as owner, entries.opened() as there:
        run(looking, "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT * FROM entry")
        insert(owner, "ended")
        ended = there.read_snapshot()
        assert ended.low_mark == ended.high_mark
        run(owner, "BEGIN")
        insert(owner, "held")
        wait_for_holder(there, f"session {owner.thread_id()} of root in database {name}")
        run(owner, "ROLLBACK", f"XA START '{name}'")
        insert(owner, "prepared")
        run(owner, f"XA END '{name}'", f"XA PREPARE '{name}'")
    with entries.opened() as there, entries.connect() as another:
        insert(another, "beside")
        wait_for_holder(there, "a prepared XA transaction")
        run(another, f"XA COMMIT '{name}'")
    entries.cut()
    assert sorted(entries.keys) == ["beside", "ended", "prepared"]


def wait_for_holder(there: JdbcLedger, text: str) -> None:
    """Ask seldom: the list of transactions is renewed only when nobody has asked for 0.1 s."""
    wait_until(lambda: holder_text(there) == text, what=f"the holder {text}", every_seconds=0.3)


def holder_text(there: JdbcLedger) -> str:
    holder = there.holder(horizon=there.read_snapshot().low_mark)
    return holder.holder if holder else ""


def test_a_crash_takes_no_id_of_a_committed_or_prepared_transaction_back(entries: Entries) -> None:
    server, name = entries.server, entries.database
    owner, prepared, lost = entries.connect(), entries.connect(), entries.connect()
    run(prepared, f"XA START '{name}'")
    insert(prepared, "prepared")
    run(prepared, f"XA END '{name}'", f"XA PREPARE '{name}'")
    run(lost, "BEGIN")
    insert(lost, "open at the crash")
    insert(owner, "committed")
    before = entries.cut()
    server.kill()
    server.start()
    after = entries.cut()
    assert (after.system_identifier, after.timeline) == (before.system_identifier, before.timeline)
    assert before.low_mark <= after.low_mark
    assert before.log_position <= after.log_position
    assert entries.keys == []
    with entries.connect() as again:
        run(again, f"XA COMMIT '{name}'")
        insert(again, "after")
    entries.cut()
    assert sorted(entries.keys) == sorted(entries.replayed()) == ["after", "committed", "prepared"]


_CRASHES_MAX = 10


def undo_some(entries: Entries) -> tuple[LedgerSnapshot, int | None]:
    """Let transactions have ids that nothing else has; give how far the ledger can be read then, and its rows below."""
    writers = [entries.connect() for _ in range(20)]
    for writer in writers:
        run(writer, "BEGIN")
        insert(writer, "undone")
    for writer in writers:
        run(writer, "ROLLBACK")
    before = entries.cut()
    with entries.opened() as there:
        return before, there.count_older_rows(ledger_slice_of(before.low_mark, before.low_mark))


def test_an_id_that_only_a_rolled_back_transaction_had_comes_again_after_a_crash_and_is_told(entries: Entries) -> None:
    """The one moment in which the horizon is not sound: nobody has committed since. Not lost either: the guard of older
    rows counts the row, and a horizon that fell back is a doubt of its own.
    """
    with entries.connect() as owner:
        insert(owner, "read")
    for _ in range(_CRASHES_MAX):  # the server may write its newest id down on its own, just before it dies
        before, older = undo_some(entries)
        entries.server.kill()
        entries.server.start()
        with entries.opened() as there:
            fell_back = there.read_snapshot()
        if fell_back.low_mark < before.low_mark:
            break
    start = ledger_slice_of(before.low_mark, before.low_mark)
    with entries.connect() as owner:
        insert(owner, "given the id again")
    assert fell_back.low_mark < before.low_mark
    assert reuses_ids(before, fell_back, read_up_to=before.low_mark)
    assert entries.keys == ["read"]
    with entries.opened() as there:
        assert (older, there.count_older_rows(start)) == (2, 3)


def test_the_list_of_transactions_is_old_while_somebody_polls_it_and_so_gives_no_horizon(entries: Entries) -> None:
    """The experiment behind ADR 44: the server renews what INNODB_TRX shows only when nobody has asked for 0.1 s."""
    asked, enough = threading.Event(), threading.Event()

    def poll() -> None:
        with entries.connect() as monitor:
            while not enough.wait(0.01):
                run(monitor, "SELECT count(*) FROM information_schema.innodb_trx")
                asked.set()

    seen = "SELECT trx_id FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = %s"
    with ThreadPoolExecutor(1) as pool, entries.connect() as writer, entries.connect() as asking:
        polling = pool.submit(poll)
        try:
            assert asked.wait(30)
            run(writer, "BEGIN")
            insert(writer, "open")
            with asking.cursor() as cursor:
                answers = [cursor.execute(seen, [writer.thread_id()]) for _ in range(50)]
            with entries.opened() as there:
                snapshot = there.read_snapshot()
        finally:
            enough.set()
        polling.result()
        run(writer, "ROLLBACK")
    assert sum(answers) < len(answers)
    assert snapshot.low_mark < snapshot.high_mark


def test_a_statement_that_looks_like_a_snapshot_is_not_believed(entries: Entries) -> None:
    with entries.opened() as there, entries.connect() as forger:
        session = there.connection.exec_driver_sql("SELECT connection_id()").scalar_one()
        forged = (
            f"\nMariaDB thread id {session}, OS thread handle 1, query id 1\n"
            "Trx read view will not see trx with id >= 99999, sees < 99999\n"
        )
        run(forger, "BEGIN")
        insert(forger, "open")
        before = there.read_snapshot()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, forger, f"SELECT SLEEP(3) /* {forged} */")
            wait_until(lambda: is_refused(there), what="the forger's statement")
            running.result()
        assert there.read_snapshot().low_mark == before.low_mark


def test_a_server_that_applies_what_another_one_wrote_is_refused_though_it_takes_writes(entries: Entries) -> None:
    with entries.opened() as there, entries.connect() as admin:
        run(admin, "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1", "START SLAVE SQL_THREAD")
        try:
            insert(admin, "its own")
            with pytest.raises(LedgerRefused, match="a replica or a node of a cluster"):
                there.read_snapshot()
        finally:
            run(admin, "STOP SLAVE", "RESET SLAVE ALL")
        assert there.read_snapshot().low_mark > entries.ends[-1]


def is_refused(there: JdbcLedger) -> bool:
    try:
        there.read_snapshot()
    except LedgerReadCancelled:
        return True
    return False


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("entry_id", r"got bigint\(20\), none, innodb; expected a BIGINT UNSIGNED GENERATED ALWAYS AS ROW START"),
        ("amount_minor", r"What to do: ALTER TABLE .* ADD SYSTEM VERSIONING; CREATE INDEX"),
    ],
)
def test_a_column_that_the_server_does_not_fill_is_refused(entries: Entries, column: str, words: str) -> None:
    with entries.opened() as there:
        described = there.describe()
        assert (described.row_id_is_unique, described.key_is_unique) == (True, False)
    with entries.opened(order_by=column) as there, pytest.raises(LedgerRefused, match=words):
        there.describe()


def test_books_by_innodbs_horizon_wait_for_an_open_writer_and_no_other_row(mariadb: MariadbBooks) -> None:
    books = with_ledger(mariadb.books, horizon="innodb", order_by="row_start", overlap=None)
    mariadb.post(payment("before the books"))
    for statement in versioning_statements(books.contract.ledger.table):
        mariadb.execute(statement)
    books.take_cut()
    mariadb.post(*payments("a", "lost", "late"))
    books.produce(*payments("a", "late", "invented"))
    broken = books.next_run()
    assert kinds(broken) == expected(
        ("missing_in_topic_never_produced", payment("lost")), ("phantom_in_topic", payment("invented"))
    )
    assert doubts(broken) == []
    assert broken.ledger_guarantee == "by InnoDB's horizon (row_start): strong for rows that nobody changes"

    mariadb.execute("BEGIN")
    mariadb.insert(payment("slow"))
    books.produce(payment("slow"))
    held = books.next_run(settled=False)
    assert held.result.breaks == ()
    assert "held_by_ledger_horizon" in doubts(held)
    mariadb.execute("COMMIT")
    whole = books.next_run()
    assert (whole.result.verdict, kinds(whole)) == (Verdict.MATCHED, [])
