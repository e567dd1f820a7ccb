"""By written_xid: rows that no cut reads and rows that went are counted by where their ids lie, and told once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.matching.closed_cut import closing_of
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.verdict import Verdict
from tallystick.store.runs.close_store import close_cut
from tallystick.store.runs.cut_store import claim_attempt
from tests.stack.live_books import Event, LiveBooks, doubts, expected, kinds, payment, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

BY_WRITTEN_XID = {"slice_by": "written_xid"}
SET_ID = "UPDATE {table} SET written_xid = {xid} WHERE side = 'credit' AND event_id = ANY(%s) RETURNING entry_id::text"

IS_A = f"event_id = '{payment('a').event_id}'"


def set_id(books: LiveBooks, events: Sequence[Event], xid: str) -> list[str]:
    """What an import or a mapper does that names the column."""
    ids = [event.event_id for event in events]
    return [row[0] for row in books.ledger.execute(SET_ID.format(table=books.table, xid=xid), [ids]).fetchall()]


def next_doubt(books: LiveBooks, name: str) -> DoubtFound:
    """The only doubt of the next window, in which one payment stands on both sides; the one behind it has none."""
    books.both(payment(name))
    run = books.next_run()
    assert (doubts(run), run.result.breaks) == ([Doubt.LEDGER_REWRITTEN], ())
    assert books.judge_again(run).digest == run.result.digest
    books.both(payment(f"{name} after"))
    assert books.next_run().result.verdict is Verdict.MATCHED
    return run.result.doubts[0]


def test_rows_without_their_id_or_with_another_are_counted_and_named(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic", ledger=BY_WRITTEN_XID) as books:
        books.post(payment("old"))
        set_id(books, [payment("old")], "NULL")
        books.take_cut()
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.post(*payments("no id", "none either"))
        without = set_id(books, payments("no id", "none either"), "NULL")
        found = next_doubt(books, "c")
        (place,) = found.details["places"]
        assert (place["name"], place["expected"], place["now"]) == ("without_id", 1, 3)
        assert sorted(place["row_ids"]) == sorted(without)
        books.post(*payments("of the past", "of the future", "of a slice"))
        named = [
            *set_id(books, [payment("of the past")], "3"),
            *set_id(books, [payment("of the future")], str(10**17)),
            *set_id(books, [payment("of a slice")], f"(SELECT min(written_xid) FROM {books.table} WHERE {IS_A})"),
        ]
        found = next_doubt(books, "d")
        assert sorted(row_id for one in found.details["places"] for row_id in one["row_ids"]) == sorted(named)
        set_id(books, [payment("no id")], "pg_current_xact_id()::text::bigint")
        books.both(payment("e"))
        repaired = books.next_run()
        assert [found.match_key for found in repaired.result.breaks] == [payment("no id").event_id]


def test_rows_of_a_cut_that_was_closed_unread_are_told_only_when_more_come(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", ledger=BY_WRITTEN_XID) as books:
        books.take_cut()
        books.both(*payments("closed", "closed too"))
        cut = books.take_cut()
        claim_attempt(books.store, books.contract.name, cut.n)
        closing = closing_of(by="Ada", reason="nobody can read it", at_utc=datetime.now(UTC))
        close_cut(books.store, books.contract.name, cut.n, closing)
        books.both(payment("after"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        closed_id = f"(SELECT min(written_xid) FROM {books.table} WHERE event_id = '{payment('closed').event_id}')"
        books.both(payment("moved"))
        assert set_id(books, [payment("moved")], closed_id)
        books.both(payment("beside it"))
        told = [found.sentence for found in books.next_run().result.doubts if found.doubt is Doubt.LEDGER_REWRITTEN]
        slice_ = cut.ledger_slice
        place = f"[{slice_.position_start}, {slice_.position_end}), closed unread"
        assert [f"1 row came where no cut reads them: 1 with one in {place}" in one for one in told] == [True]


def test_rows_that_go_after_their_match_are_told_unless_the_owner_archives(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", ledger=BY_WRITTEN_XID) as books:
        books.take_cut()
        books.both(*payments("a", "b", "c", "d"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.ledger.execute(f"UPDATE {books.table} SET amount_minor = 1 WHERE event_id = %s", [payment("c").event_id])
        books.both(payment("not seen, as the report says"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        delete = f"DELETE FROM {books.table} WHERE event_id = %s"
        books.ledger.execute(delete, [payment("a").event_id])
        assert "1 row went that earlier cuts had read: 1 of 4" in next_doubt(books, "e").sentence
        archived = books.contract.model_copy(
            update={"ledger": books.contract.ledger.model_copy(update={"earlier_rows": "archived"})}
        )
        archiving = replace(books, contract=archived)
        books.ledger.execute(delete, [payment("b").event_id])
        archiving.both(payment("f"))
        assert archiving.next_run().result.verdict is Verdict.MATCHED


def test_a_partition_that_was_filled_before_it_is_attached_is_counted(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic", ledger=BY_WRITTEN_XID) as books:
        books.ledger.execute(
            f"""
            CREATE TABLE {books.table}s (LIKE {books.table} INCLUDING ALL) PARTITION BY RANGE (entry_id);
            CREATE TABLE {books.table}_1 (LIKE {books.table} INCLUDING ALL);
            CREATE TABLE {books.table}_2 (LIKE {books.table} INCLUDING ALL);
            ALTER TABLE {books.table}_1 ALTER entry_id DROP IDENTITY;
            ALTER TABLE {books.table}_2 ALTER entry_id DROP IDENTITY;
            ALTER TABLE {books.table}s ATTACH PARTITION {books.table}_1 FOR VALUES FROM (1) TO (1000);
            DROP TABLE {books.table};
            ALTER TABLE {books.table}s RENAME TO posting;
            """
        )
        books.take_cut()
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.ledger.execute(
            f"INSERT INTO {books.table}_2 (entry_id, event_id, payment_id, leg, side, amount_minor, currency) "
            "VALUES (1001, %s, %s, 'payment', 'credit', 777700, 'EUR')",
            [payment("x").event_id, payment("x").payment_id],
        )
        books.both(payment("c"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.ledger.execute(
            f"ALTER TABLE {books.table} ATTACH PARTITION {books.table}_2 FOR VALUES FROM (1000) TO (2000)"
        )
        (place,) = next_doubt(books, "d").details["places"]
        assert (place["now"] - place["expected"], place["row_ids"]) == (1, ["1001"])


def test_a_row_that_takes_a_paired_ones_place_with_other_money_is_a_mismatch(new_books: NewBooks) -> None:
    ledger = BY_WRITTEN_XID | {"compared_windows": 2}
    with new_books(direction="topic_to_ledger", ledger=ledger) as books:
        books.take_cut()
        books.both(*payments("a", "b", "c"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        replace_row = f"DELETE FROM {books.table} WHERE event_id = %s"
        for name in ("a", "b"):
            books.ledger.execute(replace_row, [payment(name).event_id])
        books.post(payment("a", 5_000_000), payment("b"))
        books.both(payment("d"))
        run = books.next_run()
        assert kinds(run) == expected((BreakClass.AMOUNT_MISMATCH, payment("a")))
        assert run.result.breaks[0].amount_minor == 4_999_000
        assert doubts(run) == [Doubt.PARTNER_NOT_SETTLED, Doubt.LEDGER_REWRITTEN]  # b was put in its own place
        assert books.judge_again(run).digest == run.result.digest

        change = f"UPDATE {books.table} SET amount_minor = 1 WHERE event_id = %s RETURNING entry_id::text"
        changed = {row[0] for row in books.ledger.execute(change, [payment("c").event_id]).fetchall()}
        (place,) = next_doubt(books, "e").details["places"]
        assert changed & set(place["row_ids"])
