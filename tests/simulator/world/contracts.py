"""The contracts that schedules are played under: what a service's books are reconciled by."""

from datetime import timedelta
from functools import cache
from typing import Any

from tallystick.contract.contract import Contract
from tests.simulator.world.clock import NOON

OVERLAP = 3
TOPIC, OTHER_TOPIC = "billing.payouts", "billing.fees"


@cache
def contract_of(direction: str, slice_by: str, legs: int, name: str = "books") -> Contract:
    """direction: topic_to_ledger or ledger_to_topic. slice_by: xmin, written_xid, or jdbc."""
    topics = {"payout": TOPIC} if legs == 1 else {"payout": TOPIC, "fee": OTHER_TOPIC}
    columns: dict[str, Any] = {"written_at": "written_at"}
    document: dict[str, Any] = {
        "contract": name,
        "version": 1,
        "owner": "billing",
        "direction": direction,
        "schedule": "0 * * * *",
        "start_date": NOON - timedelta(days=2),
        "kafka": {"connection": "kafka"},
        "legs": topics,
        "ledger": {"connection": "ledger", "table": "billing.payout", "slice_by": slice_by, "columns": columns},
        "partner_grace_seconds": 600,
        "partner_grace_cap_seconds": 600,
        "settle_timeout_seconds": 300,
        "empty": "allowed",
        "alert": {"sinks": [{"kind": "file", "path": "alerts.jsonl"}]},
    }
    if slice_by == "jdbc":
        document["ledger"] = {
            "kind": "jdbc",
            "connection": "ledger",
            "table": "main.payout",
            "order_by": "entry_id",
            "overlap": OVERLAP,
            "columns": columns,
        }
    elif direction == "ledger_to_topic":
        document["compensation"] = {
            "classes": [
                "missing_in_topic_never_produced",
                "missing_in_topic_aborted_only",
                "duplicate_in_topic_new_session",
                "duplicate_in_topic_zombie",
                "duplicate_in_topic_no_idempotence",
            ],
            "reversal": "negated",
            "max_items": 50,
            "max_amount_minor": {"EUR": 10_000_000},
            "four_eyes_above_minor": {"EUR": 10_000_000},
        }
    contract = SimulatedContract.model_validate(document)
    _FINGERPRINTS[id(contract)] = contract.fingerprint
    return contract


_FINGERPRINTS: dict[int, str] = {}
"""Of the contracts above, which are never freed."""


class SimulatedContract(Contract):
    """Knows its fingerprint: each run asks for it."""

    @property
    def fingerprint(self) -> str:
        return _FINGERPRINTS.get(id(self)) or super().fingerprint
