"""Parts of Airflow that are no public API of it. Nothing else here imports them.

Each minor release may change it: tests/dags/test_internals.py holds it against the Airflow that is installed.
"""
