"""Files in a real store of objects: whole or not at all, read back byte by byte, and each fault in words."""

import json
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.servers.object_store import ObjectStoreServer
from tallystick.alerting.alert_json import SinkFailed
from tallystick.alerting.sinks.file import FileSink
from tallystick.contract.contract import Contract
from tallystick.documents.breaks_parquet import add_breaks_file, breaks_file, breaks_place
from tallystick.host.artifacts import (
    ArtifactMissing,
    ArtifactsUnreachable,
    ObjectPlace,
    Place,
    artifacts_place,
    copies_of,
    delete_folder,
    folders_in,
    is_there,
    names_below,
    read_bytes,
    send,
    send_folder,
    whole_file,
)
from tallystick.ledger.key_index import commit_index, delete_expired, index_folder, readable_indexes
from tallystick.model.stored_run import StoredRun
from tallystick.report.write_report import render_report, report_path, write_report
from tallystick.store.retention.prune_artifacts import prune_artifacts
from tallystick_expectations.docs_index import write_index
from tallystick_expectations.docs_pages import docs_pages
from tallystick_spark.readers.key_index_files import IndexWriter
from tests.unit.alerting.sinks.receivers import ALERT


class Torn(Exception):
    """The writer died."""


def write(place: ObjectPlace, text: str) -> None:
    with whole_file(place) as unfinished:
        unfinished.write_text(text)


def test_a_file_is_read_back_as_it_was_written_also_by_another_process(place: ObjectPlace) -> None:
    write(place / "a" / "b.html", "<p>ü</p>")
    elsewhere = pickle.loads(pickle.dumps(place / "a" / "b.html"))
    assert (elsewhere, read_bytes(elsewhere)) == (place / "a" / "b.html", "<p>ü</p>".encode())
    assert is_there(elsewhere)
    assert not is_there(place / "a")


def test_what_is_not_written_to_its_end_is_not_there_and_leaves_what_was(place: ObjectPlace) -> None:
    for before in (None, b"before"):
        with pytest.raises(Torn), whole_file(place / "a.txt") as unfinished:
            unfinished.write_text("half")
            raise Torn
        if before is None:
            with pytest.raises(ArtifactMissing, match=r"a\.txt: no such file lies there"):
                read_bytes(place / "a.txt")
            write(place / "a.txt", "before")
        else:
            assert read_bytes(place / "a.txt") == before


KILLED = """
import os, signal, sys
from tallystick.host import artifacts

place, path = artifacts.artifacts_place() / "large", artifacts.Path(sys.argv[1])
with artifacts._asked(place) as (system, key):
    sink = system.open_output_stream(key)
    sink.write(path.read_bytes())
    print("written", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_while_it_sends_leaves_what_was(
    place: ObjectPlace, settings: dict[str, str], tmp_path: Path
) -> None:
    """Some 40 MB are sent in parts by then; only the call that completes the object is missing."""
    large = tmp_path / "large"
    large.write_bytes(bytes(40 << 20))
    for before in (None, b"before"):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(large)],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert (done.returncode, done.stdout) == (-signal.SIGKILL, "written\n"), done.stderr
        if before is None:
            assert names_below(place) == []
            write(place / "large", "before")
        else:
            assert read_bytes(place / "large") == before
    send(large, place / "large")
    assert read_bytes(place / "large") == large.read_bytes()


def test_an_interrupt_while_a_file_is_sent_leaves_no_half(
    place: ObjectPlace, settings: dict[str, str], tmp_path: Path
) -> None:
    """A stream that is dropped completes its object, with what it was given by then."""
    large = tmp_path / "large"
    large.write_bytes(bytes(80 << 20))
    sending = subprocess.Popen(
        [sys.executable, "-c", SENDS, str(large)],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert sending.stdout is not None
    assert sending.stdout.readline() == b"sending\n"
    sending.send_signal(signal.SIGINT)
    _, told = sending.communicate(timeout=120)
    assert sending.returncode != 0 and b"KeyboardInterrupt" in told
    assert names_below(place) == [] or len(read_bytes(place / "large")) == large.stat().st_size


SENDS = """
import sys
from tallystick.host import artifacts

