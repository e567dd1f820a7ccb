"""What `make adopt` tried is a row for each combination; a command that fails is told with its last lines."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from adopt import VERDICTS, Tried, of_combination, read_tried, table, with_combination, worked
from adopter import INSTALL_PAGE, AdoptionFailed, own_connections, own_contract, run
from croniter import croniter
from own_airflow import AirflowFailed, OwnAirflow, free_ports

from tallystick.contract.contract import load_contract

NOON = datetime(2026, 3, 1, 12, 20, 7, tzinfo=UTC)


def step(what: str, python: str, airflow: str, *, ok: bool = True) -> Tried:
    """Return one step of a combination."""
    return {"what": what, "versions": {"python": python, "airflow": airflow, "source": "abc"}, "ok": ok}


def test_a_combination_is_a_row_and_what_was_not_tried_says_so() -> None:
    old, new = {"python": "3.11", "airflow": "3.2.2"}, {"python": "3.13", "airflow": "3.3.2", "pyspark": "4.1.4"}
    tried: list[dict[str, object]] = [
        {"what": "pip install", "versions": old, "ok": False, "seconds": 1, "said": ""},
        {"what": "pip install", "versions": new, "ok": True, "seconds": 1, "said": ""},
        {"what": "pip check", "versions": new, "ok": True, "seconds": 1, "said": ""},
    ]
    assert table(tried).splitlines()[2:] == [
        "| 3.11 | 3.2.2 | **no** |  | not tried |",
        "| 3.13 | 3.3.2 | yes | 4.1.4 | yes |",
    ]


def test_a_command_that_fails_is_told_and_one_that_may_end_so_is_not() -> None:
    command = [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"]
    with pytest.raises(AdoptionFailed, match="ended with 3: the reason"):
        run(command)
    assert run(command, codes=(0, 3)) == "the reason\n"


def test_no_command_knows_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "checkout")
    assert run([sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"]) == "None\n"


def test_a_combination_that_is_tried_again_takes_the_place_of_its_earlier_steps() -> None:
    old, other = step("pip check", "3.13", "3.3.2", ok=False), step("pip check", "3.11", "3.10.0")
    kept = step("pip check", "3.11", "3.3.2")
    new = [step("pip check", "3.13", "3.3.2"), step(VERDICTS, "3.13", "3.3.2")]
    assert with_combination([old, other, kept], new) == [kept, other, *new]


def test_only_a_combination_that_worked_to_the_last_step_is_not_tried_again() -> None:
    steps = [step("pip check", "3.13", "3.3.2"), step(VERDICTS, "3.13", "3.3.2")]
    assert worked(of_combination([*steps, step("pip check", "3.11", "3.3.2", ok=False)], ("3.13", "3.3.2")))
    assert not worked(steps[:1])
    assert not worked([step("pip check", "3.13", "3.3.2", ok=False), steps[1]])
    assert not worked([])


def test_what_was_tried_with_another_source_is_not_kept(tmp_path: Path) -> None:
    file, steps = tmp_path / "adopt.json", [step("pip check", "3.13", "3.3.2")]
    assert read_tried(file, "abc") == []
    file.write_text(json.dumps({"tried": steps}))
    assert read_tried(file, "abc") == steps
    assert read_tried(file, "def") == []


def test_the_contract_has_one_window_that_has_ended_and_the_next_ends_a_day_later(tmp_path: Path) -> None:
    file = tmp_path / "shop_orders.yaml"
    file.write_text(own_contract(NOON))
    contract = load_contract(file)
    windows = croniter(contract.schedule, contract.start_date - timedelta(seconds=1))
    start, end, next_end = (windows.get_next(datetime) for _ in range(3))
    assert start == contract.start_date
    assert end <= NOON - timedelta(hours=1) and next_end > NOON + timedelta(hours=22)


def test_an_airflow_that_has_ended_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "standalone.log"
    log.write_text("the reason\n")
    own = OwnAirflow(home=tmp_path, port=free_ports(1)[0], log=log, alive=lambda: False)
    with pytest.raises(AirflowFailed, match="Airflow has ended: the reason"):
        own.log_in()


def test_the_connections_are_those_of_the_page_with_other_addresses() -> None:
    servers = {
        "bootstrap_servers": "127.0.0.1:1",
        "ledger_reader_dsn": "postgresql://reader:a%2Fb@127.0.0.1:2/ledger",
        "store_dsn": "postgresql://tally:c@127.0.0.1:3/store",
    }
    assert own_connections(INSTALL_PAGE.read_text(), servers) == {
        "spark_default": {"conn_type": "spark", "host": "local[2]"},
        "shop_kafka": {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}},
        "shop_ledger": {
            "conn_type": "postgres",
            "host": "127.0.0.1",
            "port": 2,
            "schema": "ledger",
            "login": "reader",
            "password": "a/b",
        },
        "tallystick_store": {
            "conn_type": "postgres",
            "host": "127.0.0.1",
            "port": 3,
            "schema": "store",
            "login": "tally",
            "password": "c",
        },
    }
