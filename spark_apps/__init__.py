"""What the cluster runs. `*_app.py` are entry points: argv in, a stored verdict out; the rest are libraries."""
