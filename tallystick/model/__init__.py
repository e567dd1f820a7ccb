"""The vocabulary: cuts, offsets, findings, run results. Values only: no contract, no SQL, no I/O."""
