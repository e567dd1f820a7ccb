"""A first contract, proposed from what stands in a topic and in a table: `tallystick init`."""
