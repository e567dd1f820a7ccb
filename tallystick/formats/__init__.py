"""The formats of record values: each turns a value's bytes into JSON, which one rule reads (`EventDecoder`)."""
