"""The steps in which the verdict store got its shape. `migrate` in tallystick/store/engine.py runs them."""
