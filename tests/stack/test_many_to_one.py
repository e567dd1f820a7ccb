"""Several events that add up to one row, and several rows to one event, with every kind of ledger."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import BY_CLIENT, PAIR_BY_PAIR, SCAN_VARIABLE
from tests.stack.live_books import Event, LiveBooks, doubts, payment

from .iceberg_table import IcebergSink
from .ledger_kinds import add_file, ledger_of_kind
from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

SHAPE = pa.schema(
    [
        *((name, pa.string()) for name in ("entry_id", "event_id", "payment_id", "leg")),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
    ]
)
KINDS = (("events", "postgres"), ("rows", "jdbc"), ("rows", "parquet"), ("events", "iceberg"))
SUM, MISSING = BreakClass.GROUP_SUM_MISMATCH, BreakClass.MISSING_IN_LEDGER


@dataclass
class Groups:
    """Books of groups, and how their wholes and parts are written. ways: in which a cut of theirs is read again."""

    books: LiveBooks
    ways: tuple[str, ...]
    write_parts: Callable[..., None]
    write_whole: Callable[..., None]

    def parts(self, name: str, *amounts_minor: int, currency: str = "EUR") -> None:
        self.write_parts(*(payment(name, amount, currency) for amount in amounts_minor))

    def whole(self, name: str, amount_minor: int) -> None:
        self.write_whole(payment(name, amount_minor))

    def group(self, name: str, whole: int, *parts: int) -> None:
        self.parts(name, *parts)
        self.whole(name, whole)


@pytest.fixture(params=KINDS, ids=[f"{many} to one, {kind}" for many, kind in KINDS])
def groups(
    request: pytest.FixtureRequest, new_books: NewBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Groups]:
    """Parts are written first, whichever side they are on."""
    many, kind = request.param
    sink = IcebergSink(tmp_path)
    written = 0

    def table_of(event: Event) -> pa.Table:
        nonlocal written
        written += 1
        row = {"entry_id": f"row {written}", "event_id": event.event_id, "payment_id": event.payment_id}
        money = {"leg": event.leg, "amount_minor": event.amount_minor, "currency": event.currency}
        return pa.Table.from_pylist([row | money], schema=SHAPE)

    def file(*events: Event) -> None:
        for event in events:
            add_file(sink, f"{written + 1}", table_of(event))

    def append(*events: Event) -> None:
        sink.table.append(pa.concat_tables(map(table_of, events)))

    section = ledger_of_kind(kind, sink, shape=SHAPE, monkeypatch=monkeypatch)
    direction = "topic_to_ledger" if many == "events" else "ledger_to_topic"
    with new_books(direction=direction, match={"many_to_one": many}, ledger=section) as books:
        post = {"parquet": file, "iceberg": append}.get(kind) or books.post
        ways = (BY_CLIENT, PAIR_BY_PAIR) if (many, kind) == ("events", "postgres") else ()
        yield Groups(books, ways, *((books.produce, post) if many == "events" else (post, books.produce)))


def sums(run: StoredRun) -> dict[str, int | None]:
    """What is missing of each group, by its match key."""
    return {one.match_key: one.evidence["missing_minor"] for one in run.result.breaks if one.break_class is SUM}


def by_key(**missing: int | None) -> dict[str, int | None]:
    return {payment(name).event_id: amount for name, amount in missing.items()}


def test_parts_add_up_over_windows_and_what_does_not_is_one_break(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = groups.books
    books.take_cut()
    groups.group("pair", 1000, 1000)
    groups.group("two", 1000, 600, 400)
    groups.group("refund", 1000, 1400, -400)
    run = books.next_run()
    assert (run.result.verdict, doubts(run)) == (Verdict.MATCHED, [])
    assert run.result.figures.matched_money["EUR"] == 3000

    groups.group("whole", 30, 10, 20)
    groups.group("one short", 1000, 600)
    groups.group("one twice", 1000, 600, 400, 400)
    groups.group("of two currencies", 1000, 600)
    groups.parts("of two currencies", 400, currency="USD")
    groups.parts("spread", 1, 2)
    waiting = books.take_cut()
    groups.parts("spread", 3)
    groups.whole("spread", 6)
    run = books.judge(waiting)
    assert sums(run) == by_key(**{"one short": 400, "one twice": -400, "of two currencies": None})
    assert [one.break_class for one in run.result.breaks] == [SUM] * 3
    assert run.result.figures.matched_money["EUR"] == 30
    assert books.judge_again(run).digest == run.result.digest
    for way in groups.ways:
        with monkeypatch.context() as patch:
            patch.setenv(SCAN_VARIABLE, way)
            assert books.judge_again(run).digest == run.result.digest, way

    groups.parts("one short", 300)
    run = books.next_run()
    assert sums(run) == by_key(**{"one short": 100})
    assert run.result.figures.matched_money["EUR"] == 6
    assert books.judge_again(run).digest == run.result.digest

    groups.parts("one short", 100)
    groups.parts("two", 7)
    groups.parts("new", 5)
    groups.whole("new", 5)
    run = books.next_run()
    assert sums(run) == {}
    (surplus,) = run.result.breaks
    assert surplus.match_key == payment("two").event_id
    assert surplus.break_class.value.startswith("duplicate_in_")
    cleared = {item.match_key for item in run.result.items if item.state is ItemState.CLEARED}
    assert cleared == {payment("one short").event_id}
    assert Notice.LATE_PARTNER in {notice.notice for notice in run.result.notices}
    assert run.result.figures.matched_money["EUR"] == 1005


def test_parts_whose_whole_never_comes_are_each_told(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", match={"many_to_one": "events"}) as books:
        books.take_cut()
        books.both(payment("there"))
        books.produce(payment("lost", 600), payment("lost", 400))
        run = books.next_run()
        assert sorted((one.break_class, one.amount_minor) for one in run.result.breaks) == [
            (MISSING, 400),
            (MISSING, 600),
        ]
        books.post(payment("lost", 1000))
        books.both(payment("more"))
        run = books.next_run()
        assert (run.result.verdict, run.result.breaks) == (Verdict.MATCHED, ())


def test_a_part_in_an_open_transaction_is_waited_for(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", match={"many_to_one": "events"}) as books:
        books.take_cut()
        books.both(payment("there"))
        books.produce(payment("split", 600))
        books.post(payment("split", 1000))
        with books.transaction(writer="slow") as producer:
            books.send(producer, payment("split", 400))
            run = books.next_run(settled=False)
            assert sums(run) == {}
        books.wait_stable()
        books.both(payment("more"))
        run = books.next_run()
        assert (run.result.verdict, run.result.breaks) == (Verdict.MATCHED, ())


def test_a_row_that_was_written_anew_is_no_second_part_and_one_that_was_added_is(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic", match={"many_to_one": "rows"}) as books:
        books.take_cut()
        for name in ("touched", "grown"):
            books.post(payment(name, 600), payment(name, 400))
            books.produce(payment(name, 1000))
        run = books.next_run()
        assert (run.result.verdict, run.result.figures.matched_rows) == (Verdict.MATCHED, 4)
        touched = "WHERE event_id = %s AND amount_minor = 600"
        books.ledger.execute(f"UPDATE {books.table} SET occurred_at = now() {touched}", [payment("touched").event_id])
        books.both(payment("more"))
        run = books.next_run()
        assert run.result.breaks == ()
        books.post(payment("grown", 5))
        books.both(payment("and more"))
        run = books.next_run()
        assert {one.match_key for one in run.result.breaks} <= {payment("grown").event_id}
