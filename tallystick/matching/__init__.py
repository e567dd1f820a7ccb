"""Which event belongs to which row, and what is known of those that have no partner. Pure."""
