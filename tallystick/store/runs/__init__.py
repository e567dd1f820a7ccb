"""Cuts, samples, verdicts and open items."""
