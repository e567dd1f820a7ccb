"""The reconciler, as its users start it."""
