"""tallystick run and tallystick census, as processes, against a real broker and a real ledger."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tallystick.ledger.protocol import LedgerRefused
from tallystick.store.runs.run_store import read_run
from tallystick_spark.reconcile_app import CutJob, judge_stored_cuts
from tests.alert_receiver import receiving
from tests.stack.live_books import TWO_LEGS, LiveBooks, both_legs, payment

from .live import RUN_SETTINGS

NewBooks = Callable[..., AbstractContextManager[LiveBooks]]
SECONDS_MAX = 240
"""Per command; a JVM starts slowly where tests share two cores."""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def books(new_books: NewBooks) -> Iterator[LiveBooks]:
    sinks = [{"kind": "file", "path": "alerts.jsonl"}, {"kind": "webhook", "connection": "not_given"}]
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, alert={"sinks": sinks}) as opened:
        yield opened


@pytest.fixture
def submitting(books: LiveBooks, tmp_path: Path) -> dict[str, str]:
    """The environment of runs that start a Spark of their own."""
    return {
        **os.environ,  # new_books has put the connections there
        "TALLYSTICK_STORE_DSN": books.store.url.render_as_string(hide_password=False),
        "TALLYSTICK_ARTIFACTS_DIR": str(tmp_path),
        **RUN_SETTINGS,
    }


@pytest.fixture
def environment(submitting: dict[str, str], warm_spark: dict[str, str]) -> dict[str, str]:
    """The environment of runs that find Spark running."""
    return submitting | warm_spark


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tallystick", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(environment: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    process = start(environment, *arguments)
    try:
        stdout, stderr = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.send_signal(signal.SIGINT)  # to one that hangs; a process that has ended gets none
        process.wait()
    return process.returncode, stdout, stderr


def processes_of(contract_file: Path) -> list[str]:
    """Command lines of live processes that name this contract's file."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(contract_file) in line:
            found.append(line)
    return found


def test_the_whole_loop_without_airflow(
    books: LiveBooks, environment: dict[str, str], submitting: dict[str, str], tmp_path: Path
) -> None:
    contract_file, name = str(books.contract_file), books.contract.name

    code, _, stderr = run(environment, "run", contract_file)
    assert code == 3, stderr
    assert "the books begin here" in run(environment, "show", f"{name}/0")[1]

    books.both(*both_legs("first"))
    books.produce(*both_legs("aborted"), abort=True)
    code, stdout, stderr = run(submitting, "run", contract_file, "--json")
    assert code == 0, stderr
    document = json.loads(stdout)
    assert (document["verdict"], document["matched_rows"]) == ("MATCHED", 2)
    assert Path(document["report"]).is_file()
    assert "Both sides have settled" in stderr
    assert "Counted every offset: 0 unexplained" in stderr

    books.produce(*both_legs("lost"))
    code, stdout, stderr = run(environment, "run", contract_file)
    assert code == 1, stderr
    assert stdout.startswith(f"BROKEN  {name}/2")
    assert "Missing in ledger: 2 breaks, 20.00 EUR" in stdout
    assert "Alerts that nobody got yet: webhook:not_given" in stderr
    (alert,) = [json.loads(line) for line in (tmp_path / "alerts.jsonl").read_text().splitlines()]
    assert alert["dedup_key"] == f"tallystick/{name}/missing_in_ledger"

    code, _, stderr = run(environment, "run", contract_file, "--reread", "2")
    assert code == 1
    assert "Read again: the same digest" in stderr
    for secret in ("postgresql://", environment["TALLYSTICK_STORE_DSN"]):
        assert secret not in stderr


