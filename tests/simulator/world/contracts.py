"""The contracts that schedules are played under: what a service's books are reconciled by."""

from collections.abc import Collection
from datetime import timedelta
from functools import cache
from typing import Any

from tallystick.contract.contract import Contract
from tests.simulator.world.clock import NOON

OVERLAP = 3
QUIET_SECONDS = 60
TOPIC, OTHER_TOPIC = "billing.payouts", "billing.fees"
INPUT_TOPIC = "billing.requests"


@cache
def contract_of(direction: str, slice_by: str, legs: int, name: str = "books", posts: str = "") -> Contract:
    """direction: topic_to_ledger or ledger_to_topic. slice_by: xmin, written_xid, jdbc or parquet. Or topic_to_topic
    and topic. posts: "", negated or column.
    """
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
    elif slice_by == "topic":
        inputs = {"kind": "topic", "connection": "kafka", "topics": [INPUT_TOPIC], "event": {"match_key": "request_id"}}
        document["ledger"] = inputs
    elif slice_by == "parquet":
        document["ledger"] = {
            "kind": "parquet",
            "connection": "ledger",
            "table": "billing.payout",
            "quiet_seconds": QUIET_SECONDS,
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
    elif posts:
        columns |= {"reverses": "reverses", "action_id": "action_id"}
        document["compensation"] = _posting(posts, topics)
    contract = SimulatedContract.model_validate(document)
    _FINGERPRINTS[id(contract)] = contract.fingerprint
    return contract


def _posting(reversal: str, legs: Collection[str]) -> dict[str, Any]:
    copied = ("event_id", "payment_id", "leg", "amount_minor", "currency", "occurred_at")
    return {
        "classes": ["missing_in_ledger", "duplicate_in_ledger", "duplicate_in_ledger_compensated"],
        "reversal": reversal,
        "post": {
            "connection": "poster",
            "actions_table": "tallystick.actions",
            "columns": {name: name for name in copied},
            "rows": {leg: [{}] for leg in legs},
        },
        "max_items": 50,
        "max_amount_minor": {"EUR": 10_000_000},
        "four_eyes_above_minor": {"EUR": 10_000_000},
    }


_FINGERPRINTS: dict[int, str] = {}
"""Of the contracts above, which are never freed."""


class SimulatedContract(Contract):
    """Knows its fingerprint: each run asks for it."""

    @property
    def fingerprint(self) -> str:
        return _FINGERPRINTS.get(id(self)) or super().fingerprint
