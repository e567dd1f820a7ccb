"""Hold one judged cut against the suites of its contract, and store what came of it.

    python -m tallystick_expectations.own_suites_app --contract my_contract.yaml --cut 7

The address of the verdict store comes from the environment. Exits 0 once an outcome is stored, whatever it says.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tallystick.connections.connections import store_dsn
from tallystick.contract.contract import load_contract
from tallystick.host.artifacts import artifacts_place
from tallystick.host.gc_tuning import short_process
from tallystick.pipeline.local_run import stored_run
from tallystick.pipeline.own_expectations import are_due
from tallystick.store.engine import open_store
from tallystick.store.runs.expectations_store import store_outcome
from tallystick.text.expectation_words import outcome_text
from tallystick.text.plain import printed_text
from tallystick_expectations.own_suites import evaluate_own_suites


def main(argv: Sequence[str]) -> None:
    """Raise RunNotJudged where the cut has no verdict."""
    parser = argparse.ArgumentParser(description="Hold a judged cut against its contract's own expectations")
    parser.add_argument("--contract", type=Path, required=True, help="the contract's file")
    parser.add_argument("--cut", type=int, required=True, help="number of the judged cut")
    arguments = parser.parse_args(argv)
    contract, engine = load_contract(arguments.contract), open_store(store_dsn())
    run = stored_run(engine, contract.name, arguments.cut)
    if contract.expectations is None or not are_due(contract, run):
        return
    outcome = evaluate_own_suites(run, contract.expectations, artifacts_place())
    print(printed_text(outcome_text(store_outcome(engine, contract, run, outcome))))


if __name__ == "__main__":
    with short_process():
        main(sys.argv[1:])
