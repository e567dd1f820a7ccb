"""A trace as JSON, without the key that was asked for."""

from collections.abc import Iterable
from typing import Any

from tallystick.tracing.hop import Hop, Statement, Trace


def trace_document(traces: Iterable[Trace]) -> dict[str, Any]:
    """Return all chains, in the words of docs/schemas/trace.v1.json."""
    return {
        "schema_version": 1,
        "chains": [
            {
                "sentence": trace.sentence,
                "lost_at": trace.lost_at,
                "hops": [_hop_document(hop) for hop in trace.hops],
            }
            for trace in traces
        ],
    }


def _hop_document(hop: Hop) -> dict[str, Any]:
    return {
        "contract": hop.contract.name,
        "direction": str(hop.contract.direction),
        "topics": list(hop.contract.topics),
        "ledger": hop.contract.ledger.place,
        "state": str(hop.state),
        "statements": [_statement_document(hop.contract.name, one) for one in hop.statements],
    }


def _statement_document(contract_name: str, one: Statement) -> dict[str, Any]:
    cut = one.cut
    return {
        "state": str(one.state),
        "sentence": one.sentence,
        "run": f"{contract_name}/{cut.n}" if cut else None,
        "scheduler_run_id": cut.scheduler_run_id if cut else None,
        "window_start_utc": cut.window_start_utc.isoformat() if cut else None,
        "window_end_utc": cut.window_end_utc.isoformat() if cut else None,
        "verdict": str(cut.verdict) if cut and cut.verdict else None,
        "places": list(one.places),
        "break_id": str(one.break_id) if one.break_id else None,
        "break_class": str(one.break_class) if one.break_class else None,
        "break_state": str(one.break_state) if one.break_state else None,
    }
