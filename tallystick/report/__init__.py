"""The report of one run: one HTML page, its rows and its drawings."""
