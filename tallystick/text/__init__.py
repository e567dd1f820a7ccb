"""The words for money, durations, findings and sides. Pure."""
