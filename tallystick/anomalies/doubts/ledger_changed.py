"""Q2: the ledger is not what earlier cuts read, or not the same server any more."""

from collections.abc import Iterator
from datetime import UTC, datetime

from tallystick.anomalies.doubts.rows_out_of_place import changed_sentence, gone_sentence, unread_sentence
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import ClusterState
from tallystick.ledger.postgres_sql import written_xid_statements
from tallystick.matching.evidence import EarlierRun, LookedUp, UnmatchedItems
from tallystick.matching.match_case import MatchStatus, RecordLocation
from tallystick.model.cut import Cut, FileChange, LedgerAnchor, LedgerFile, LedgerSnapshot, is_failed_over, reuses_ids
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.open_item import ItemSide
from tallystick.text.plain import format_time
from tallystick.text.verdict_sentence import counted

_EPOCH = 2**32


def ledger_rewritten(
    contract: Contract,
    cut: Cut,
    earlier: EarlierRun,
    unmatched: UnmatchedItems,
    looked_up: LookedUp,
    cluster: ClusterState,
) -> Iterator[DoubtFound]:
    """Doubt a ledger whose rows older than the slice are not those of all earlier cuts: an append-only table keeps
    them.

    An UPDATE, DELETE or rewrite moves rows between slices, which would read as missing or duplicate. Source: PostgreSQL
    manual, system columns: xmin is the transaction that wrote this version of the row. Read by a column that grows, a
    row that comes later than the overlap allows shows here too.
    """
    yield from _changed_snapshots(contract, cut, cluster)
    yield from _rows_out_of_place(contract, looked_up)
    yield from _newest_went(contract, cut)
    now, expected = looked_up.older_rows, earlier.older_rows_expected
    if now is None or expected is None or now == expected:
        yield from _other_rows(contract, looked_up, cluster)
        return
    by_xmin = contract.ledger.by_xmin
    yield DoubtFound(
        doubt=Doubt.LEDGER_REWRITTEN,
        sentence=f"ledger: {now} rows are older than this slice, earlier cuts read {expected}: "
        f"{_by_xmin(contract, cut, unmatched, now, expected) if by_xmin else _by_column(contract, now, expected)}",
        details={"older_rows": now, "expected": expected, "updated_rows_seen": _written_anew(unmatched)},
    )


def _rows_out_of_place(contract: Contract, looked_up: LookedUp) -> Iterator[DoubtFound]:
    """Count rows that no cut reads, and rows that are gone. By written_xid the owner's column says a row's place."""
    archived = contract.ledger.earlier_rows == "archived"
    places = [one for one in looked_up.rows_out_of_place if not (archived and one.gone)]
    said = [unread_sentence(places)] if any(one.surplus for one in places) else []
    said += [gone_sentence(places)] if any(one.gone for one in places) else []
    said += [changed_sentence(places)] if any(one.says_otherwise for one in places) else []
    if said:
        yield DoubtFound(
            doubt=Doubt.LEDGER_REWRITTEN,
            sentence=f"ledger: {'. '.join(said)}.",
            details={"places": [{**vars(one), "row_ids": list(one.row_ids)} for one in places]},
        )


