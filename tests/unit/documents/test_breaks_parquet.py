"""The file of all breaks is there once what is done beside it has succeeded, and never in parts."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tallystick.documents.breaks_parquet
from lab.servers.process import REPOSITORY
from tallystick.contract.contract import Contract
from tallystick.contract.event import PayloadKey
from tallystick.documents.breaks_parquet import breaks_file
from tests.unit.alerting.run_alerts import MISSING
from tests.unit.conftest import item_break
from tests.unit.pipeline.broken_result import RESULT

FILE = "breaks/payouts/cut=7/breaks.parquet"


class Fenced(RuntimeError):
    """What is done beside the file fails."""


def files(artifacts: Path) -> list[str]:
    return [str(path.relative_to(artifacts)) for path in artifacts.rglob("*") if path.is_file()]


def test_it_is_there_after_what_was_done_beside_it_and_not_before(contract: Contract, tmp_path: Path) -> None:
    with breaks_file(RESULT, contract, tmp_path):
        assert FILE not in files(tmp_path)
    assert files(tmp_path) == [FILE]
    assert pq.read_table(tmp_path / FILE)["match_key"].to_pylist() == ["ev-1"]


@pytest.mark.parametrize("breaks", [0, 1, 3, 4, 7])
def test_it_has_all_in_their_order_however_many_are_written_together(
    contract: Contract, breaks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallystick.documents.breaks_parquet, "_WRITTEN_TOGETHER", 3)
    keys = [f"ev-{n}" for n in range(breaks)]
    found = tuple(item_break(n, MISSING, key, 700, "EUR", "payout", "it is not there") for n, key in enumerate(keys))
    with breaks_file(replace(RESULT, breaks=found), contract, tmp_path):
        pass
    file = pq.ParquetFile(tmp_path / FILE)
    assert file.read()["match_key"].to_pylist() == keys
    assert file.num_row_groups == -(-breaks // 3)


def test_where_that_fails_there_is_none(contract: Contract, tmp_path: Path) -> None:
    with pytest.raises(Fenced), breaks_file(RESULT, contract, tmp_path):
        raise Fenced
    assert files(tmp_path) == []


def test_a_file_of_before_stays_as_it_was(contract: Contract, tmp_path: Path) -> None:
    with breaks_file(RESULT, contract, tmp_path):
        pass
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(Fenced), breaks_file(RESULT, contract, tmp_path):
        raise Fenced
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("shown", [True, False])
def test_keys_that_the_contract_hides_are_masked_in_it(contract: Contract, tmp_path: Path, shown: bool) -> None:
    keys = [PayloadKey.MATCH_KEY, PayloadKey.TRANSACTION_KEY] if shown else []
    hiding = contract.model_copy(update={"shown_keys": tuple(keys)})
    told = replace(
        RESULT.breaks[0], story="no row of ev-1", evidence={"seen": ["ev-1 at 7"], "at": "topic:payouts:0:7"}
    )
    with breaks_file(replace(RESULT, breaks=(told,)), hiding, tmp_path):
        pass
    (row,) = pq.read_table(tmp_path / FILE).to_pylist()
    key = "ev-1" if shown else "masked"
    assert (row["match_key"], row["story"]) == (key, f"no row of {key}")
    assert json.loads(row["evidence"]) == {"seen": [f"{key} at 7"], "at": "topic:payouts:0:7"}
    assert ("ev-1" in repr(row)) == shown


FORMULA = '=HYPERLINK("https://evil.example","paid")'


def test_a_key_that_a_spreadsheet_takes_for_a_formula_is_kept_as_it_is_and_the_settings_say_so(
    contract: Contract, tmp_path: Path
) -> None:
    """Whoever queries the file wants the key; whoever opens it in a spreadsheet has to know."""
    showing = contract.model_copy(update={"shown_keys": (PayloadKey.MATCH_KEY,)})
    found = replace(RESULT.breaks[0], match_key=FORMULA)
    with breaks_file(replace(RESULT, breaks=(found,)), showing, tmp_path):
        pass
    assert pq.read_table(tmp_path / FILE)["match_key"].to_pylist() == [FORMULA]
    settings = " ".join((REPOSITORY / "docs" / "settings.md").read_text().split())
    (said,) = re.findall(r"\*\*Parquet of breaks\.\*\*.*?columns as text\.", settings)
    assert "A spreadsheet may run one as a formula" in said
