"""What of the past is deleted, and what stays."""
