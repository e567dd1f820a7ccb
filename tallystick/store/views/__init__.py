"""Sums that pages and metrics read."""
