"""The lab's servers answer, keep their passwords, survive a kill, and leave nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from lab.servers.broker import DEFAULT_JARS
from lab.servers.broker_class_archive import make_archive
from lab.servers.process import REPOSITORY, port_answers, wait_until
from lab.servers.proxy import Loss, StallEnd
from lab.servers.stack import FolderInUse, LabStack, read_addresses, start_stack

pytestmark = [pytest.mark.stack, pytest.mark.lab]


def test_every_address_answers_with_its_own_rights(lab_stack: LabStack) -> None:
    for servers in (lab_stack.bootstrap_servers, lab_stack.proxied_bootstrap_servers):
        broker = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=10).brokers[1]
        assert f"{broker.host}:{broker.port}" == servers
    for dsn in (lab_stack.ledger_owner_dsn, lab_stack.ledger_reader_dsn, lab_stack.store_dsn, lab_stack.airflow_dsn):
        with psycopg.connect(dsn) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_broker_has_the_archive_of_its_classes_in_its_memory(lab_stack: LabStack) -> None:
    """Java maps it once it has found that it fits, and not before."""
    archive = lab_stack.broker.jars.with_suffix(".jsa")
    assert archive.is_file(), "make setup makes it, and says why not"
    assert lab_stack.broker.child is not None
    mapped = Path("/proc", str(lab_stack.broker.child.pid), "maps").read_text()
    assert str(archive.resolve()) in mapped, "it does not fit this Java or these jars; make setup makes another"


def test_an_archive_that_fits_no_more_gives_way_to_a_new_one(tmp_path: Path) -> None:
    jars, archive = tmp_path / "broker", tmp_path / "broker.jsa"
    jars.symlink_to(DEFAULT_JARS)
    archive.write_bytes(b"of another Java")
    make_archive(jars)
    assert archive.stat().st_size > 10_000_000
    assert {*os.listdir(tmp_path)} == {"broker", "broker.jsa"}


def test_a_wrong_password_is_refused(lab_stack: LabStack) -> None:
    password = lab_stack.ledger_server.passwords["tallystick_reader"]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(lab_stack.ledger_reader_dsn.replace(password, "wrong"))


def test_the_reader_sees_later_tables_and_changes_none(lab_stack: LabStack) -> None:
    with psycopg.connect(lab_stack.ledger_owner_dsn, autocommit=True) as owner:
        owner.execute("CREATE SCHEMA rights CREATE TABLE entry (id int)")
        owner.execute("INSERT INTO rights.entry VALUES (7)")
    with psycopg.connect(lab_stack.ledger_reader_dsn, autocommit=True) as reader:
        assert reader.execute("SELECT id, xmin::text::bigint > 2 FROM rights.entry").fetchone() == (7, True)
        for change in ("INSERT INTO rights.entry VALUES (8)", "CREATE TABLE rights.mine (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(change)


def test_a_killed_ledger_keeps_what_was_committed(lab_stack: LabStack) -> None:
    with psycopg.connect(lab_stack.ledger_owner_dsn) as owner:
        owner.execute("CREATE TABLE kept (id int)")
    lab_stack.ledger_server.kill()
    lab_stack.ledger_server.restart()
    with psycopg.connect(lab_stack.ledger_owner_dsn) as owner:
        assert owner.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_a_killed_broker_keeps_its_topics(lab_stack: LabStack) -> None:
    admin = AdminClient({"bootstrap.servers": lab_stack.bootstrap_servers})
    admin.create_topics([NewTopic("kept", num_partitions=1)])["kept"].result(30)
    lab_stack.broker.kill()
    lab_stack.broker.restart()
    assert "kept" in AdminClient({"bootstrap.servers": lab_stack.bootstrap_servers}).list_topics(timeout=10).topics


def test_the_proxy_loses_one_acknowledgement_of_a_write_that_happened(lab_stack: LabStack) -> None:
    admin = AdminClient({"bootstrap.servers": lab_stack.bootstrap_servers})
    admin.create_topics([NewTopic("acks", num_partitions=1)])["acks"].result(30)
    assert _produce(lab_stack, client_id="acks-first", retries=10) == [None]  # a new topic may refuse its first write
    lab_stack.proxy.arm("acks-writer")
    outcome = _produce(lab_stack, client_id="acks-writer")
    assert (len(outcome), outcome[0] is None, lab_stack.proxy.fired("acks-writer")) == (1, False, 1)
    assert _produce(lab_stack, client_id="acks-writer") == [None]  # armed once, fires once
    assert _produce(lab_stack, client_id="acks-neighbour") == [None]
    assert _end_offset(lab_stack, "acks") == 4


@pytest.mark.parametrize(
    ("end", "patience_seconds", "is_acknowledged", "written"),
    [(StallEnd.PASS, 30.0, True, 2), (StallEnd.LAST, 1.0, False, 2), (StallEnd.CUT, 30.0, False, 1)],
    ids=["goes on", "comes late, its writer gone", "is lost"],
)
def test_a_request_stands_still_until_the_proxy_is_told_what_becomes_of_it(
    lab_stack: LabStack, end: StallEnd, patience_seconds: float, is_acknowledged: bool, written: int
) -> None:
    topic, client_id = f"stall-{end}", f"stall-writer-{end}"
    admin = AdminClient({"bootstrap.servers": lab_stack.bootstrap_servers})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(30)
    assert _produce(lab_stack, client_id="stall-first", retries=10, topic=topic) == [None]
    lab_stack.proxy.arm(client_id, loss=Loss.STALL)
    outcome: list[object] = []
    producer = _producer(lab_stack, client_id, patience_seconds=patience_seconds)
    producer.produce(topic, b"x", on_delivery=lambda error, _: outcome.append(error))
    producer.poll(0)
    lab_stack.proxy.wait_fired(client_id, 1, loss=Loss.STALL)
    if end is StallEnd.LAST:
        producer.flush(20)
        assert len(outcome) == 1
    assert _end_offset(lab_stack, topic) == 1
    lab_stack.proxy.end_stall(client_id, end)
    producer.flush(20)
    assert [error is None for error in outcome] == [is_acknowledged]
    wait_until(lambda: _end_offset(lab_stack, topic) == written, what=f"{written} records in {topic}")


def test_nothing_is_left_after_the_block_or_an_error_in_it(lab_folder: Path) -> None:
    others = set(psutil.Process().children(recursive=True))
    family: set[psutil.Process] = set()
    with pytest.raises(ZeroDivisionError), start_stack(lab_folder) as stack:
        family = set(psutil.Process().children(recursive=True)) - others
        assert len(family) > 4
        with pytest.raises(FolderInUse), start_stack(lab_folder):
            pass
        _ = 1 // 0
    assert not [member for member in family if member.is_running()]
    assert not port_answers(stack.broker.port)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_after_a_signal_to_the_runner(lab_folder: Path, number: signal.Signals) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-m", "lab.servers.stack", "--folder", str(lab_folder)], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    try:
        assert runner.stdout is not None and runner.stdout.readline().startswith(b"ready")
        assert os.stat(lab_folder / "stack.json").st_mode & 0o777 == 0o600
        with psycopg.connect(read_addresses(lab_folder).ledger_reader_dsn):
            family = psutil.Process(runner.pid).children(recursive=True)
        runner.send_signal(number)
        assert runner.wait(20) == (-number if number is signal.SIGKILL else 0)
    finally:
        runner.kill()
        runner.wait()
    wait_until(lambda: not [m for m in family if m.is_running()], what="the children's end", deadline_seconds=20)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_round_that_is_cut_short(lab_folder: Path, number: signal.Signals) -> None:
    argv = [
        sys.executable,
        "-m",
        "lab.rounds.delivery_mode_round",
        "--mode=exactly_once",
        "--seed=1",
        f"--folder={lab_folder}",
    ]
    runner = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    family: list[psutil.Process] = []
    try:
        assert runner.stdout is not None
        while not runner.stdout.readline().startswith(b"written"):
            assert runner.poll() is None
        family = psutil.Process(runner.pid).children(recursive=True)
        assert len(family) > 12
        runner.send_signal(number)
        assert runner.wait(60) != 0
    finally:
        runner.kill()
        runner.wait()
    wait_until(lambda: not [m for m in family if m.is_running()], what="the children's end", deadline_seconds=20)


def _produce(stack: LabStack, *, client_id: str, retries: int = 0, topic: str = "acks") -> list[object]:
    outcome: list[object] = []
    producer = _producer(stack, client_id, retries=retries)
    producer.produce(topic, b"x", on_delivery=lambda error, _: outcome.append(error))
    producer.flush(20)
    return outcome


def _producer(stack: LabStack, client_id: str, *, retries: int = 0, patience_seconds: float = 300.0) -> Producer:
    return Producer(
        {
            "bootstrap.servers": stack.proxied_bootstrap_servers,
            "client.id": client_id,
            "message.send.max.retries": retries,
            "message.timeout.ms": int(patience_seconds * 1000),
            "log_level": 0,
        }
    )


def _end_offset(stack: LabStack, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": stack.bootstrap_servers, "group.id": "test"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        return int(end)
    finally:
        consumer.close()
