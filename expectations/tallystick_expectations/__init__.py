"""Great Expectations suites over a run, and their evaluation."""
