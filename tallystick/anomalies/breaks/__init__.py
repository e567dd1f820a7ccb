"""Rules that make a run BROKEN."""
