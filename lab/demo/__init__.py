"""The demo, and the shop that `make up` opens."""
