"""The texts that were committed, by file name."""

from tests.alert_snapshots import snapshots

TEXTS = snapshots()
