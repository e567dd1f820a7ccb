"""Plans, approvals, claims and the kill switch."""
