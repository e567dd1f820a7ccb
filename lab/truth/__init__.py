"""What must be found, read by readers that share nothing with the product."""
