"""From evidence to a verdict, its open items and its digest; the canaries that prove it can fail. Pure."""
