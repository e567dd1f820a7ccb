"""Match both sides by keyed hashes, or row by row in Spark."""
