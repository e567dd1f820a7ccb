"""The assets that a contract's verdicts update, so that other DAGs can be scheduled on them.

`tallystick://<contract>/verdict` has an event for each verdict, `tallystick://<contract>/matched` for each that is
MATCHED. The extra of both is `verdict_event_document`, whose schema is docs/schemas/verdict_event.v1.json.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import Asset, AssetAlias, Context

if TYPE_CHECKING:
    from tallystick.model.stored_run import StoredRun

_CLOCKS_DIFFER = timedelta(hours=1)
"""The store's clock and Airflow's: an event of a verdict is not looked for further back than this before it."""


def verdict_asset(contract_name: str) -> Asset:
    return Asset(f"tallystick://{contract_name}/verdict")


def matched_asset(contract_name: str) -> Asset:
    return Asset(f"tallystick://{contract_name}/matched")


def verdicts_of(contract_name: str) -> AssetAlias:
    """Return the inlet and outlet of a task, which adds events of both assets where there are any."""
    return AssetAlias(f"tallystick.{contract_name}")


def announce(context: Context, run: "StoredRun") -> bool:
    """Record a verdict's events, together with the success of the task that runs; False where they were recorded
    before.

    So a cut that is run again, or whose first attempt was lost after the verdict, has its events once.
    """
    from tallystick.documents.run import verdict_event_document  # SQLAlchemy: not while parsing
    from tallystick.model.verdict import Verdict

    name, told = run.result.contract, verdicts_of(run.result.contract)
    since = (run.recorded_at - _CLOCKS_DIFFER).isoformat()
    if any((event.extra or {}).get("cut") == run.result.cut_n for event in context["inlet_events"][told].after(since)):
        return False
    extra = verdict_event_document(run)
    context["outlet_events"][told].add(verdict_asset(name), extra)
    if run.result.verdict is Verdict.MATCHED:
        context["outlet_events"][told].add(matched_asset(name), extra)
    return True
