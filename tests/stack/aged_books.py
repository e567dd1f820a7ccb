"""Books as if their verdicts had been stored when their windows ended: pruning asks how old they are.

The store dates what it is given by its own clock. So its owner dates it back, by hand.
"""

from sqlalchemy import Engine, text

_DATED_BACK = {
    "verdict": "set recorded_at = c.window_end_utc from tallystick.cut as c "
    "where c.contract = t.contract and c.n = t.cut_n",
    "alert": "set recorded_at = c.window_end_utc from tallystick.cut as c "
    "where c.contract = t.contract and c.n = t.cut_n",
    "compensation_plan": "set recorded_at = c.window_end_utc from tallystick.cut as c "
    "where c.contract = t.contract and c.n = t.cut_n",
    "audit": "set recorded_at = p.recorded_at from tallystick.compensation_plan as p where p.plan_id = t.plan_id",
}


def date_back(owned: Engine, *, but_plans: bool = False) -> None:
    """Date what is stored by the window that it belongs to. but_plans: plans and their trail are of today."""
    with owned.begin() as connection:
        for table, change in _DATED_BACK.items():
            if but_plans and table in ("compensation_plan", "audit"):
                continue
            connection.execute(text(f"alter table tallystick.{table} disable trigger append_only"))
            connection.execute(text(f"update tallystick.{table} as t {change}"))
            connection.execute(text(f"alter table tallystick.{table} enable trigger append_only"))
