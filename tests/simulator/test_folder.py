"""A folder in memory answers the product's questions as real Parquet files do, and its world's books are right."""

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.ledger.parquet import ParquetLedger
from tallystick.model.cut import LedgerSlice
from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.standins.parquet_ledger import WorldParquetLedger
from tests.simulator.world.clock import Clock
from tests.simulator.world.config import Config
from tests.simulator.world.contracts import contract_of
from tests.simulator.world.database import Row
from tests.simulator.world.folder import Folder
from tests.simulator.world.interleaving import Interleaving
from tests.unit.builders import ledger_slice_of

LEDGER = contract_of("topic_to_ledger", "parquet", 1).ledger


def commit(folder: Folder, *keys: str) -> list[int]:
    """One transaction's rows, as one file."""
    ids = [folder.insert("a", Row(0, key, f"pay-{key}", "payout", 100, "EUR", folder.clock.now_ms)) for key in keys]
    folder.commit("a")
    folder.clock.go(5)
    return ids


def a_folder() -> tuple[Folder, int]:
    """Three files, of which the second lost a row and the third was written twice; and when the second was written."""
    folder = Folder(clock=Clock())
    commit(folder, "ev-1")
    taken_until = folder.clock.now_ms
    _, gone = commit(folder, "ev-1", "ev-2")
    commit(folder, "ev-3")
    folder.copy_newest()
    folder.delete("b", gone)
    folder.commit("b")
    return folder, taken_until


def in_memory(folder: Folder, *slices: LedgerSlice) -> WorldParquetLedger:
    return WorldParquetLedger(
        address="/ledger",
        ledger=LEDGER,
        stored_slices=lambda: slices,
        now=lambda: folder.clock.now,
        database=folder,
        point=Interleaving(),
    )


def on_disk(folder: Folder, root: Path, *slices: LedgerSlice) -> ParquetLedger:
    below = root / LEDGER.table.replace(".", "/")
    below.mkdir(parents=True, exist_ok=True)
    for path, file in folder.files.items():
        rows = list(folder.rows_in([path]))
        columns = {
            "entry_id": [row.row_id for row in rows],
            "event_id": [row.match_key for row in rows],
            "payment_id": [row.transaction_key for row in rows],
            "leg": [row.leg for row in rows],
            "amount_minor": [row.amount_minor for row in rows],
            "currency": [row.currency for row in rows],
            "written_at": pa.array([row.written_ms for row in rows], pa.timestamp("ms", "UTC")),
        }
        pq.write_table(pa.table(columns), below / path)
        os.utime(below / path, ns=(file.modified_ns, file.modified_ns))
    return ParquetLedger(address=str(root), ledger=LEDGER, stored_slices=lambda: slices, now=lambda: folder.clock.now)


def sizes_left_out(ledger_slice: LedgerSlice) -> LedgerSlice:
    """A real file's bytes are its writer's."""
    return replace(ledger_slice, files=tuple(replace(file, size_bytes=0) for file in ledger_slice.files))


def test_a_folder_in_memory_answers_as_real_files_do(tmp_path: Path) -> None:
    folder, taken_until = a_folder()
    end = folder.clock.now_ms + 1
    asked = ledger_slice_of(taken_until, end, baseline=taken_until)
    before = ledger_slice_of(taken_until, taken_until, baseline=taken_until)
    told = []
    for ledger in (in_memory(folder, before), on_disk(folder, tmp_path, before)):
        own = ledger.fix(asked)
        told.append(
            (
                ledger.describe(),
                replace(ledger.read_snapshot(), system_identifier=""),
                sizes_left_out(own),
                ledger.keys_seen_before(own),
                ledger.keys_below(own, below=end),
                ledger.look_up_rows({"ev-1", "ev-2", "ev-3", "ev-4"}, own),
            )
        )
    assert told[0] == told[1]
    assert {key: len(rows) for key, rows in told[0][5].items()} == {"ev-1": 2, "ev-3": 2}


