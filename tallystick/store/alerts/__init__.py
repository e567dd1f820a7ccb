"""The alert outbox and its incidents."""
