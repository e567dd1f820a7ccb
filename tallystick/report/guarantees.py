"""The guarantees behind a verdict, line by line, each with what enforces it. Pure."""

from collections.abc import Iterator

from tallystick.contract.compare import ComparedColumns
from tallystick.contract.contract import Contract
from tallystick.ledger.postgres_sql import written_xid_statements
from tallystick.model.direction import Direction
from tallystick.model.finding_names import Doubt
from tallystick.model.run_result import KeyIndex, RunFigures, RunResult
from tallystick.model.stored_run import StoredRun
from tallystick.report.lag_rows import grace_sentence
from tallystick.text.money import format_money
from tallystick.text.verdict_sentence import counted


def guarantees(run: StoredRun, contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield the guarantees behind the verdict; each line names what enforces it."""
    figures = run.result.figures
    if run.result.read_nothing:
        yield from _of_an_unread_cut(contract, figures)
        return
    yield "Read committed", _read_committed(run.result, contract)
    if contract.event.compared:
        yield "Compared columns", _compared(contract.event.compared)
    yield (
        "Each offset and each row once",
        "Slices are half-open and start where the previous cut ended; the store's keys refuse a gap or an overlap.",
    )
    if contract.input_topics:
        yield "Key index", _index_guarantee(contract, run.result.key_index)
    else:
        yield "Ledger slices", slice_guarantee(contract, figures)
        yield "Key index", _memory_guarantee(contract, run.result.key_index)
    first, last = ("topics", "ledger") if contract.direction is Direction.TOPIC_TO_LEDGER else ("ledger", "topics")
    if contract.input_topics:
        first, last = "input topics", "output topics"
    yield (
        "Captured in order",
        f"The side that is written first (the {first}) was captured last, after the {last}: "
        "the second side cannot be ahead of it.",
    )
    yield (
        "Grace",
        grace_sentence(
            run.result.lag, contract_seconds=contract.partner_grace_seconds, cap_seconds=contract.grace_cap_seconds
        )
        + f" A run waits up to {counted(contract.settle_timeout_seconds, 'second')} for open transactions.",
    )
    yield (
        "Empty windows",
        "Allowed, where cut and census prove that there was nothing."
        if contract.empty == "allowed"
        else "Refused: an empty side is never MATCHED, unless something on the other finds an open partner.",
    )
    yield "Repair", _repair(contract)


def _of_an_unread_cut(contract: Contract, figures: RunFigures) -> Iterator[tuple[str, str]]:
    """Say only what holds without a reader."""
    yield (
        "Read committed",
        "This run read nothing: no partition, no row and no key. It proves nothing of its window.",
    )
    yield "Each offset and each row once", "The slices of this cut are fixed, and the next cut starts where they end."
    if not contract.input_topics:
        yield "Ledger slices", slice_guarantee(contract, figures)
    yield "Repair", _repair(contract)


def _compared(columns: ComparedColumns) -> str:
    named = ", ".join(f"{name} ({rule.words})" for name, rule in zip(columns.names, columns.rules, strict=True))
    return f"Each pair agrees in its money and in {named}. What is changed there after that is not compared again."


def _read_committed(result: RunResult, contract: Contract) -> str:
    """True of every TALLYSTICK_SCAN, which no run stores."""
    census = result.figures.census
    if not census:
        return "No partition was read."
    other = [part for part in census if part.spark_rows != part.readable_records]
    by_client = [one for one in result.doubts if one.doubt is Doubt.READERS_DISAGREE and "client_rows" in one.details]
    bytes_seen = f"other bytes in {counted(len(by_client), 'partition')}" if by_client else "the same bytes"
    numbers = (
        f"in {counted(len(other), 'partition')} it read another number of records than it counted."
        if other
        else f"in {counted(len(census), 'partition')} it read as many records as it counted."
    )
    return (
        f"Tallystick read below the LSO and counted every offset there; {numbers} Kafka's own client, with "
        "isolation.level=read_committed asserted before its first record, read at most 10,000 of these offsets"
        f"{' a side' if contract.input_topics else ''} again and saw {bytes_seen}. Where TALLYSTICK_SCAN asks for it, "
        "that client read all records instead, and Tallystick only counted."
    )


def slice_guarantee(contract: Contract, figures: RunFigures) -> str:
    """Say how the ledger is sliced, how strong that is, and what it cannot see."""
    if contract.ledger.kind == "jdbc":
        return _by_column(contract, figures)
    if contract.ledger.kind == "parquet":
        return (
            "By path and modification manifest: each file is read once, by the first cut that found it left alone for "
            f"{counted(contract.ledger.quiet_seconds or 0, 'second')}, whenever it came. It rests on files that are "
            "not written to after that: one that changed, came back or went is reported with before and after, by size "
            "and modification, and what was added to it is in no cut. A file that went before any cut took it, and "
            "one that was rewritten with the same size and time, are not seen."
        )
    if contract.ledger.kind == "iceberg":
        return (
            "By snapshots of the table: a snapshot is in sight when it is committed, and its rows belong to the cut "
            "that ends behind it, whatever order they were written in. It rests on a table that is only appended to. A "
            "compaction moves rows to other files and changes nothing here. A snapshot that deletes or overwrites, one "
            "that was expired before a cut had read it, and one that was rolled back are said in words, and leave "
            "the run inconclusive: which rows they held or took is not told. How rows were changed by hand inside data "
            "files is not seen. A row older than the oldest snapshot that the table keeps has no place, so a second "
            "copy of it may be a doubt where it would be a break."
        )
    standby = _ON_STANDBY if contract.ledger.primary_connection else ""
    if contract.ledger.slice_by == "written_xid":
        return f"{_by_written_xid(contract)}{standby}"
    add, default = written_xid_statements(contract.ledger.table)
    return (
        "By horizon: below it every transaction has ended. By xmin, the transaction that wrote "
        f"the row. Holds for append-only tables; of the rows older than this slice, {_older(figures)}, so that a "
        "changed or deleted one shows once, but not a deleted one beside one that comes in with an old id; each run "
        f"scans the table for that. Faster, and for rows "
        f"that change too: {add} {default} Apart and in this order neither rewrites the table; rows that are there "
        "already get no id and count as before the baseline. Then begin a contract under a new name with slice_by: "
        f"written_xid.{standby}"
    )


_ON_STANDBY = (
    " Rows were read on a standby, up to its own horizon: what had ended and was replayed there. How far the window "
    "reaches is what its primary had given out by the window's end; what was not replayed yet is held back, and never "
    "missing. A standby that is further back than the newest cut, or on another timeline, is not read."
)


def _by_written_xid(contract: Contract) -> str:
    gone = (
        "Rows that are deleted later are not seen: the contract says that their owner archives them."
        if contract.ledger.earlier_rows == "archived"
        else "A row that was read and is deleted later shows in its slice's count, once."
    )
    return (
        "By horizon: below it every transaction has ended. By the column written_xid, which the row keeps when it "
        "is updated: a row belongs to the cut of the transaction that first wrote it. Each run counts all rows by "
        "the slice their ids lie in: a row without an id, with an older one or with one that was not given out yet"
        f" is in no cut, and is reported once, with the newest ids there. {gone} A deleted row and one that comes "
        f"into the same slice between two runs cancel out. {_changed_rows(contract)} A row that takes the place of "
        "a paired one has its money compared with the event, while the log retains it. An index on written_xid "
        "reads the slice alone, and one with the contract's condition counts without the table."
    )


def _changed_rows(contract: Contract) -> str:
    windows = contract.ledger.compared_windows
    if not windows:
        return "Not seen: a row whose amount, currency or key is changed after it was paired."
    return (
        f"What the rows of {counted(windows, 'window')} back say is read again and compared, so that one that is "
        "changed shows, once; one that is changed later, or before its own run is done, is not seen."
    )


def _by_column(contract: Contract, figures: RunFigures) -> str:
    ledger = contract.ledger
    if ledger.by_innodb:
        return (
            "By horizon: below it every transaction has ended, by a snapshot of InnoDB's own. By the column "
            f"{ledger.order_by}, into which the server writes the id of the transaction that wrote the row. Holds for "
            "append-only tables: an updated row gets a new id. Of the rows below this slice "
            f"{_older(figures)}, so that one that came or went shows, and one of each too, by their sum. Not sound for "
            "one moment: where the server crashes before anybody has committed behind a transaction that was rolled "
            "back, it gives that id out again; a row that gets it lies below what was read, and shows in that count."
        )
    return (
        f"By the column {ledger.order_by} with an overlap of {ledger.overlap}, weaker than a horizon: that no row "
        "comes into sight further behind the newest one is the contract's word, the database cannot tell. What comes "
        f"later is in no cut; of the rows below this slice {_older(figures)}, so that one that came or went shows, "
        "and of integers one of each too, by their sum. That a backup was put back shows by the newest rows that were "
        "read. A row that is changed in place, its column apart, is not seen, nor is another server that has those "
        "newest rows."
    )


def _older(figures: RunFigures) -> str:
    return "none were counted" if figures.ledger_older_rows is None else f"{figures.ledger_older_rows:,} were counted"


def _memory_guarantee(contract: Contract, index: KeyIndex | None) -> str:
    """What is known of keys that log and ledger have forgotten."""
    if index is None:
        return "None: this run is older than the key index. Keys that log and ledger had deleted were not known."
    return (
        "96 bits of a hash of each event's key, with its place, a window at a time. Each event is compared with those "
        f"of the last {counted(contract.ledger.index_windows, 'window')}: one that comes again is a duplicate, "
        "whatever retention or archiving has taken since. A key that comes again after that, or whose first copy an "
        "older run has read, is found while its first row stands, or where it comes on one side alone and the log "
        f"retains its first event; where that row went, a new pair of it is not seen.{_size_of(index)}"
    )


def _size_of(index: KeyIndex | None) -> str:
    if index is None:
        return ""
    each = f", {index.size_bytes / index.copies:.1f} bytes a copy" if index.copies else ""
    return f" This window's holds {counted(index.copies, 'copy')} in {index.size_bytes:,} bytes{each}."


def _index_guarantee(contract: Contract, index: KeyIndex | None) -> str:
    return (
        "128 bits of the SHA-256 of each key of either side, with its place, a window at a time. A key is looked up in "
        f"the last {counted(contract.ledger.index_windows, 'window')} and on the input's retained log. An output whose "
        "input is in neither is a phantom only if they reach back to the input's first offset. Otherwise "
        f"the run is INCONCLUSIVE. A key that comes again beyond the index's reach is not known again."
        f"{_size_of(index)}"
    )


def _repair(contract: Contract) -> str:
    rules = contract.compensation
    if rules is None:
        return "The contract allows none."
    classes = ", ".join(rules.classes)
    caps = format_money(rules.max_amount_minor)
    return f"After approval, each once: {classes}; at most {counted(rules.max_items, 'event')} and {caps} a plan."
