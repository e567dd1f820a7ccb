"""The contract file: its sections, its errors, and what a change of it means."""
