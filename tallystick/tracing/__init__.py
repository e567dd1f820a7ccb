"""The way of one key's event: contracts that share a topic or a ledger, joined by the key."""
