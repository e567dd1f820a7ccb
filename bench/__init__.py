"""Measurements of the product: not tests, and no part of it."""
