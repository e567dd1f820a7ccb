"""A host whose clock is wrong, by a library that turns it: the books go by the verdict store's clock."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.servers.process import REPOSITORY
from tallystick.model.cut import Cut
from tallystick.model.verdict import Verdict
from tallystick.store.runs.cut_store import read_cut
from tests.stack.live_books import LiveBooks, doubts, kinds, payment

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

LIBRARY = REPOSITORY / ".tools" / "libfaketime.so.1"
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def wrong_clock() -> Path:
    subprocess.run([sys.executable, REPOSITORY / "setup" / "faketime.py"], check=True)
    return LIBRARY


def cut_on_a_host(books: LiveBooks, folder: Path, library: Path, off: str) -> Cut:
    """The next cut, by the command, on a host whose clock is so much off."""
    environment = {
        **os.environ,
        "TALLYSTICK_STORE_DSN": books.store.url.render_as_string(hide_password=False),
        "TALLYSTICK_ARTIFACTS_DIR": str(folder),
        "LD_PRELOAD": str(library),
        "FAKETIME": off,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    command = [sys.executable, "-m", "tallystick", "cut", str(books.contract_file), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    cut = read_cut(books.store, books.contract.name, json.loads(done.stdout)[0]["cut"])
    assert cut is not None
    return cut


def test_a_host_that_is_two_minutes_ahead_takes_no_grace_away_and_is_told(
    new_books: NewBooks, tmp_path: Path, wrong_clock: Path
) -> None:
    with new_books(direction="topic_to_ledger", partner_grace_seconds=60) as books:
        books.take_cut()
        books.both(payment("a"))
        books.produce(payment("late"))
        assert books.next_run().result.verdict is Verdict.MATCHED

        books.both(payment("b"))
        ahead = books.judge(cut_on_a_host(books, tmp_path, wrong_clock, "+120s"))
        assert (kinds(ahead), doubts(ahead)) == ([], [])
        assert ahead.result.figures.in_flight_items == 1
        assert ahead.cut.window_end_utc < ahead.cut.now_utc < datetime.now(UTC)
        (told,) = (one for one in ahead.result.notices if one.notice == "host_clock_off")
        assert told.sentence.startswith("The clock of the host that made this cut is 1")
        assert "ahead of the verdict store's" in told.sentence

        books.post(payment("late"))
        behind = books.judge(cut_on_a_host(books, tmp_path, wrong_clock, "-120s"))
        assert (behind.result.verdict, behind.result.figures.in_flight_items) == (Verdict.MATCHED, 0)
        assert -122_000 < (behind.cut.host_ahead_ms or 0) < -110_000
        books.both(payment("c"))
        assert [one for one in books.next_run().result.notices if one.notice == "host_clock_off"] == []
