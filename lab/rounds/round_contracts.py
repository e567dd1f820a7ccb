"""The contracts of a mixed round: what each of its books promises, written as an owner would write it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from lab.rounds.written_events import format_in

KAFKA, LEDGER, SWITCHED_LEDGER = "kafka_lab", "ledger_lab", "ledger_switched"
_NEVER = "0 0 29 2 *"  # the lab asks for each window itself
_ORDER = {"ordering_key": "account", "sequence": "sequence"}


def payments_contract(name: str, namespace: str, **fields: Any) -> dict[str, Any]:
    """A poster follows the topics of both legs."""
    return _contract(
        name,
        direction="topic_to_ledger",
        legs={leg: f"{namespace}.{leg}s" for leg in ("payment", "invoice")},
        ledger={"table": f"{namespace}.posting", "where": "side = 'credit'"},
        **fields,
    )


def payouts_contract(
    name: str,
    namespace: str,
    *,
    columns: Mapping[str, str] | None = None,
    slice_by: str = "written_xid",
    connection: str = LEDGER,
    **fields: Any,
) -> dict[str, Any]:
    """A relay publishes an outbox. columns: of the ledger, where they are not the usual ones."""
    return _contract(
        name,
        direction="ledger_to_topic",
        legs={"payout": f"{namespace}.payouts"},
        ledger={"connection": connection, "table": f"{namespace}.payout", "slice_by": slice_by}
        | ({"columns": columns} if columns else {}),
        **fields,
    )


def reads_contract(name: str, namespace: str, **fields: Any) -> dict[str, Any]:
    """The payment leg alone, in a log that is held; nobody waits for the hold to end."""
    return _contract(
        name,
        direction="topic_to_ledger",
        legs={"payment": f"{namespace}.payments"},
        ledger={"table": f"{namespace}.posting", "where": "side = 'credit' AND leg = 'payment'"},
        settle_timeout_seconds=1,
        **fields,
    )


def faulty(namespace: str, service: str) -> dict[str, Any]:
    """What books with planted faults declare besides: strays, origins, order, and how far a clock may be wrong."""
    return {
        "stray_topics": [f"{namespace}.stray"],
        "event": {"origin_header": "service", "known_origins": [service], **_ORDER},
        "timestamp_tolerance_seconds": 3600,
    }


def write_contract(folder: Path, contract: Mapping[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{contract['contract']}.yaml"
    path.write_text(yaml.safe_dump(dict(contract), sort_keys=False))
    return path


def _contract(
    name: str, *, ledger: Mapping[str, Any], stray_topics: list[str] | None = None, **fields: Any
) -> dict[str, Any]:
    contract = {
        "contract": name,
        "version": 1,
        "owner": "lab",
        "schedule": _NEVER,
        "start_date": datetime.now(UTC).replace(microsecond=0) - timedelta(days=1),
        "kafka": {"connection": KAFKA} | ({"stray_topics": stray_topics} if stray_topics else {}),
        "ledger": {"connection": LEDGER, **ledger},
        "partner_grace_seconds": 0,  # the lab writes everything before it asks for a window
        "settle_timeout_seconds": 60,
        "empty": "refused",
        **fields,
    }
    return format_in(contract)
