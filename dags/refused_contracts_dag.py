"""Holds no DAG: it fails to import while a contract file is refused, so that Airflow shows file and fault."""

from tallystick_airflow import refuse_contract_dags

refuse_contract_dags()
