"""X2: pairs that both sides write differently and that the contract calls equal.

Counted among the pairs of one cut: an item that waits for its partner is kept as it is compared. Amounts are compared
as numbers, so 12.5 against 12.50 is no difference at all.
"""

from collections.abc import Iterator

from tallystick.matching.evidence import ScanOddities
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.text.verdict_sentence import counted


def representation_differs(oddities: ScanOddities) -> Iterator[NoticeFound]:
    """Report how many pairs differ in writing only, and the rule that makes them equal."""
    count = oddities.differently_written
    if count:
        write = "writes its" if count == 1 else "write their"
        yield NoticeFound(
            notice=Notice.REPRESENTATION_DIFFERS,
            sentence=f"{counted(count, 'matched pair')} {write} currency in another case on each side, which the "
            "contract ignores.",
            count=count,
            details={"pairs": count, "rule": "currency_case: ignored"},
        )
