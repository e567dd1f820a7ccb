"""The state of the cluster around a cut: settings, open transactions, retention."""
