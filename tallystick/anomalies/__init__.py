"""The registry of anomaly rules: breaks, doubts and notices, a file each. Pure."""
