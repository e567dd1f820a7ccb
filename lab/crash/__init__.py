"""Repairs struck at every step."""
