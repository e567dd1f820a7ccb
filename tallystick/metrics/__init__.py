"""Metric names and units, and their export."""
