"""One operator a task: thin, no rules."""
