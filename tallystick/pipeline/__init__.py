"""The steps of a run: readiness, cut, investigation, lookups, delivery."""
