"""A ledger read by a column that grows: each row in one slice while its owner keeps the overlap; SQLite, for real.

One file, since each claim is made of the same table and read through the same few helpers.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, create_engine, event, text, types
from sqlalchemy.dialects import mssql, mysql, postgresql

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.earlier_rows import ReadSlice, find_read_slice
from tallystick.ledger.jdbc import JdbcLedger, as_driver_texts, key_value, open_jdbc_ledger, scattered, snapshot_behind
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
from tallystick.model.cut import LedgerSlice, LedgerSnapshot
from tallystick.pipeline.make_cut import next_ledger_slice
from tests.unit.builders import LAW, NOON, ledger_slice_of, sample_at

OVERLAP = 4
UNTIL_FOUND = settings(LAW, max_examples=5_000)
Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(st.just(("take", 0)), st.tuples(st.just("commit"), st.integers(0, 5)), st.just(("cut", 0))), max_size=40
)


def snapshot(rows: Sequence[int], overlap: int) -> LedgerSnapshot:
    return snapshot_behind(max(rows, default=-1) + 1, overlap=overlap, clock=None, system="any")


def cut_rows(steps: Sequence[Step], *, overlap: int) -> tuple[list[int], list[int]]:
    """Rows that writers committed, and rows that cuts read.

    Writers take numbers in order and commit in any, but never so that a number still to come lies OVERLAP or more
    behind the newest one in sight.
    """
    taken, rows, read, number = [], [], [], 0
    slices: list[LedgerSlice] = []

    def cut() -> None:
        now = snapshot(rows, overlap)
        before = (
            slices[-1]
            if slices
            else LedgerSlice(position_start=0, position_end=0, snapshot=now, mark=0, baseline_position=0)
        )
        slices.append(next_ledger_slice(before, now, sample_at(NOON, 0, now.high_mark)))
        read.extend(row for row in rows if slices[-1].position_start <= row < slices[-1].position_end)

    for what, which in [*steps, ("end", 0)]:
        if what == "take":
            taken.append(number)
            number += 1
        elif what == "commit" and taken:
            newest = taken[which % len(taken)]
            now_in_sight = [one for one in taken if one == newest or one <= newest - OVERLAP]
            rows += now_in_sight
            taken = [one for one in taken if one not in now_in_sight]
        elif what == "cut":
            cut()
    rows += taken
    committed = list(rows)
    rows.append(number + overlap)  # more comes behind it, so that all of them are read
    cut()
    return sorted(committed), sorted(one for one in read if one < number)


@LAW
@given(STEPS)
def test_each_row_that_comes_within_the_overlap_is_read_once(steps: list[Step]) -> None:
    committed, read = cut_rows(steps, overlap=OVERLAP)
    assert read == committed


@pytest.mark.parametrize("overlap", [0, OVERLAP - 2])
def test_an_overlap_that_is_too_small_loses_a_row_there(overlap: int) -> None:
    def loses_a_row(steps: list[Step]) -> bool:
        committed, read = cut_rows(steps, overlap=overlap)
        return read != committed

    steps = find(STEPS, loses_a_row, settings=UNTIL_FOUND)
    committed, read = cut_rows(steps, overlap=OVERLAP)
    assert read == committed


def test_an_idle_ledgers_newest_numbers_wait_and_its_newest_moments_do_not() -> None:
    by_number = snapshot_behind(100, overlap=10, clock=None, system="any")
    assert (by_number.low_mark, by_number.high_mark) == (90, 100)
    by_moment = snapshot_behind(100, overlap=10, clock=500, system="any")
    assert (by_moment.low_mark, by_moment.high_mark) == (490, 501)
    ahead = snapshot_behind(900, overlap=10, clock=500, system="any")  # a writer's clock
    assert (ahead.low_mark, ahead.high_mark) == (490, 900)
    assert snapshot_behind(3, overlap=10, clock=None, system="any").low_mark == 0


def test_a_position_lies_in_the_slice_that_holds_it_and_in_none_between() -> None:
    read = [
        ReadSlice(start=10, end=20, rows=1),
        ReadSlice(start=20, end=25, rows=2),
        ReadSlice(start=30, end=31, rows=0),
    ]
    found = [find_read_slice(read, position) for position in (9, 10, 19, 20, 24, 25, 30, 31)]
    assert found == [None, read[0], read[0], read[1], read[1], None, read[2], None]


# A real database.

LEDGER = LedgerSection(
    connection="l", table="main.posting", kind="jdbc", order_by="n", overlap=2, where="side LIKE 'c%'"
)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[str]:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "CREATE TABLE posting (n INTEGER, entry_id INTEGER PRIMARY KEY, event_id TEXT, payment_id TEXT, "
                "leg TEXT, side TEXT, amount_minor INTEGER, currency TEXT, at TIMESTAMP)"
            )
        )
    yield url
    engine.dispose()


@pytest.mark.parametrize(
    ("amount", "read"),
    [
        ("1000", (1_000, "EUR")),
        ("-1000.0", (-1_000, "EUR")),
        ("9223372036854775807", (2**63 - 1, "EUR")),
        ("NULL", (0, "")),
        ("1.5", (0, "")),
        ("9e999", (0, "")),
        ("9e99", (0, "")),
        ("9223372036854775808", (0, "")),
        ("'NaN'", (0, "")),
        ("'no number'", (0, "")),
        ("'9e999999'", (0, "")),
        ("x'ff'", (0, "")),
    ],
)
def test_an_amount_that_is_none_stops_no_look_up_and_equals_nothing(
    file: str, amount: str, read: tuple[int, str]
) -> None:
    insert(file, (1, 11, "a"))
    engine = create_engine(file)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE posting SET amount_minor = {amount}"))
    engine.dispose()
    with opened(file) as there:
        ((row,),) = there.look_up_rows(["a"], ledger_slice_of(0, 9)).values()
    assert (row.amount_minor, row.currency) == read


def insert(url: str, *rows: tuple[int | None, int, str], side: str = "credit") -> None:
    """Number, entry and key of each."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for n, entry_id, key in rows:
            connection.execute(
                text("INSERT INTO posting VALUES (:n, :entry_id, :key, 'pay', 'leg', :side, 5, 'EUR', NULL)"),
                {"n": n, "entry_id": entry_id, "key": key, "side": side},
            )
    engine.dispose()


