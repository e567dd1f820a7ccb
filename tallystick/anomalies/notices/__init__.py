"""Rules that change no verdict."""
