"""A file of alerts gets a line each, also behind a line that was cut; what cannot be written is a failure."""

import json
from pathlib import Path

import pytest

from tallystick.alerting.alert_json import SinkFailed, message_of
from tallystick.alerting.sinks.file import FileSink
from tests.unit.alerting.sinks.receivers import ALERT, RESOLVED


def test_each_alert_is_a_line_behind_those_before_it(tmp_path: Path) -> None:
    path = tmp_path / "alerts" / "alerts.jsonl"
    for alert in (ALERT, RESOLVED):
        FileSink(name="file", path=path).deliver(alert)
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert written == json.loads(json.dumps([message_of(ALERT), message_of(RESOLVED)]))


def test_a_line_that_a_full_disk_cut_stays_apart_from_the_next(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    path.write_text('{"half": ')
    FileSink(name="file", path=path).deliver(ALERT)
    half, whole = path.read_text().splitlines()
    assert half == '{"half": '
    assert json.loads(whole)["dedup_key"] == ALERT.dedup_key


def test_a_path_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkFailed, match="cannot be written"):
        FileSink(name="file", path=tmp_path / "file" / "alerts.jsonl").deliver(ALERT)
