"""The bytes of the log: fetched, decoded, counted and searched."""
