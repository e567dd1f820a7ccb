"""The part that a Spark cluster runs: entry points, readers of both sides, and the match."""
