"""The billing services under test: the workload."""
