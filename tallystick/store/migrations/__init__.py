"""How the verdict store came to its shape, step by step. `migrate` in tallystick/store/engine.py runs them."""