def _changed_snapshots(contract: Contract, cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """Say which snapshots of an Iceberg table did more than append, or went unread; of other files what changed."""
    if contract.ledger.kind != "iceberg":
        yield from _changed_files(cut, cluster)
        return
    told = [one.after.path for one in (*cut.ledger_slice.changed, *cluster.ledger_files) if one.after]
    if told:
        yield DoubtFound(
            doubt=Doubt.LEDGER_REWRITTEN,
            sentence=f"ledger: {'; '.join(told[:_FILES_TOLD])}{'; and more' * (len(told) > _FILES_TOLD)}. No row is "
            "called lost for that, and which rows it took or held is not known. What to do: keep snapshots for longer "
            "than the longest time between two runs, and let only the sink write, which appends.",
            details={"snapshots": told},
        )


def _changed_files(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """Say that a file changed after it was read. Files are read once each: rows that it has since are in no cut."""
    changed = (*cut.ledger_slice.changed, *cluster.ledger_files)
    if changed:
        yield DoubtFound(
            doubt=Doubt.LEDGER_REWRITTEN,
            sentence=f"ledger: {counted(len(changed), 'file')} that a cut had taken changed: "
            f"{'; '.join(map(_file_change_text, changed[:_FILES_TOLD]))}{'; and more' * (len(changed) > _FILES_TOLD)}. "
            "What was read of them stands, and no cut reads them again. What to do: write what is new to new files.",
            details={"files": [_file_change_text(one) for one in changed]},
        )


_FILES_TOLD = 5


def _file_change_text(change: FileChange) -> str:
    one = change.before or change.after
    path = one.path if one else ""
    return f"{path} had {_file_text(change.before)}, now {_file_text(change.after)}"


def _file_text(file: LedgerFile | None) -> str:
    if file is None:
        return "nothing"
    return f"{file.size_bytes:,} bytes of {format_time(datetime.fromtimestamp(file.modified_ns // 10**9, UTC))}"


def _other_rows(contract: Contract, looked_up: LookedUp, cluster: ClusterState) -> Iterator[DoubtFound]:
    """Say that the older rows are as many as before, and not the same ones: a count alone does not see it."""
    sums = cluster.ledger_sums
    both = ((sums.expected, sums.now), (sums.scattered_expected, sums.scattered_now)) if sums else ()
    differ = next((pair for pair in both if None not in pair and pair[0] != pair[1]), None)
    if differ is not None:
        yield DoubtFound(
            doubt=Doubt.LEDGER_REWRITTEN,
            sentence=f"ledger: {looked_up.older_rows} rows are older than this slice, as many as earlier cuts read, "
            f"and not the same: at least one row went, and another came in {_too_late(contract)}, or took other "
            f"{contract.ledger.positions}.",
            details={"sum": differ[1], "expected_sum": differ[0]},
        )


def _newest_went(contract: Contract, cut: Cut) -> Iterator[DoubtFound]:
    """Say that the largest value fell below what was read: new rows may be given the same values, and no cut reads
    those.
    """
    ledger, ledger_slice = contract.ledger, cut.ledger_slice
    end, read_up_to = ledger_slice.snapshot.high_mark, ledger_slice.position_start
    if ledger.kind == "iceberg" and end < read_up_to:
        yield DoubtFound(
            doubt=Doubt.LEDGER_REWRITTEN,
            sentence=f"ledger: the table's newest snapshot has sequence number {end - 1}, and cuts have read up to "
            f"{read_up_to - 1}: the table was rolled back or made anew. What earlier cuts have read stays judged.",
            details={"newest": end - 1, "read_up_to": read_up_to},
        )
    if ledger.kind == "jdbc" and not ledger.by_innodb and end < read_up_to:
        yield DoubtFound(
            doubt=Doubt.LEDGER_REWRITTEN,
            sentence=f"ledger: the newest row stands at {end - 1}, and cuts have read up to {read_up_to - 1}: "
            f"the newest rows were deleted. A row that is given one of these {ledger.positions} again is in no cut; "
            "what earlier cuts have read stays judged. What to do: an overlap larger than what is deleted at the end.",
            details={"newest": end - 1, "read_up_to": read_up_to},
        )


def _by_column(contract: Contract, now: int, expected: int) -> str:
    """Say that a late row is in no cut: if it lacks an event on the topic, that is never found."""
    ledger = contract.ledger
    if now > expected:
        return (
            f"{counted(now - expected, 'row')} came in {_too_late(contract)}, and "
            "no cut has read them. Look-ups know them, so no event of theirs is called a break; what they lack "
            f"themselves is not found.{_cure(contract)}"
        )
    return (
        f"{counted(expected - now, 'row')} went: deleted, or given another {ledger.order_by}. So what earlier cuts "
        "paired may be there again, or nowhere."
    )


def _too_late(contract: Contract) -> str:
    if contract.ledger.by_innodb:
        return "with transaction ids that a crash of the server took back and gave out again"
    return f"later than the overlap of {contract.ledger.overlap_text} allows"


def _cure(contract: Contract) -> str:
    cure = " What to do: a larger overlap, in a contract under a new name."
    return "" if contract.ledger.by_innodb else cure


def _by_xmin(contract: Contract, cut: Cut, unmatched: UnmatchedItems, now: int, expected: int) -> str:
    add, default = written_xid_statements(contract.ledger.table)
    which = _more(now - expected) if now > expected else _fewer(cut, unmatched, expected - now)
    return (
        f"{which}. So the slice by xmin proves nothing. Where rows change, new books with slice_by: written_xid prove "
        f"all the same, once the table has the column: {add} {default}"
    )


def _more(rows: int) -> str:
    """Say that older rows were added. An id is given to a row once, so old rows that are new here came
    from elsewhere.
    """
    return (
        f"{counted(rows, 'row')} came in with old transaction ids: a partition was attached, a copy restored, or ids "
        "were given out again"
    )


def _fewer(cut: Cut, unmatched: UnmatchedItems, rows: int) -> str:
    """Say that older rows are missing. An updated row has left its slice for a newer one; a deleted one is gone."""
    seen = min(rows, _written_anew(unmatched))
    parts = [f"{counted(seen, 'row')} stood in this slice again, so updated"] if seen else []
    if rows > seen:
        parts.append(f"{counted(rows - seen, 'row')} deleted, or updated where no event of theirs shows it")
    if cut.ledger_slice.position_end > _EPOCH:
        parts.append("or, from 2^32 ids on, so old that a row of this slice has the same 32 bits")
    return ", ".join(parts)


def _written_anew(unmatched: UnmatchedItems) -> int:
    """Return rows of this slice that the ledger has once and whose event an earlier cut had read and paired."""
    return sum(
        any(one.side is ItemSide.TOPIC and one.place is RecordLocation.EARLIER_SLICE for one in residue.lookup_hits)
        for fate in (MatchStatus.UNDECIDABLE, MatchStatus.UNEQUAL)
        for residue in unmatched.of(fate, ItemSide.LEDGER)
        if residue.copy.carried is None
    )


def ledger_failed_over(cut: Cut, earlier: EarlierRun, cluster: ClusterState) -> Iterator[DoubtFound]:
    """Doubt another system or timeline: it may give transaction ids out again, so the slice must not be trusted.

    Asked of the server that the cut was made on, and of the one that was read for it.
    """
    for before, now, _ in _steps(cut, earlier, cluster):
        if is_failed_over(before, now):
            yield DoubtFound(
                doubt=Doubt.LEDGER_FAILED_OVER,
                sentence=f"ledger: system {now.system_identifier} on timeline {now.timeline}, it was system "
                f"{before.system_identifier} on timeline {before.timeline} before: transaction ids may have been given "
                "out again, and what the old server had not handed over is gone.",
                details={"timeline": now.timeline, "previous_timeline": before.timeline},
            )
            return


def ledger_ids_reused(contract: Contract, cut: Cut, earlier: EarlierRun, cluster: ClusterState) -> Iterator[DoubtFound]:
    """Doubt a server whose horizon or log falls back. It is a copy of an earlier state: it now writes
    into old slices.
    """
    for before, now, read_up_to in _steps(cut, earlier, cluster):
        if reuses_ids(before, now, read_up_to=read_up_to):
            yield DoubtFound(
                doubt=Doubt.LEDGER_IDS_REUSED,
                sentence=f"ledger: the horizon stands at {now.low_mark} ({now.lsn}), it stood at {before.low_mark} "
                f"({before.lsn}) before, and cuts have read up to {read_up_to}: {contract.ledger.positions} "
                "are given out again, and rows that get one below that are in no cut.",
                details={
                    "horizon": now.low_mark,
                    "previous_horizon": before.low_mark,
                    "lsn": now.lsn,
                    "previous_lsn": before.lsn,
                    "read_up_to": read_up_to,
                },
            )
            return
    yield from _anchors_lost(contract, cut, earlier, cluster)


def _anchors_lost(contract: Contract, cut: Cut, earlier: EarlierRun, cluster: ClusterState) -> Iterator[DoubtFound]:
    """Say that the newest rows that were read are gone or others, of a ledger whose server does not say so itself."""
    lost: tuple[LedgerAnchor, ...] = ()
    for one in (*earlier.unread, cut):
        if one.ledger_slice.lost:
            lost, read_up_to = one.ledger_slice.lost, one.ledger_slice.position_start
    if cluster.ledger_lost:
        lost, read_up_to = cluster.ledger_lost, cut.ledger_slice.position_end
    if lost:
        rows = "; ".join(f"row {one.row_id}" + (f" at {one.position}" if one.position else "") for one in lost)
        yield DoubtFound(
            doubt=Doubt.LEDGER_IDS_REUSED,
            sentence=f"ledger: of the newest rows that cuts have read some are gone, or have another key ({rows}): the "
            "table was put back to an earlier state, or its newest rows were deleted or changed. Rows that are given "
            f"{contract.ledger.positions} below {read_up_to} again are in no cut.",
            details={"row_ids": [one.row_id for one in lost], "read_up_to": read_up_to},
        )


def _steps(
    cut: Cut, earlier: EarlierRun, cluster: ClusterState
) -> Iterator[tuple[LedgerSnapshot, LedgerSnapshot, int]]:
    """Yield the server before, the server after, and the position read up to by then: cut to cut, those too that were
    closed since a run has told of any, and cut to reading.
    """
    ledger, read, before = cut.ledger_slice, cluster.ledger, earlier.ledger
    for one in (*earlier.unread, cut):
        if before is not None:
            yield before, one.ledger_slice.snapshot, one.ledger_slice.position_start
        before = one.ledger_slice.snapshot
    if read is not None:
        yield ledger.snapshot, read, ledger.position_end
