"""How money, durations, findings and sides read to people. Pure."""
