"""JSON documents and their published schemas."""
