"""DAGs and a task group from contracts: what a DAG file of one's own calls."""
