"""Read the topic and the ledger, as hashes or as rows."""
