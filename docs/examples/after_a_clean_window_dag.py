"""Starts once a window of billing_payouts is MATCHED. An example: copy it into your DAGs and put your own task in."""

from typing import Any

from airflow.sdk import Asset, dag, task

CLEAN = Asset("tallystick://billing_payouts/matched")


@dag(schedule=CLEAN, catchup=False, tags=["example"])
def after_a_clean_window() -> None:
    @task
    def send_statements(triggering_asset_events: Any = None) -> list[str]:
        """One run of this DAG may stand for several windows, when they were judged in quick succession."""
        windows = sorted((event.extra for event in triggering_asset_events[CLEAN]), key=lambda extra: extra["cut"])
        for window in windows:
            print(f"{window['window_start_utc']} to {window['window_end_utc']}: {window['matched_money_minor']}")
        return [window["run"] for window in windows]

    send_statements()


after_a_clean_window()
