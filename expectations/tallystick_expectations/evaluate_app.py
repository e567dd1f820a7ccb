"""Evaluate the expectations about one stored run, and write their Data Docs.

    python -m tallystick_expectations.evaluate_app --contract dags/contracts/billing_payments.yaml --cut 7

The store's address comes from the environment (TALLYSTICK_STORE_DSN); pages go to TALLYSTICK_ARTIFACTS_DIR/data_docs.
Prints one JSON line. Exits 0 once every expectation was evaluated, met or not: the verdict is Tallystick's, these are a
second pair of eyes. 1: checks are missing or cannot fail. 2: refused input, no such run, or the store does not answer.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallystick.connections.connections import artifacts_folder, store_dsn
from tallystick.contract.contract import Contract, load_contract
from tallystick.host.private_files import narrow, private_folder
from tallystick.model.errors import TallystickError
from tallystick.model.stored_run import StoredRun
from tallystick.store.engine import open_store
from tallystick.store.runs.run_store import read_run

_NICE = 5
"""Five seconds of a core, for which no verdict waits: whatever a verdict waits for goes first."""


class RunNotStored(TallystickError):
    """There is no verdict for this cut, so nothing to look at."""


def main(argv: Sequence[str]) -> int:
    """Return the exit code; what went wrong stands on stderr in one sentence."""
    arguments = _parse_arguments(argv)
    try:
        contract = load_contract(arguments.contract)
        run = _stored_run(contract, arguments.cut)
    except TallystickError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    from tallystick_expectations.evaluation import EvidenceShrunk  # seconds to import: not for a refused input

    try:
        print(json.dumps(evaluate_run(run, contract, artifacts_folder())), flush=True)
    except EvidenceShrunk as error:
        print(f"{contract.name} cut {arguments.cut}: {error}", file=sys.stderr)
        return 1
    return 0


def evaluate_run(run: StoredRun, contract: Contract, artifacts: Path) -> dict[str, Any]:
    """Evaluate all suites; the answer's keys are stable. Raises EvidenceShrunk."""
    from tallystick_expectations.breaks_suite import breaks_suite
    from tallystick_expectations.census_suite import census_suite
    from tallystick_expectations.evaluation import evaluate_suites
    from tallystick_expectations.figures_suite import figures_suite

    pages = private_folder(artifacts / "data_docs" / contract.name, below=artifacts)
    outcomes = evaluate_suites(
        (figures_suite(run, contract), breaks_suite(run), census_suite(run)),
        pages=pages,
        run_name=f"cut {run.result.cut_n}",
        run_time=run.recorded_at,
    )
    narrow(pages)
    return {
        "contract": contract.name,
        "cut": run.result.cut_n,
        "success": all(outcome.success for outcome in outcomes),
        "evaluated": sum(outcome.evaluated for outcome in outcomes),
        "failed": {outcome.name: list(outcome.failed) for outcome in outcomes if outcome.failed},
        "data_docs": str(pages / "index.html"),
    }


def _parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contract", type=Path, required=True, help="the contract's YAML file")
    parser.add_argument("--cut", type=int, required=True, help="number of the stored cut")
    return parser.parse_args(argv)


def _stored_run(contract: Contract, n: int) -> StoredRun:
    run = read_run(open_store(store_dsn()), contract.name, n)
    if run is None:
        raise RunNotStored(f"{contract.name} cut {n}: no verdict is stored; expected one, see: tallystick runs")
    return run


if __name__ == "__main__":
    os.nice(_NICE)
    sys.exit(main(sys.argv[1:]))
