"""Gives Airflow a home of its own before anything imports it; nothing here reaches a database or a broker."""

import atexit
import json
import os
import shutil
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_HOME = Path(tempfile.mkdtemp(prefix="tallystick-airflow-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

LEDGER_PASSWORD, STORE_PASSWORD, BROKER_PASSWORD = "led/ger secret", "store-secret", "broker-secret"

os.environ |= {
    "AIRFLOW_HOME": str(_HOME),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME / 'airflow.db'}",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
    "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    "AIRFLOW_CONN_KAFKA_BILLING": json.dumps(
        {
            "conn_type": "kafka",
            "extra": {
                "bootstrap.servers": "broker:9093",
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "reader",
                "sasl.password": BROKER_PASSWORD,
            },
        }
    ),
    "AIRFLOW_CONN_LEDGER_BILLING": json.dumps(
        {"conn_type": "postgres", "host": "db", "login": "reader", "password": LEDGER_PASSWORD, "schema": "ledger"}
    ),
    "AIRFLOW_CONN_TALLYSTICK_STORE": json.dumps(
        {"conn_type": "postgres", "host": "db", "port": 5433, "login": "ts", "password": STORE_PASSWORD, "schema": "ts"}
    ),
    "AIRFLOW_CONN_ALERT_WEBHOOK": json.dumps(
        {"conn_type": "http", "host": "pager", "schema": "https", "extra": {"endpoint": "/v1/alerts"}}
    ),
}
