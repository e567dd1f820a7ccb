"""One module for each kind of receiver."""
