"""A ledger in a table of Apache Iceberg, with real snapshots: loss, duplicates and changes are told from upkeep."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from lab.servers.process import REPOSITORY
from tallystick.connections.connections import environment_variable
from tallystick.contract.contract import Contract
from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tests.stack.live_books import LiveBooks, doubts, expected, kinds, payment, payments

from .iceberg_table import NAME, IcebergSink
from .live import NewBooks, run_contract

pytestmark = pytest.mark.usefixtures("spark")

LAKE = "ledger_lake"


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IcebergSink:
    made = IcebergSink(tmp_path)
    monkeypatch.setenv(environment_variable(LAKE), made.address)
    return made


@pytest.fixture
def books(new_books: NewBooks, sink: IcebergSink) -> Iterator[LiveBooks]:
    sink.make()
    document = {"kind": "iceberg", "connection": LAKE, "table": NAME, "where": None}
    with new_books(direction="topic_to_ledger", ledger=document) as made:
        yield made


def said(run: StoredRun) -> str:
    return " ".join(one.sentence for one in run.result.doubts if one.doubt == "ledger_rewritten")


def test_a_row_that_is_lost_is_found_whatever_order_the_others_are_committed_in(
    books: LiveBooks, sink: IcebergSink
) -> None:
    sink.append(payment("before the books"))
    books.take_cut()
    written_first = sink.write_file(payment("a"))
    books.produce(*payments("a", "b", "c"))
    sink.append(*payments("c", "b"))
    sink.commit(written_first)
    whole = books.next_run()
    assert (whole.result.verdict, whole.result.figures.matched_rows) == (Verdict.MATCHED, 3)
    assert whole.ledger_guarantee == "by snapshots of the table: strong for rows that are only appended"

    left_uncommitted = sink.write_file(payment("d"))
    books.produce(*payments("lost", "e"))
    sink.append(payment("e"), payment("invented"))
    broken = books.next_run()
    assert kinds(broken) == expected(("missing_in_ledger", payment("lost")), ("phantom_in_ledger", payment("invented")))
    assert doubts(broken) == []
    assert books.judge_again(broken).digest == broken.result.digest

    books.produce(payment("d"))
    sink.commit(left_uncommitted)
    late = books.next_run()
    assert (late.result.breaks, late.result.figures.matched_rows) == ((), 1)


def test_what_two_coordinators_commit_twice_is_a_duplicate(books: LiveBooks, sink: IcebergSink) -> None:
    """As a sink's zombie coordinator does: apache/iceberg#17340 (the same files), #17551 (the same offsets)."""
    books.take_cut()
    books.produce(*payments("a", "b"))
    file = sink.write_file(*payments("a", "b"))
    sink.commit(file)
    sink.commit(file)
    same_files = books.next_run()
    assert kinds(same_files) == expected(*(("duplicate_in_ledger", one) for one in payments("a", "b")))
    assert same_files.result.verdict is Verdict.BROKEN
    assert books.judge_again(same_files).digest == same_files.result.digest

    books.produce(*payments("c", "d"))
    sink.append(*payments("c", "d"))
    assert books.next_run().result.verdict is Verdict.MATCHED
    books.produce(payment("e"))
    sink.append(*payments("c", "d"))
    sink.append(payment("e"))
    same_offsets = books.next_run()
    assert kinds(same_offsets) == expected(*(("duplicate_in_ledger", one) for one in payments("c", "d")))
    assert same_offsets.result.verdict is Verdict.BROKEN


def test_a_compaction_and_the_expiry_of_what_was_read_break_nothing(
    books: LiveBooks, sink: IcebergSink, spark: SparkSession
) -> None:
    books.take_cut()
    books.produce(*payments("a", "b"))
    sink.append(payment("a"))
    sink.append(payment("b"))
    assert books.next_run().result.verdict is Verdict.MATCHED

    books.produce(*payments("c", "lost"))
    sink.append(payment("c"))
    sink.compact(spark)
    sink.append(payment("a"))
    compacted = books.next_run()
    assert kinds(compacted) == expected(("missing_in_ledger", payment("lost")), ("duplicate_in_ledger", payment("a")))
    assert doubts(compacted) == []

    books.produce(payment("d"))
    sink.append(payment("d"))
    sink.expire_all_but(1)
    read_before = books.next_run()
    assert (read_before.result.verdict, doubts(read_before)) == (Verdict.MATCHED, [])


