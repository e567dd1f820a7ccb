"""`tallystick contract`: good contracts are listed, bad ones refused together; a changed one asks for the store."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from tallystick.contract.contract import Contract
from tallystick.host.yaml_file import read_mapping
from tests.unit.cli.command_line import run

REPOSITORY = Path(__file__).parents[4]


def test_good_contracts_are_listed(contract_file: Path) -> None:
    result = run("contract", "check", str(contract_file))
    assert result.exit_code == 0
    assert "billing_payouts" in result.stdout
    assert "billing.fees, billing.payouts" in result.stdout


def test_good_contracts_are_listed_for_machines_too(contract_file: Path, contract: Contract) -> None:
    result = run("contract", "check", "--json", str(contract_file), str(contract_file.parent))
    assert result.exit_code == 0
    first, second = json.loads(result.stdout)
    assert first == second
    assert first == {
        "contract": "billing_payouts",
        "version": 3,
        "direction": "ledger_to_topic",
        "topics": ["billing.fees", "billing.payouts"],
        "table": "billing.payout",
        "schedule": "0 * * * *",
        "fingerprint": contract.fingerprint,
    }


def test_bad_contracts_are_refused_together_on_stderr(contract_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(contract_file.read_text().replace("version: 3", "version: 0"))
    result = run("contract", "check", str(bad), str(tmp_path / "none.yaml"), str(contract_file))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"{bad}: version: got 0; expected 1 or more",
        f"{tmp_path}/none.yaml: no such file; expected a contract in YAML",
    ]


def test_a_name_that_two_files_have_is_refused_however_they_are_named(contract_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "second.yaml"
    other.parent.mkdir()
    other.write_text(contract_file.read_text())
    for named in ((contract_file, other), (contract_file, other.parent), (contract_file.parent, other)):
        result = run("contract", "check", *map(str, named))
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (
            f"{other}: contract: got 'billing_payouts'; expected a name of its own, {contract_file} has it too\n"
        )
    other.write_text(contract_file.read_text().replace("billing_payouts", "shop_payouts"))
    assert run("contract", "check", str(contract_file), str(other)).exit_code == 0


def test_an_empty_folder_passes_no_check(tmp_path: Path) -> None:
    result = run("contract", "check", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr == f"{tmp_path}: no contract in this folder; expected *.yaml\n"


def test_a_diff_asks_for_the_store_too(contract_file: Path) -> None:
    result = run("contract", "diff", str(contract_file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("the verdict store is not named")


def test_the_schema_that_is_printed_takes_the_samples_and_refuses_a_misspelt_field() -> None:
    printed = run("contract", "schema")
    assert printed.exit_code == 0
    check = Draft202012Validator(json.loads(printed.stdout))
    samples = sorted((REPOSITORY / "dags" / "contracts").glob("*.yaml"))
    assert samples
    for sample in samples:
        document = json.loads(json.dumps(read_mapping(sample), default=str))
        assert list(check.iter_errors(document)) == []
        fault = best_match(check.iter_errors({**document, "currencycase": "ignored"}))
        assert fault is not None
        assert "'currencycase' was unexpected" in fault.message
