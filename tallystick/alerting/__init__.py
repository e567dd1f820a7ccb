"""The alerts: who is alerted, how loudly, and when an incident is over."""
