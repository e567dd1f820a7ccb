"""The pages' routes, and who may see and do what."""