def test_a_window_that_its_own_suites_do_not_like_stays_matched_and_pages_until_one_is_liked(
    new_books: NewBooks, environment: dict[str, str], tmp_path: Path
) -> None:
    """The module is the owner's, on Python's path; the receiver is a real one."""
    package = tmp_path / "site" / "payment_suites.py"
    package.parent.mkdir()
    package.write_text(
        "import great_expectations as gx\n"
        "import great_expectations.expectations as gxe\n"
        "def suites():\n"
        "    two = gxe.ExpectColumnValuesToBeBetween(column='topic_keys', min_value=2, severity='info')\n"
        "    sides = {'column_A': 'topic_amount_minor', 'column_B': 'ledger_amount_minor'}\n"
        "    sums = gxe.ExpectColumnPairValuesToBeEqual(**sides)\n"
        "    window = gx.ExpectationSuite(name='w', expectations=[two])\n"
        "    return {'window': window, 'currencies': gx.ExpectationSuite(name='c', expectations=[sums])}\n"
    )
    sinks = [{"kind": "webhook", "connection": "own_pager"}]
    with (
        receiving() as receiver,
        new_books(direction="topic_to_ledger", expectations="payment_suites", alert={"sinks": sinks}) as books,
    ):
        pager = {"address": receiver.address}
        own = environment | {"PYTHONPATH": str(package.parent), "TALLYSTICK_CONN_OWN_PAGER": json.dumps(pager)}
        contract_file, name = str(books.contract_file), books.contract.name
        assert run(own, "run", contract_file)[0] == 3
        receiver.taken.clear()

        books.both(payment("one"))
        code, stdout, stderr = run(own, "run", contract_file, "--json")
        assert code == 0, stderr
        assert "Expectations of payment_suites: 1 expectation met, 1 not met" in stderr
        document = json.loads(stdout)
        page = Path(document["report"]).read_text()
        assert document["verdict"] == "MATCHED"
        assert "topic_keys values must be greater than or equal to 2" in page
        assert receiver.story == [("trigger", "expectation_not_met")]
        assert receiver.taken[0]["severity"] == "info"

        assert run(own, "run", contract_file, "--reread", "1")[0] == 0
        assert Path(document["report"]).read_text() == page

        books.both(payment("two"), payment("three"))
        code, _, stderr = run(own, "run", contract_file)
        assert code == 0, stderr
        assert "Expectations of payment_suites: 2 expectations met, 0 not met" in stderr
        assert receiver.story[1:] == [("resolve", "expectation_not_met")]
        second = read_run(books.store, name, 2)
        assert second is not None and second.result.summary is not None
        summary = second.result.summary
        assert (summary.topic.rows, summary.topic.keys, summary.ledger.keys) == (2, 2, 2)
        assert summary.topic.money == summary.ledger.money
        assert sum(one.rows for one in summary.partitions) == 2
        assert all((one.earliest_ms is None) == (one.rows == 0) for one in summary.partitions)
        assert (tmp_path / "data_docs" / name / "index.html").is_file()


def test_an_interrupted_run_leaves_no_process_and_the_next_one_finishes_its_cut_and_tells_of_both(
    books: LiveBooks, environment: dict[str, str], submitting: dict[str, str]
) -> None:
    contract_file = str(books.contract_file)
    assert run(environment, "run", contract_file)[0] == 3
    books.both(*both_legs("first"))
    books.produce(*both_legs("lost"))

    process = start(submitting, "run", contract_file)
    assert process.stderr is not None
    for line in process.stderr:
        if ": attempt " in line:  # Spark's driver runs
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    assert "interrupted" in rest
    deadline = time.monotonic() + 10
    while processes_of(books.contract_file) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(books.contract_file) == []

    books.both(*both_legs("second"))
    code, stdout, stderr = run(environment, "run", contract_file, "--json")
    assert code == 1, stderr
    assert "Cut 1 of an earlier run has no verdict yet and goes first" in stderr
    assert [(one["cut"], one["verdict"]) for one in json.loads(stdout)] == [(1, "BROKEN"), (2, "MATCHED")]
    runs = json.loads(run(submitting, "runs", "--json", "--contract", books.contract.name)[1])
    assert [(one["cut"], one["verdict"]) for one in runs] == [(2, "MATCHED"), (1, "BROKEN"), (0, "INCONCLUSIVE")]


def test_a_held_side_is_waited_for_and_then_named(new_books: NewBooks, environment: dict[str, str]) -> None:
    with new_books(direction="topic_to_ledger", settle_timeout_seconds=2) as books:
        assert run(environment, "run", str(books.contract_file))[0] == 3
        producer = books.producer("holder", **{"transaction.timeout.ms": 600_000})  # a whole run goes on meanwhile
        producer.begin_transaction()
        books.send(producer, *[event for event in both_legs("held") if event.leg == "payment"])
        code, stdout, stderr = run(environment, "run", str(books.contract_file))
        producer.abort_transaction()
    assert code == 3
    assert "Waiting for both sides to settle: " in stderr
    assert "Not settled in time, going on without: " in stderr
    assert "Held by an open producer transaction" in stdout
    assert "holder" in stdout


