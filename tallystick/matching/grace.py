"""The time that a partner may take: the contract's grace, or a longer one from measured lags. Pure."""

from collections.abc import Sequence

from tallystick.contract.contract import Contract
from tallystick.model.partner_lag import Grace, TopicLag, add_lags, p999_ms


def grace_in_force(contract: Contract, clean_runs: Sequence[tuple[TopicLag, ...]]) -> Grace:
    """Return min(cap, max(the contract's grace, p99.9 of the lag in clean runs)), in whole seconds.

    clean_runs: the lags of MATCHED runs only. One measured while the pipeline was down grows with what is lost, and
    would hide it.
    """
    topics = add_lags(lag for run in clean_runs for lag in run)
    measured = max(
        ((edge, sum(lag.pairs)) for lag in topics if (edge := p999_ms(lag.pairs)) is not None), default=(None, None)
    )
    wanted = max(contract.partner_grace_seconds, -(-(measured[0] or 0) // 1000))
    return Grace(
        seconds=min(contract.grace_cap_seconds, wanted),
        measured_ms=measured[0],
        clean_runs=len(clean_runs),
        pairs=measured[1],
    )
