"""Where the event of a key has been: contracts that share a topic or a ledger, joined by the key."""
