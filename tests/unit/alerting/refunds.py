"""A payment and a refund that are both missing."""

from tests.unit.alerting.run_alerts import a_break

PAID, REFUNDED = a_break("paid", amount_minor=5_000_000), a_break("refunded", amount_minor=-5_000_000)
