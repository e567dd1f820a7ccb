"""A plan that ends a hanging transaction, and what was seen around it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tallystick.compensation.plan import Plan, PlanContext
from tallystick.compensation.planning import make_plan
from tallystick.kafka_cluster.state import ClusterState
from tests.unit.compensation.plans import NOON, contract, run
from tests.unit.open_transactions import BEHIND, HANGING, OWN, SETTINGS, SIGHT

OLD = replace(SIGHT, first_seen_utc=NOON - timedelta(seconds=7_500))
AROUND = ClusterState(
    broker_settings=SETTINGS, open_transactions=(HANGING,), first_sights=(OLD,), held_events=(OWN, BEHIND)
)
ABORTS: dict[str, Any] = {"abort_hanging_transactions": True}


def planned(around: ClusterState = AROUND, *, newest: ClusterState | None = None, **rules: Any) -> Plan:
    stood = PlanContext(planned=around, newest=around if newest is None else newest)
    return make_plan(contract(**ABORTS | rules), run(), (), around=stood, dry_run=False)
