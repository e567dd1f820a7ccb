"""The clock of the host that made the cut is not the verdict store's.

Nothing of the books is dated by it, so it changes no verdict. What the host writes elsewhere is: logs, a schedule that
fires too early or too late, and files, records or rows that the same clock dates.
"""

from collections.abc import Iterator

from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound

_SHARE_OF_GRACE = 10
"""A tenth of the contract's grace: so much of what is granted to partners the host would have taken away."""


def host_clock_off(contract: Contract, cut: Cut) -> Iterator[NoticeFound]:
    """Report a host whose clock is off by more than a tenth of the contract's grace, and by a second at least."""
    ahead_ms = cut.host_ahead_ms
    allowed_ms = max(1, contract.partner_grace_seconds / _SHARE_OF_GRACE) * 1000
    if ahead_ms is None or abs(ahead_ms) <= allowed_ms:
        return
    yield NoticeFound(
        notice=Notice.HOST_CLOCK_OFF,
        sentence=f"The clock of the host that made this cut is {abs(ahead_ms) / 1000:,.1f} s "
        f"{'ahead of' if ahead_ms > 0 else 'behind'} the verdict store's, by which all of it is dated.",
        details={"host_ahead_ms": ahead_ms},
    )
