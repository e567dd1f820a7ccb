"""The verdict store: PostgreSQL, schema `tallystick`. A file per noun; the tables are in schema.py."""
