"""What is broken on purpose, a family of faults each."""
