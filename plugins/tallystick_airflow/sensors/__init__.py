"""Wait for a window to settle."""