def opened(
    url: str, *read: ReadSlice, sum_then: int | None = None, scattered_then: int | None = None, **stated: object
) -> AbstractContextManager[JdbcLedger]:
    return open_jdbc_ledger(
        jdbc_settings(url),
        LEDGER.model_copy(update=stated),
        read_before=lambda: read,
        sum_before=lambda one: sum_then,
        scattered_before=lambda one: scattered_then,
        now=lambda: NOON,
    )


def test_rows_are_counted_and_found_by_key_with_their_positions(file: str) -> None:
    insert(file, (1, 11, "a"), (7, 12, "a"), (8, 13, "b"))
    insert(file, (8, 14, "b"), side="debit")
    now = ledger_slice_of(7, 9, baseline=0)
    with opened(file) as there:
        assert (there.read_snapshot().low_mark, there.read_snapshot().high_mark) == (7, 9)
        assert not there.describe().key_is_unique
        assert there.count_older_rows(now) == 1
        assert there.keys_seen_before(now) == ("a",)
        assert [there.keys_below(now, below=below) for below in (7, 8, 9, 20)] == [(), ("a",), ("a", "b"), ("a", "b")]
        found = there.look_up_rows(["a", "b", "nowhere"], now)
    assert {key: [(row.row_id, row.position) for row in rows] for key, rows in found.items()} == {
        "a": [("11", 1), ("12", 7)],
        "b": [("13", 8)],
    }


ODD_KEYS = (
    "99999999999999999999",
    "-9223372036854775809",
    "9" * 5_000,
    "1_1",
    " 11",
    "\u0661\u0661",
    "a\0",
    "\ud800",
    "",
)


@pytest.mark.parametrize("column", ["event_id", "entry_id"])
def test_a_key_that_no_row_can_have_is_not_found_and_stops_no_look_up(file: str, column: str) -> None:
    insert(file, (1, 11, "11"))
    columns = LEDGER.columns.model_copy(update={"match_key": column})
    with opened(file, columns=columns) as there:
        found = there.look_up_rows(["11", *ODD_KEYS], ledger_slice_of(7, 9, baseline=0))
    assert {key: [row.row_id for row in rows] for key, rows in found.items()} == {"11": ["11"]}


