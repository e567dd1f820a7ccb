"""Airflow's side of Tallystick: a sensor, its trigger, and operators, each as thin as its docstring.

Installed as a package, not loaded from the plugins folder (see plugins/.airflowignore). What is heavy (Spark's, Kafka's
and PostgreSQL's clients, the report) is imported inside the methods that run, never while a DAG file is parsed.
"""

import logging

for _client in ("kafka", "alembic", "great_expectations"):  # at INFO they write thirty lines for each of ours
    logging.getLogger(_client).setLevel(logging.WARNING)
