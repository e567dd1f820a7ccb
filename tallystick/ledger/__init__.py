"""The ledger protocol and its kinds: PostgreSQL, JDBC, Parquet, and topics that play the part of a ledger."""