@pytest.mark.parametrize(
    ("column_type", "known", "unknown"),
    [
        (types.SmallInteger(), {"-32768": -(2**15)}, ("32768", "-32769", "x", "1.0")),
        (types.Integer(), {"2147483647": 2**31 - 1}, ("2147483648",)),
        (types.BigInteger(), {str(2**63 - 1): 2**63 - 1}, (str(2**63),)),
        (types.Numeric(), {"12.50": Decimal("12.50"), str(2**64): 2**64}, ("NaN", "Infinity", "1e9", "x")),
        (types.Uuid(), {"1" * 32: UUID("1" * 32)}, ("1" * 31, "urn:uuid:" + "1" * 32)),
        (types.Enum("a", "b"), {"a": "a"}, ("c",)),
        (types.Text(), {"x": "x", "": ""}, ("a\0b", "\udfff")),
    ],
)
def test_a_key_is_a_value_of_its_column_or_none_by_postgresqls_own_widths(
    column_type: types.TypeEngine[Any], known: dict[str, Any], unknown: tuple[str, ...]
) -> None:
    got = {key: key_value(column_type, key, dialect="postgresql") for key in (*known, *unknown)}
    assert got == known | dict.fromkeys(unknown)


def test_an_integer_of_another_database_has_64_bits_whatever_its_type_says() -> None:
    assert key_value(types.Integer(), "2147483648", dialect="sqlite") == 2**31
    assert key_value(mysql.BIGINT(unsigned=True), str(2**64 - 1), dialect="mysql") == 2**64 - 1
    assert key_value(mysql.BIGINT(unsigned=True), "-1", dialect="mysql") is None


def test_a_row_below_the_slice_was_read_only_where_its_slice_holds_as_many_as_then(file: str) -> None:
    insert(file, (1, 11, "a"), (3, 12, "late"), (4, 13, "b"), (6, 14, "c"), (9, 15, "d"))
    as_then, fewer = ReadSlice(start=2, end=5, rows=2), ReadSlice(start=2, end=5, rows=1)
    for read, known in ((as_then, True), (fewer, False)):
        with opened(file, read, ReadSlice(start=5, end=7, rows=1)) as there:
            found = there.look_up_rows(["a", "late", "b", "c", "d"], ledger_slice_of(7, 10, baseline=2))
        was_read = {key: rows[0].was_read for key, rows in found.items()}
        assert was_read == {"a": True, "late": known, "b": known, "c": True, "d": True}


