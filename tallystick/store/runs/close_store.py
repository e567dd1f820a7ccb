"""Closes a cut that nobody can judge: its verdict, the alert and the audit line, all or nothing."""

from typing import Any

from sqlalchemy import Engine, select

from tallystick.alerting.policy import alerts_for
from tallystick.host.terminal_user import Terminal, at_terminal
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState
from tallystick.matching.closed_cut import Closing, CutClosed, closed_result, refuse_to_close
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tallystick.store.alerts.alert_store import firing_alerts
from tallystick.store.runs.contract_store import read_contract
from tallystick.store.runs.cut_store import CutNotFound, claim_attempt, read_cut
from tallystick.store.runs.loss_store import moved_below
from tallystick.store.runs.outstanding_store import outstanding_classes
from tallystick.store.runs.run_history_store import cluster_state_document, earlier_rows_before
from tallystick.store.runs.run_store import commit_run
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table


def close_cut(
    engine: Engine, contract_name: str, n: int, closing: Closing, *, terminal: Terminal | None = None
) -> CutClosed:
    """End the open cut INCONCLUSIVE. A run that is reading it meanwhile stores nothing: its attempt is not the newest.

    Raises CloseRefused, CutNotFound, AttemptFenced.
    """
    cut, attempts = read_cut(engine, contract_name, n), attempts_at(engine, contract_name, n)
    refuse_to_close(f"{contract_name}/{n}", cut, is_open=attempts is not None, attempts=attempts or 0)
    contract = read_contract(engine, contract_name, n)
    if cut is None or contract is None or attempts is None:
        raise CutNotFound(f"{contract_name}: the contract of cut {n} is not stored")
    known_before = _known_before(engine, cut)
    result = closed_result(cut, closing, attempts=attempts, known_before=known_before)
    alerts = alerts_for(
        contract,
        result,
        cut=cut,
        firing=firing_alerts(engine, contract_name),
        outstanding=outstanding_classes(engine, contract_name, after=result),
    )
    audited = {
        "contract": contract_name,
        "plan_id": None,
        "actor": closing.by,
        "event": "cut_closed",
        "detail": {"cut_n": n, "attempts": attempts, **result.doubts[0].details} | at_terminal(terminal),
    }
    commit_run(engine, result, attempt=claim_attempt(engine, contract_name, n), alerts=alerts, audited=(audited,))
    return CutClosed(cut=cut, closing=closing, attempts=attempts, sentence=result.doubts[0].sentence)


def attempts_at(engine: Engine, contract_name: str, n: int) -> int | None:
    """Return how often an attempt to judge the open cut began; None where it is not open."""
    asked = select(cut_table.c.attempt).where(
        cut_table.c.contract == contract_name, cut_table.c.n == n, cut_table.c.open
    )
    with engine.connect() as connection:
        attempts: int | None = connection.scalar(asked)
    return attempts


def _known_before(engine: Engine, cut: Cut) -> dict[str, Any]:
    """What the run after the cut goes on from: what the run before it counted of the ledger's rows, the files that the
    cut itself found changed, and the batches by which a log is seen to be what it was.
    """
    name, n, ledger = cut.contract, cut.n, cut.ledger_slice
    moved, earlier = moved_below(engine, name, n - 1), earlier_rows_before(engine, name, n)
    before = CLUSTER_STATE.validate_python(cluster_state_document(engine, name, n - 1))
    return {
        "rows_moved_below": max(moved, ledger.snapshot.high_mark if ledger.changed else 0),
        "earlier_rows": earlier.to_json() if earlier else None,
        "surroundings": CLUSTER_STATE.dump_python(ClusterState(anchors=before.anchors), mode="json", by_alias=True),
    }


def closed_cuts_before(engine: Engine, contract_name: str, n: int) -> tuple[Cut, ...]:
    """Cuts below n that were closed unread."""
    asked = (
        select(verdict_table.c.cut_n)
        .where(
            verdict_table.c.contract == contract_name,
            verdict_table.c.cut_n < n,
            verdict_table.c.doubts.contains([{"doubt": Doubt.CUT_CLOSED}]),
        )
        .order_by(verdict_table.c.cut_n)
    )
    with engine.connect() as connection:
        numbers = list(connection.scalars(asked))
    return tuple(cut for number in numbers if (cut := read_cut(engine, contract_name, number)) is not None)
