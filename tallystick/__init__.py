"""Tallystick: proves, window after window, that a Kafka log and a ledger agree exactly once."""

__version__ = "0.1.0"
