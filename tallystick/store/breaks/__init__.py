"""Breaks as people ask for them: one by id, its history, its write-off."""
