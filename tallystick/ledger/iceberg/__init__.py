"""A ledger in a table of Apache Iceberg: its catalog, its history of snapshots, its rows, and the ledger itself."""
