"""Addresses and credentials as values, and what it means when a server refuses them."""
