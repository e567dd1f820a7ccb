"""A contract's own expectations about a judged window: which run is held against them, and by a process of its own.

Great Expectations and the owner's module are imported there only, so nothing that they do ends a run. Decides no
verdict.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Engine

from tallystick.contract.contract import Contract
from tallystick.host.private_files import private_file, private_folder
from tallystick.model.stored_run import ExpectationsOutcome, StoredRun, unevaluated
from tallystick.spark.spark_job import end_session, last_words
from tallystick.store.runs.expectations_store import read_outcome, store_outcome

SECONDS_MAX = 600
"""For a module's suites; tables have a few rows."""

_APP = "tallystick_expectations.own_suites_app"


def are_due(contract: Contract, run: StoredRun) -> bool:
    """Return whether the run is to be held against expectations. A baseline has read nothing; an outcome in which
    everything was evaluated stands.
    """
    if contract.expectations is None or run.cut.is_baseline:
        return False
    return run.expectations is None or not run.expectations.is_complete


def evaluate_apart(
    engine: Engine,
    contract: Contract,
    run: StoredRun,
    *,
    contract_file: Path,
    log: Path,
    environment: Mapping[str, str],
) -> ExpectationsOutcome:
    """Evaluate in a child process, which stores the outcome; give back the one that stands.

    A child that fails, or takes longer than SECONDS_MAX, has evaluated nothing, and that is stored. It is ended with
    all that it started, whatever stops us. log: where the child's words go.
    """
    assert contract.expectations is not None  # or nothing would be due
    argv = [sys.executable, "-m", _APP, "--contract", str(contract_file), "--cut", str(run.result.cut_n)]
    private_folder(log.parent)
    with private_file(log).open("w", encoding="utf-8") as words:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        try:
            code = child.wait(SECONDS_MAX)
            how = f"its process ended with exit code {code}: {last_words(log)}" if code else ""
        except subprocess.TimeoutExpired:
            how = f"its process took longer than {SECONDS_MAX} s"
        finally:
            end_session(child)
    stands = read_outcome(engine, contract.name, run.result.cut_n)
    if stands is not None and not how:
        return stands
    why = how or "its process ended before it had stored anything"
    return store_outcome(engine, contract, run, unevaluated(contract.expectations, what=contract.expectations, why=why))
