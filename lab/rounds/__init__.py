"""Rounds of mixed faults, found and scored: `make lab`."""
