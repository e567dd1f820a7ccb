"""Windows without end, backfills and long histories."""
