"""Lags of pairs by topic."""

from tallystick.model.partner_lag import TopicLag, lags_of_pairs


def lag_of(*lags_ms: int, topic: str = "billing.payments") -> tuple[TopicLag, ...]:
    return lags_of_pairs((topic, lag_ms) for lag_ms in lags_ms)
