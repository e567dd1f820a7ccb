"""The way from evidence to a verdict, its open items and its digest, and the canaries that prove it can fail. Pure."""