place = artifacts.artifacts_place()
artifacts.names_below(place)
print("sending", flush=True)
artifacts.send(artifacts.Path(sys.argv[1]), place / "large")
"""


def test_an_interrupt_at_each_line_of_sending_leaves_no_half(
    place: ObjectPlace, settings: dict[str, str], tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"all of it")
    sent = subprocess.run(
        [sys.executable, "-c", SENDS_INTERRUPTED, str(small)],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        timeout=120,
        check=True,
    )
    lines = int(sent.stdout)
    assert lines > 8
    there = names_below(place)
    assert f"{lines + 1}" in there
    assert {read_bytes(place / name) for name in there} == {small.read_bytes()}


SENDS_INTERRUPTED = """
import itertools, os, signal, sys, threading
from tallystick.host import artifacts

def interrupting_at(number):
    lines = itertools.count(1)

    def trace(frame, event, _):
        if frame.f_code.co_filename != artifacts.__file__:
            return None
        if event == "line" and next(lines) == number:
            os.kill(os.getpid(), signal.SIGINT)
        return trace

    return trace

place = artifacts.artifacts_place()
artifacts.names_below(place)
for number in itertools.count(1):
    interrupting = interrupting_at(number)
    threading.settrace(interrupting)
    try:
        sys.settrace(interrupting)
        artifacts.send(artifacts.Path(sys.argv[1]), place / f"{number}")
        break
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
print(number - 1)
"""
"""Sends a file once for each line of ours that this takes, interrupted there, and once more; prints how many lines."""


def test_folders_are_listed_and_deleted_and_one_that_is_not_there_is_empty(place: ObjectPlace) -> None:
    assert (names_below(place), folders_in(place)) == ([], [])
    delete_folder(place / "nothing")
    for name in ("cut=1/x.parquet", "cut=1/deep/y.parquet", "cut=2/x.parquet"):
        write(place / name, name)
    assert names_below(place) == ["cut=1/deep/y.parquet", "cut=1/x.parquet", "cut=2/x.parquet"]
    assert folders_in(place) == ["cut=1", "cut=2"]
    delete_folder(place / "cut=1")
    assert names_below(place) == ["cut=2/x.parquet"]


def test_copies_are_fetched_once_and_what_is_missing_stays_away(place: ObjectPlace) -> None:
    write(place / "a" / "x", "first")
    with copies_of(place) as copies:
        copies.fetch(["a/x", "a/y"])
        assert [path.name for path in copies.folder.rglob("*") if path.is_file()] == ["x"]
        assert copies.origin_of(copies.folder / "a" / "x") == place / "a" / "x"
        write(place / "a" / "x", "second")
        assert (copies.fetch_folder(place / "a") / "x").read_text() == "first"
        folder = copies.folder
    assert not folder.exists()


def test_an_account_that_is_refused_is_told_without_its_key(settings: dict[str, str], s3: ObjectStoreServer) -> None:
    wrong = settings | {"TALLYSTICK_CONN_ARTIFACTS_S3": json.dumps(s3.keywords() | {"secret_key": "wr0ng" * 8})}
    place = artifacts_place(wrong)
    with pytest.raises(ArtifactsUnreachable) as told:
        read_bytes(place / "a")
    assert "its account may read" in str(told.value)
    assert "wr0ng" not in str(told.value) and s3.access_key not in str(told.value)
    assert "wr0ng" not in repr(place)


def test_a_store_that_is_gone_is_told_and_has_all_it_had(
    place: ObjectPlace, s3: ObjectStoreServer, tmp_path: Path
) -> None:
    write(place / "kept", "kept")
    (tmp_path / "new").write_text("new")
    s3.stop()
    try:
        for asked in (
            lambda: read_bytes(place / "kept"),
            lambda: write(place / "kept", "other"),
            lambda: is_there(place / "kept"),
            lambda: names_below(place),
            lambda: delete_folder(place),
            lambda: send_folder(tmp_path, place, last="new"),
        ):
            with pytest.raises(ArtifactsUnreachable, match=f"^{place}"):
                asked()
        with pytest.raises(SinkFailed, match="store of artifacts"):
            FileSink(name="file", path=place / "alerts.jsonl").deliver(ALERT)
    finally:
        s3.start()
    assert names_below(place) == ["kept"]
    assert read_bytes(place / "kept") == b"kept"


def test_the_report_and_the_breaks_of_a_run_are_there_and_the_same_when_written_again(
    place: ObjectPlace, broken_run: StoredRun, contract: Contract
) -> None:
    result = broken_run.result
    page = write_report(broken_run, contract, place)
    assert page == report_path(place, result.contract, result.cut_n)
    assert read_bytes(page).decode() == render_report(broken_run, contract)
    add_breaks_file(result, contract, place)
    first = read_bytes(breaks_place(place, result.contract, result.cut_n))
    with breaks_file(result, contract, place):
        pass
    assert read_bytes(breaks_place(place, result.contract, result.cut_n)) == first
    with pytest.raises(Torn), breaks_file(replace(result, cut_n=99), contract, place):
        raise Torn
    assert not is_there(breaks_place(place, result.contract, 99))


def test_each_alert_is_an_object_and_a_second_delivery_the_same_one(place: ObjectPlace) -> None:
    sink = FileSink(name="file", path=place / "alerts.jsonl")
    for alert in (ALERT, ALERT, replace(ALERT, summary="another")):
        sink.deliver(alert)
    told = [json.loads(read_bytes(place / "alerts.jsonl" / name)) for name in names_below(place / "alerts.jsonl")]
    assert sorted(one["summary"] for one in told) == sorted(["another", ALERT.summary])


def test_the_data_docs_of_two_machines_have_one_first_page(place: ObjectPlace) -> None:
    for cut in (1, 2):
        with docs_pages(place, "billing") as pages:
            page = pages / "validations" / "figures" / f"cut {cut}" / "at" / "x.html"
            page.parent.mkdir(parents=True)
            page.write_text("page")
            write_index(pages)
    first = read_bytes(place / "data_docs" / "billing" / "index.html").decode()
    assert first.index("cut 2") < first.index("cut 1")


SEED = 7


def index(folder: Place, key: str) -> None:
    writer = IndexWriter(folder=folder, seed=SEED)
    writer.add("billing", 0, [key.encode()], np.zeros(1, dtype=np.int64))
    writer.close()


def test_an_index_is_whole_lost_or_expired_as_in_a_folder(place: ObjectPlace) -> None:
    stored = {}
    for number in (1, 2, 3):
        folder = index_folder(place, "billing", number, attempt=2)
        index(folder, f"key-{number}")
        index(index_folder(place, "billing", number, attempt=1), "of an attempt that was stopped")
        with copies_of(place) as copies:
            here = copies.fetch_folder(folder)
            stored[number] = commit_index(copies.folder, here, copies=1, kept_from=number - 1, seed=SEED)
    (file,) = stored[2].files
    write(place / file.path, "of somebody else")
    with copies_of(place) as copies:
        copies.fetch(file.path for index in stored.values() for file in index.files)
        asked = readable_indexes(copies.folder, stored)
        assert asked.lost_cuts == (2,)
        assert set(asked.look_up(["key-3", "nowhere"])) == {"key-3"}
    assert delete_expired(place, "billing", 3, attempt=2, kept_from=2) == (1,)
    below = place / "key_index" / "billing"
    assert folders_in(below) == ["cut=2", "cut=3"]
    assert (folders_in(below / "cut=2"), folders_in(below / "cut=3")) == (["attempt=1", "attempt=2"], ["attempt=2"])


def test_the_objects_of_pruned_runs_go_and_all_others_stay(place: ObjectPlace) -> None:
    pruned = ("reports/payouts/6.html", "breaks/payouts/cut=6/a.parquet", "breaks/payouts/cut=6/b.parquet")
    stays = ("reports/payouts/7.html", "reports/refunds/6.html", "breaks/payouts/cut=7/a.parquet")
    for name in (*pruned, *stays):
        write(place / name, "x")
    assert prune_artifacts(place, "payouts", kept_from_cut_n=7, dry_run=True) == len(pruned)
    assert set(names_below(place)) == {*pruned, *stays}
    assert prune_artifacts(place, "payouts", kept_from_cut_n=7, dry_run=False) == len(pruned)
    assert set(names_below(place)) == {*stays}
