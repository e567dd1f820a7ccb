"""The product's own reconciliation, nothing left out: cut, census, match, classes, stored verdict.

    python -m bench.ours_app --contract FILE --contract FILE --result FILE

One window of each contract, one after the other in one session. They have the same two sides and differ in their name
only, so each reads the same for the first time. The store is found as every task finds it, by TALLYSTICK_STORE_DSN;
each contract's baseline is in it.
"""

import argparse
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from bench.spark_session import open_session, time_each
from tallystick.connections.connections import Connections, connections_from_environment, store_dsn
from tallystick.contract.contract import Contract, load_contract
from tallystick.model.cut import Cut
from tallystick.pipeline.make_cut import resolve_cut
from tallystick.spark.spark_job import JAVA_OPTIONS
from tallystick.store.engine import open_store
from tallystick.store.runs.run_store import read_run_head
from tallystick.store.views.overview_store import stakes_of_run
from tallystick_spark.reconcile_app import run_cut


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contract", type=Path, action="append", required=True, help="a contract's file")
    parser.add_argument("--result", type=Path, required=True, help="where the figures go")
    given = parser.parse_args()
    contracts, engine = iter([load_contract(path) for path in given.contract]), open_store(store_dsn())
    open_session("ours", {"spark.driver.defaultJavaOptions": JAVA_OPTIONS})
    time_each(len(given.contract), lambda: reconcile(engine, next(contracts)), given.result)


def reconcile(engine: Engine, contract: Contract) -> Callable[[], dict[str, Any]]:
    """One window since the baseline; what tells its verdict reads it from the store."""
    cut = take_cut(engine, contract)
    run_cut(engine, contract, _connections(contract), cut)
    return partial(_stored_answer, engine, contract.name, cut.n)


def _stored_answer(engine: Engine, contract: str, cut_n: int) -> dict[str, Any]:
    """Read it from sums: as values, the breaks of a window would be held once more, and counted as ours."""
    stored = read_run_head(engine, contract, cut_n)
    assert stored is not None
    result = stored.result
    breaks: Counter[str] = Counter()
    for stake in stakes_of_run(engine, contract, cut_n):
        breaks[str(stake.break_class)] += stake.count
    return {
        "verdict": str(result.verdict),
        "digest": result.digest,
        "topic_rows": result.figures.topic_rows,
        "ledger_rows": result.figures.ledger_rows,
        "breaks": breaks,
        "doubts": [str(found.doubt) for found in result.doubts],
    }


def take_cut(engine: Engine, contract: Contract) -> Cut:
    """Fix the cut of the window that ends now; a contract's first one is its baseline."""
    end = datetime.now(UTC)
    return resolve_cut(
        engine,
        contract,
        _connections(contract),
        window_start_utc=end - timedelta(hours=1),
        window_end_utc=end,
        now_utc=end,
        scheduler_run_id=f"bench-{end.isoformat()}",
    )


def _connections(contract: Contract) -> Connections:
    return connections_from_environment(kafka_id=contract.kafka.connection, ledger_id=contract.ledger.connection)


if __name__ == "__main__":
    main()
