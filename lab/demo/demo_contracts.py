"""The demo's contracts: the two examples of dags/contracts/, once for each delivery mode."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from lab.servers.process import REPOSITORY
from lab.services.delivery_mode import DeliveryMode

KINDS = ("payments", "payouts")
_EXAMPLES = REPOSITORY / "dags" / "contracts"
_DAYS_APART = (-2, 2)
"""The schedule's days around the demo's. It asks for each window itself; the schedule must not, in its few minutes.

A schedule that hardly ever runs would ask for topics that are kept for years.
"""

_SETTLE_SECONDS = {DeliveryMode.EXACTLY_ONCE: 5}
"""The exactly-once mode is shown while something holds it, so waiting long would only be waiting."""


def contract_name(mode: DeliveryMode, kind: str) -> str:
    return f"{mode}_{kind}"


def write_contracts(folder: Path) -> None:
    """Write six contracts, each for the topics and tables of its mode's namespace."""
    folder.mkdir(parents=True, exist_ok=True)
    for mode in DeliveryMode:
        for kind in KINDS:
            name = contract_name(mode, kind)
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(_contract(mode, kind), sort_keys=False))


def _contract(mode: DeliveryMode, kind: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((_EXAMPLES / f"billing_{kind}.yaml").read_text())
    now = datetime.now(UTC).replace(microsecond=0)
    days = ",".join(f"{now + timedelta(days=apart):%w}" for apart in _DAYS_APART)
    document |= {
        "contract": contract_name(mode, kind),
        "schedule": f"0 0 * * {days}",
        "start_date": now - timedelta(days=1),
        "legs": {leg: _moved(topic, mode) for leg, topic in document["legs"].items()},
        "partner_grace_seconds": 0,  # the lab drains its traffic before it asks for a window
        "partner_grace_cap_seconds": 0,
        "settle_timeout_seconds": _SETTLE_SECONDS.get(mode, 120),
        "empty": "refused",
    }
    document["ledger"]["table"] = _moved(document["ledger"]["table"], mode)
    for sink in document["alert"]["sinks"]:
        if sink["kind"] == "file":
            sink["path"] = f"alerts/{contract_name(mode, kind)}.jsonl"
    if "compensation" in document:
        document["compensation"]["max_amount_minor"]["JPY"] = 2_000_000
        document["compensation"]["four_eyes_above_minor"]["JPY"] = 2_000_000
    return document


def _moved(name: str, mode: DeliveryMode) -> str:
    """A topic or table of the example, in the mode's own namespace."""
    return f"{mode}.{name.removeprefix('billing.')}"


def every_contract() -> Iterator[tuple[DeliveryMode, str]]:
    for mode in DeliveryMode:
        for kind in KINDS:
            yield mode, kind
