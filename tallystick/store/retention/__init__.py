"""Retention: deletes what is old and closed, and says what stays."""
