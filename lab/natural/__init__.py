"""Faults that nobody planted: real old Kafkas make them by themselves, and the reconciler must give each its name."""
