"""`tallystick check-config` ends with the code of its worst line."""

import json
from pathlib import Path

import pytest

from tallystick.kafka_cluster.config_check import CheckResult, ConfigLine
from tallystick.pipeline import config_check_now
from tests.unit.cli.command_line import run

LINES = (
    ConfigLine(
        setting="min.insync.replicas", scope="t", value="1", needs="2", standing=CheckResult.AT_RISK, do="set 2"
    ),
    ConfigLine(
        setting="retention.ms", scope="t", value="not read", needs="1 h", standing=CheckResult.UNKNOWN, do="ask"
    ),
    ConfigLine(setting="cleanup.policy", scope="t", value="delete", needs="delete", standing=CheckResult.OK, do=""),
)


@pytest.mark.parametrize(("lines", "code"), [(LINES, 1), (LINES[1:], 3), (LINES[2:], 0)], ids=str)
def test_a_config_check_ends_with_the_code_of_its_worst_line(
    lines: tuple[ConfigLine, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    contract_file: Path,
) -> None:
    monkeypatch.setenv("TALLYSTICK_CONN_KAFKA_BILLING", json.dumps({"bootstrap.servers": "localhost:1"}))
    monkeypatch.setattr(config_check_now, "read_config_check", lambda *_: lines)
    shown, machine = run("check-config", str(contract_file)), run("check-config", str(contract_file), "--json")
    assert (shown.exit_code, machine.exit_code) == (code, code)
    assert [line["setting"] for line in json.loads(machine.stdout)] == [line.setting for line in lines]
    for line in lines:
        assert line.setting in shown.stdout
        assert line.do in shown.stdout
