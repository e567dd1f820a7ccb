"""Who is told what, how loudly, and when it is over."""