def test_whoever_changes_a_row_writes_its_file_anew() -> None:
    folder = Folder(clock=Clock())
    one, other = commit(folder, "ev-1", "ev-2")
    (path,) = folder.files
    before, touched = folder.files[path], folder.rows[other].xid
    folder.update("b", one, amount_minor=7)
    folder.commit("b")
    assert folder.files[path].modified_ns > before.modified_ns
    assert folder.files[path].size_bytes == before.size_bytes
    assert (folder.rows[one].amount_minor, folder.rows[other].xid > touched) == (7, True)


def test_a_file_whose_last_row_goes_is_not_there_any_more() -> None:
    folder = Folder(clock=Clock())
    (row_id,) = commit(folder, "ev-1")
    folder.delete("b", row_id)
    folder.commit("b")
    assert folder.files == {}


# Books over files.


BOTH = pytest.mark.parametrize("direction", ["topic_to_ledger", "ledger_to_topic"])


def doubts(play: Play) -> list[str]:
    runs = play.world.store.of("books").verdicts.values()
    of_every_book = ("baseline", "vacuous_run")
    return [str(one.doubt) for row in runs for one in row.result.doubts if one.doubt not in of_every_book]


def played(direction: str, *steps: object, carrier_mode: str = Config().carrier_mode) -> Play:
    config = Config(direction=direction, slice_by="parquet", carrier_mode=carrier_mode)
    play = Play(Schedule(config, tuple(steps_of(*steps))))  # type: ignore[arg-type]
    assert play.all() == []
    return play


@BOTH
@pytest.mark.usefixtures("in_the_world")
@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("wait", []),
        (("file_moved_in", 0, 1), []),
        ("file_written_twice", ["row_ids_repeat"]),
        ("file_added_to", ["ledger_rewritten"]),
    ],
)
def test_what_befalls_files_is_told_and_nothing_else(direction: str, step: object, told: list[str]) -> None:
    due = "half_trade" if direction == "topic_to_ledger" else "wait"
    new = "trade" if step == "file_written_twice" else due
    play = played(direction, "window", "trade", "window", new, step, "window")
    assert [one for one in doubts(play) if one != "partner_not_settled"] == told


_CLOSED = (("cluster_down", 0, 0, 20), "window", "close_cut", "cluster_down")


@pytest.mark.usefixtures("in_the_world")
@pytest.mark.parametrize("later", [_CLOSED, ("window", ("touch", 4, 0, 10), "window")], ids=["closed", "written again"])
@pytest.mark.parametrize("lost", [True, False], ids=["a new row without event", "no new row"])
def test_a_row_of_before_the_books_is_not_missing_whose_file_is_written_anew_before_a_cut_can_read_it(
    later: tuple[object, ...], lost: bool
) -> None:
    """Its event has expired. The files changed in a cut that people close; or the new one changes once more."""
    play = played(
        "ledger_to_topic",
        *("trade", "window", "window", ("retain", 0, 1), "rewrite", ("touch", 4, 0, 10), *later, "window", "window"),
        *(("half_trade", "lose") if lost else ()),
        *("window", "window", "window"),
    )
    runs = play.world.store.of("books").verdicts.values()
    told = [str(one.break_class) for row in runs for one in row.result.breaks]
    assert told == (["missing_in_topic_never_produced"] if lost else [])


@pytest.mark.usefixtures("in_the_world")
def test_an_event_is_missing_in_a_folder_whose_newest_file_is_written_on_at_each_cut() -> None:
    """One file was changed long ago; since then each cut has left one that the next one takes complete."""
    busy = ("trade", ("touch", 4, 0, 10), "window", ("touch", 4, 0))
    lost = ("half_trade", "lose")
    play = played(
        "ledger_to_topic",
        *("trade", "window", "window", ("retain", 0, 1), "rewrite", *4 * busy, *lost, *4 * busy),
        carrier_mode="at_most",
    )
    runs = play.world.store.of("books").verdicts.values()
    assert [str(one.break_class) for row in runs for one in row.result.breaks] == ["missing_in_topic_never_produced"]