def test_an_app_that_fails_is_told_in_a_sentence(
    books: LiveBooks, environment: dict[str, str], submitting: dict[str, str]
) -> None:
    assert run(environment, "run", str(books.contract_file))[0] == 3
    books.both(*both_legs("first"))
    broken = {**submitting, "TALLYSTICK_SPARK_CONF": '{"spark.driver.memory": "nonsense"}'}
    code, stdout, stderr = run(broken, "run", str(books.contract_file))
    assert (code, stdout) == (2, "")
    assert stderr.splitlines()[-1].startswith("the Spark app ended with exit code ")
    assert "its log is " in stderr
    assert "Traceback" not in stderr


def test_several_contracts_share_one_spark_and_one_that_fails_stops_no_other(
    books: LiveBooks,
    new_books: NewBooks,
    environment: dict[str, str],
    submitting: dict[str, str],
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", submitting["TALLYSTICK_ARTIFACTS_DIR"])
    with new_books(direction="topic_to_ledger") as other:
        files = [str(books.contract_file), str(other.contract_file)]
        assert run(environment, "run", *files)[0] == 3
        books.both(*both_legs("first"))
        other.both(payment("second"))
        other.produce(payment("lost"))
        code, stdout, stderr = run(submitting, "run", *files, "--json")
        assert code == 1, stderr
        assert [one["verdict"] for one in json.loads(stdout)] == ["MATCHED", "BROKEN"]
        assert stderr.count("Starting Spark") == 1

        books.both(*both_legs("third"))
        other.both(payment("fourth"))
        code, stdout, stderr = run(submitting, "cut", *files, "--json")
        assert code == 0, stderr
        names = [one.contract.name for one in (books, other)]
        assert json.loads(stdout) == [{"contract": name, "cut": 2} for name in names]
        code, stdout, stderr = run(submitting, "cut", *files)
        assert (code, stdout) == (2, "")
        assert f"{names[0]}: cut 3 was not stored: another one is unfinished" in stderr
        orders = [CutJob(Path(file), 2, reread=False) for file in files]
        books.ledger.execute(f"ALTER TABLE {books.table} RENAME COLUMN currency TO money")
        with pytest.raises(LedgerRefused):
            judge_stored_cuts(books.store, orders)
        assert read_run(books.store, books.contract.name, 2) is None
        judged = read_run(other.store, other.contract.name, 2)
        assert judged is not None
        assert judged.result.verdict == "MATCHED"


def test_the_census_of_a_topic_names_every_offset(books: LiveBooks, environment: dict[str, str]) -> None:
    books.produce(*both_legs("first"))
    books.produce(*both_legs("aborted"), abort=True)
    books.wait_stable()
    topic = books.contract.legs["payment"]
    code, stdout, stderr = run(environment, "census", topic, "--kafka", "kafka_billing", "--json")
    assert code == 0, stderr
    census = json.loads(stdout)
    assert [part["partition"] for part in census] == [0, 1]
    assert sum(part["committed"] for part in census) == 1
    assert sum(part["aborted"] for part in census) == 1
    assert sum(part["commit_markers"] + part["abort_markers"] for part in census) == 2
    assert sum(part["unexplained"] for part in census) == 0
    code, stdout, _ = run(environment, "census", topic, "--kafka", "kafka_billing")
    assert code == 0
    assert f"{topic}[0]" in stdout


def test_a_topic_that_is_not_there_and_a_broker_that_is_not_are_told_apart(
    books: LiveBooks, environment: dict[str, str]
) -> None:
    code, _, stderr = run(environment, "census", "no.such.topic", "--kafka", "kafka_billing")
    assert (code, stderr.startswith("topic no.such.topic: ")) == (2, True)
    nowhere = {**environment, "TALLYSTICK_CONN_KAFKA_BILLING": '{"bootstrap.servers": "127.0.0.1:1"}'}
    code, _, stderr = run(nowhere, "census", "no.such.topic", "--kafka", "kafka_billing")
    assert (code, stderr.splitlines()[-1].startswith("Kafka at 127.0.0.1:1: ")) == (2, True)
