"""Rules that make a run INCONCLUSIVE."""
