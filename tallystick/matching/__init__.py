"""The pairing of events and rows, and the facts about those that have no partner. Pure."""
