"""The effects that a plan may have on Kafka, a ledger or Airflow, and their proofs."""