def test_a_slice_is_counted_once_all_rows_are_there_that_the_look_up_sees(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that came between a count and the rows of the keys behind it was called read."""
    monkeypatch.setattr("tallystick.ledger.jdbc._KEYS_AT_ONCE", 1)
    insert(file, (3, 12, "a"), (4, 13, "b"))
    asked: list[str] = []
    with opened(file, ReadSlice(start=2, end=5, rows=2)) as there:
        event.listen(there.connection, "before_cursor_execute", lambda *told: asked.append(str(told[2])))
        there.look_up_rows(["a", "b"], ledger_slice_of(7, 10, baseline=2))
    of_keys = [n for n, statement in enumerate(asked) if " IN (" in statement]
    counts = [n for n, statement in enumerate(asked) if "count(*)" in statement]
    assert len(of_keys) == 2
    assert counts
    assert max(of_keys) < min(counts)


@pytest.mark.parametrize(
    ("sum_then", "known"),
    [
        pytest.param(3 + 4, True, id="the same rows"),
        pytest.param(2 + 4, False, id="one of then went, and another came late"),
        pytest.param(None, True, id="a run of old kept no sum"),
    ],
)
def test_as_many_rows_with_another_sum_are_not_those_that_were_read(
    file: str, sum_then: int | None, known: bool
) -> None:
    """Found by the simulated world: the event of the late row was called a duplicate."""
    insert(file, (3, 12, "late"), (4, 13, "b"))
    with opened(file, ReadSlice(start=2, end=5, rows=2), sum_then=sum_then) as there:
        found = there.look_up_rows(["late", "b"], ledger_slice_of(7, 10, baseline=2))
    assert {key: rows[0].was_read for key, rows in found.items()} == {"late": known, "b": known}


@pytest.mark.parametrize(
    ("then", "known"), [((2, 5), True), ((3, 4), False), (None, True)], ids=["the same", "others", "a run of old"]
)
def test_as_many_rows_with_the_same_sum_may_be_others_than_were_read(
    file: str, then: tuple[int, ...] | None, known: bool
) -> None:
    """Found by the simulated world: 3 and 4 were archived, 2 and 5 came late, and an event of 5 was a duplicate."""
    insert(file, (2, 12, "late"), (5, 13, "late too"))
    scattered_then = None if then is None else sum(map(scattered, then))
    read = ReadSlice(start=2, end=6, rows=2)
    with opened(file, read, sum_then=7, scattered_then=scattered_then) as there:
        found = there.look_up_rows(["late", "late too"], ledger_slice_of(7, 10, baseline=2))
    assert {key: rows[0].was_read for key, rows in found.items()} == {"late": known, "late too": known}


def run_sql(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for one in statements:
            connection.execute(text(one))
    engine.dispose()


@pytest.mark.parametrize(
    ("befell", "lost"),
    [
        pytest.param((), [], id="nothing"),
        pytest.param(("UPDATE posting SET amount_minor = 6",), [], id="other amounts"),
        pytest.param(
            ("INSERT INTO posting (n, entry_id, event_id, side) VALUES (3, 30, 'x', 'c')",), [], id="one late"
        ),
        pytest.param(("UPDATE posting SET event_id = 'other' WHERE n = 8",), ["18"], id="another key"),
        pytest.param(("UPDATE posting SET entry_id = 28 WHERE n = 8",), ["18"], id="another row there"),
        pytest.param(("UPDATE posting SET n = 20 WHERE n = 8",), [], id="it has moved"),
        pytest.param(("UPDATE posting SET side = 'debit' WHERE n = 8",), [], id="the condition leaves it out"),
        pytest.param(("DELETE FROM posting WHERE n = 0",), [], id="an older one went"),
        pytest.param(("DELETE FROM posting WHERE n >= 8",), ["18"], id="the newest one went"),
        pytest.param(("DELETE FROM posting",), ["18", "16", "14", "12", "11"], id="all went"),
    ],
)
def test_the_newest_rows_that_were_read_are_looked_for_by_place_id_and_key(
    file: str, befell: tuple[str, ...], lost: list[str]
) -> None:
    rows = [(1, 11, "a"), (2, 12, "b"), (4, 14, "c"), (6, 16, "d"), (8, 18, "e"), (9, 19, "unread")]
    insert(file, (0, 10, "older"), *rows)
    with opened(file) as there:
        fixed = there.fix(ledger_slice_of(2, 9))
    assert [one.row_id for one in fixed.anchors] == ["18", "16", "14", "12", "11"]
    run_sql(file, *befell)
    with opened(file) as there:
        assert [one.row_id for one in there.lost_anchors(fixed)] == lost


def test_a_lost_row_says_whether_another_one_has_its_row_id(file: str) -> None:
    insert(file, (1, 11, "a"), (2, 12, "b"))
    with opened(file) as there:
        fixed = there.fix(ledger_slice_of(0, 3))
    run_sql(file, "DELETE FROM posting")
    insert(file, (7, 12, "later"))
    with opened(file) as there:
        assert [(one.row_id, one.taken) for one in there.lost_anchors(fixed)] == [("12", True), ("11", False)]


def test_rows_that_no_cut_reads_are_no_anchors_and_an_order_is_asked_for_once(file: str) -> None:
    """Below 0 a database keeps what is no moment, such as -infinity. SQL Server takes no column twice in an order."""
    insert(file, (-1, 10, "below"), (1, 11, "a"))
    with opened(file, order_by="entry_id") as there:
        by_id = there.fix(ledger_slice_of(0, 99))
    with opened(file) as there:
        assert [one.row_id for one in there.fix(ledger_slice_of(0, 3)).anchors] == ["11"]
    assert [one.row_id for one in by_id.anchors] == ["11", "10"]


@pytest.mark.parametrize("dialect", [mssql.dialect(), mysql.dialect(), postgresql.dialect()])
def test_the_newest_rows_are_asked_for_in_the_order_of_one_column(file: str, dialect: Any) -> None:
    with opened(file, order_by="entry_id") as there:
        query = str(there._newest(0, 9, limit=5).compile(dialect=dialect))
    assert query[query.index("ORDER BY") :].count("entry_id") == 1


@pytest.mark.parametrize(("late", "lost"), [(999, ["11"]), (1_000, [])])
def test_of_more_rows_than_are_looked_through_none_is_said_to_be_lost(file: str, late: int, lost: list[str]) -> None:
    """The one that is looked for may be among those that are not."""
    insert(file, (1, 11, "a"), (2, 12, "b"))
    with opened(file) as there:
        fixed = there.fix(ledger_slice_of(0, 3))
    run_sql(file, "DELETE FROM posting")
    insert(file, *((1, 20 + one, "late") for one in range(late)))
    with opened(file) as there:
        assert [one.row_id for one in there.lost_anchors(fixed)] == ["12", *lost]


def test_the_database_scatters_as_we_do_and_large_numbers_have_room(file: str) -> None:
    numbers = (1, 2, 1_000_002, 1_000_003, 2**31, 2**63 - 2)
    insert(file, *((n, 10 + place, f"key-{place}") for place, n in enumerate(numbers)))
    with opened(file) as there:
        sums = [there.scattered_sum_of_positions(below=n + 1) for n in numbers]
    assert sums == [sum(scattered(n % 1_000_003) for n in numbers[:upto]) for upto in range(1, 7)]
    assert len({scattered(n) for n in range(5_000)}) > 4_900


def test_a_row_without_a_number_is_told_by_the_guard_and_lies_before_everything(file: str) -> None:
    insert(file, (1, 11, "a"), (None, 12, "b"))
    now = ledger_slice_of(2, 3, baseline=0)
    with opened(file) as there:
        assert there.count_older_rows(now) == 2
        assert there.look_up_rows(["b"], now)["b"][0].position == -1


def test_as_many_rows_have_another_sum_and_large_numbers_have_room(file: str) -> None:
    insert(file, (1, 11, "a"), (2, 12, "b"), (2**63 - 1, 13, "c"), (2**63 - 2, 14, "d"))
    with opened(file) as there:
        assert [there.sum_of_positions(below=below) for below in (0, 2, 3)] == [0, 1, 3]
        largest = there.sum_of_positions(below=2**63 - 1)
    engine = create_engine(file)
    with engine.begin() as owner:
        owner.execute(text("UPDATE posting SET n = 3 WHERE n = 1"))
    engine.dispose()
    with opened(file) as there:
        assert there.sum_of_positions(below=2**63 - 1) == (largest or 0) + 2


def test_spark_is_given_the_slice_as_plain_sql(file: str) -> None:
    insert(file, (1, 11, "a"), (2, 12, "b"), (3, 13, "c"))
    with opened(file) as there:
        query = there.slice_query(ledger_slice_of(1, 3))
        rows = there.connection.execute(text(query)).all()
    assert [row.row_id for row in rows] == [11, 12]
    assert "LIKE 'c%')" in query


def test_a_uuid_of_sql_server_is_read_as_every_other_writes_it() -> None:
    key, number = Column("k", mssql.UNIQUEIDENTIFIER()), Column("n", types.Integer())
    read = {
        name: str(as_driver_texts(one, dialect=name).compile(dialect=dialect))
        for name, dialect, one in (("mssql", mssql.dialect(), key), ("postgresql", postgresql.dialect(), key))
    }
    assert read == {"mssql": "lower(CAST(k AS CHAR(36)))", "postgresql": "k"}
    assert as_driver_texts(number, dialect="mssql") is number
    of_mariadb = as_driver_texts(Column("k", types.Uuid()), dialect="mariadb")
    assert str(of_mariadb.compile(dialect=mysql.dialect())) == "CAST(k AS CHAR)"
    assert as_driver_texts(number, dialect="mariadb") is number


def test_an_empty_ledger_has_nothing_to_read(file: str) -> None:
    with opened(file) as there:
        assert (there.read_snapshot().low_mark, there.read_snapshot().high_mark) == (0, 0)


@pytest.mark.parametrize(
    ("stated", "refused"),
    [
        ({"table": "main.postings"}, "ledger table main.postings: no such table"),
        ({"order_by": "m"}, "ledger table main.posting: has no column m; it has n, entry_id"),
        ({"order_by": "event_id"}, "column event_id, which the contract names order_by: got TEXT"),
        ({"order_by": "at"}, "column at, which the contract names order_by: got TIMESTAMP"),
        ({"where": "sid = 'credit'"}, "no such column: sid"),
        (
            {"columns": LEDGER.columns.model_copy(update={"written_at": "at"})},
            "column at, which the contract names wri",
        ),
    ],
)
def test_what_cannot_be_read_as_the_contract_says_is_refused(
    file: str, stated: dict[str, object], refused: str
) -> None:
    with opened(file) as there:
        assert there.describe().key_is_unique is False
    with opened(file, **stated) as there, pytest.raises(LedgerRefused, match=re.escape(refused)):
        there.describe()


def test_a_reader_may_not_write_into_the_file(file: str) -> None:
    insert(file, (1, 11, "a"))
    with pytest.raises(LedgerUnreachable, match="readonly database"), opened(file) as there:
        there.connection.exec_driver_sql("DELETE FROM posting")
    with opened(file) as there:
        assert there.read_snapshot().high_mark == 2


def test_a_database_that_does_not_answer_is_named_without_the_password() -> None:
    url = "postgresql://reader:hunter2@127.0.0.1:1/billing"
    with pytest.raises(LedgerUnreachable, match="Connection refused; nothing listens there") as refused, opened(url):
        pass
    assert "hunter2" not in str(refused.value)
