"""Real servers, started here and stopped again."""
