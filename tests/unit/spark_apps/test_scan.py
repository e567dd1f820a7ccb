"""Which reader the log is read by follows from the contract and from what the environment asks for."""

from collections.abc import Callable

import pytest

from tallystick.contract.contract import Contract
from tallystick.spark.spark_job import SCAN_VARIABLE, SparkNotReady
from tallystick_spark.scan import matches_by_hash, reads_log
from tests.unit.builders import L2T, contract_of


@pytest.mark.parametrize(
    ("way", "by_log", "by_hash"),
    [
        (None, True, True),
        ("", True, True),
        ("by_client", False, True),
        ("pair_by_pair", False, False),
    ],
)
def test_only_a_way_that_there_is_turns_the_quick_ones_off(
    monkeypatch: pytest.MonkeyPatch, way: str | None, by_log: bool, by_hash: bool
) -> None:
    monkeypatch.delenv(SCAN_VARIABLE, raising=False)
    if way is not None:
        monkeypatch.setenv(SCAN_VARIABLE, way)
    assert (reads_log(contract_of(L2T)), matches_by_hash(contract_of(L2T))) == (by_log, by_hash)


@pytest.mark.parametrize("asks", [reads_log, matches_by_hash])
def test_a_way_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch, asks: Callable[[Contract], bool]) -> None:
    monkeypatch.setenv(SCAN_VARIABLE, "by_cleint")
    with pytest.raises(SparkNotReady, match="TALLYSTICK_SCAN: got 'by_cleint'; expected 'by_client'"):
        asks(contract_of(L2T))
