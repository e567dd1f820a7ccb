"""One DAG per contract, and one more for each that allows repairs; refused_contracts_dag.py shows those refused."""

from tallystick_airflow import reconcile_dags

globals().update(reconcile_dags(show_refused=False))
