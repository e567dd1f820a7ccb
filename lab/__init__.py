"""A real broker, a real ledger, a billing workload, and the faults that break it, with the truth written down.

Imports nothing of `tallystick`: what the lab plants, the reconciler has to find by itself.
"""