def test_a_snapshot_that_expired_unread_is_said_and_its_rows_are_not_called_lost(
    books: LiveBooks, sink: IcebergSink
) -> None:
    books.take_cut()
    books.produce(*payments("a", "b"))
    sink.append(payment("a"))
    sink.append(payment("b"))
    sink.expire_all_but(1)
    run = books.next_run()
    assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
    assert "snapshot with sequence number 1: expired before a cut read what they appended" in said(run)

    books.produce(payment("c"))
    sink.append(payment("c"))
    cut = books.take_cut()
    sink.append(payment("later"))
    sink.expire_all_but(1)
    after_the_cut = books.judge(cut)
    assert (after_the_cut.result.verdict, after_the_cut.result.breaks) == (Verdict.INCONCLUSIVE, ())
    assert "was expired or rolled back since the cut" in said(after_the_cut)


def test_rows_that_are_deleted_are_said_and_the_events_of_others_are_paired(
    books: LiveBooks, sink: IcebergSink, spark: SparkSession
) -> None:
    books.take_cut()
    books.produce(*payments("a", "b"))
    sink.append(*payments("a", "b"))
    assert books.next_run().result.verdict is Verdict.MATCHED

    books.produce(payment("c"))
    sink.append(payment("c"))
    sink.delete(payment("a"))
    run = books.next_run()
    assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
    assert "is no append: overwrite" in said(run)
    assert "1 rows written and 2 taken away" in said(run)

    books.produce(payment("f"))
    sink.append(payment("f"))
    sink.delete_by_position(spark, payment("b"))
    by_position = books.next_run()
    assert (by_position.result.verdict, by_position.result.breaks) == (Verdict.INCONCLUSIVE, ())
    assert "is no append: delete of 0 rows written and 1 taken away" in said(by_position)

    books.produce(payment("d"))
    sink.append(payment("d"))
    once = books.next_run()
    assert (once.result.verdict, doubts(once)) == (Verdict.MATCHED, [])


def test_a_table_that_cannot_be_read_as_the_contract_says_is_refused(
    new_books: NewBooks, sink: IcebergSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"kind": "iceberg", "connection": LAKE, "table": NAME, "where": None}
    with new_books(direction="topic_to_ledger", ledger=document) as books:
        with pytest.raises(LedgerRefused, match=r"billing.posting: the catalog has no such table"):
            books.take_cut()
        sink.make(format_version="1")
        with pytest.raises(LedgerRefused, match="got format version 1"):
            books.take_cut()
        monkeypatch.setenv(environment_variable(LAKE), "no JSON")
        with pytest.raises(LedgerRefused, match="expected a JSON object of strings, the catalog's properties"):
            books.take_cut()
        away = IcebergSink(Path("/no/such/folder"))
        monkeypatch.setenv(environment_variable(LAKE), away.address)
        with pytest.raises(LedgerUnreachable, match=r"billing.posting: OperationalError"):
            books.take_cut()


def test_the_example_of_a_sinks_table_is_judged_on_the_command_line(
    books: LiveBooks, sink: IcebergSink, warm_spark: dict[str, str], tmp_path: Path
) -> None:
    example = yaml.safe_load((REPOSITORY / "docs" / "examples" / "iceberg_sink.yaml").read_text())
    assert Contract.model_validate(example).ledger.columns == books.contract.ledger.columns
    code, stdout, stderr = run_contract(books, tmp_path / "artifacts", warm_spark)
    assert code == 3, stdout + stderr
    books.produce(*payments("a", "b", "lost"))
    sink.append(*payments("a", "b"))
    sink.append(payment("b"))
    code, stdout, stderr = run_contract(books, tmp_path / "artifacts", warm_spark)
    assert code == 1, stdout + stderr
    assert "Missing in ledger: 1 break, 10.00 EUR" in stdout + stderr
    assert "Duplicate in ledger: 1 break, 10.00 EUR" in stdout + stderr
