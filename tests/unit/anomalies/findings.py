"""What the whole registry says of evidence, and lookup hits that rule a class out."""

from tallystick.anomalies.registry import RULES
from tallystick.judging.judge import judge
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import Break, DoubtFound, NoticeFound
from tallystick.model.open_item import OpenItem
from tests.unit.builders import IN_TOPIC, TOPIC, seen

FEES, ELSEWHERE = "billing.fees", "billing.refunds"
TWO_LEGS = {"payout": TOPIC, "fee": FEES}
ABORTED, STILL_OPEN, BEYOND = (
    seen(IN_TOPIC, place, 25) for place in (RecordLocation.ABORTED, RecordLocation.OPEN, RecordLocation.PENDING)
)
STRAYS = seen(IN_TOPIC, RecordLocation.STRAY, 4, topic=ELSEWHERE)

Findings = list[Break | DoubtFound | NoticeFound]


def all_findings(evidence: Evidence) -> Findings:
    return [found for rule in RULES for found in rule.judge(evidence)]


def classes(evidence: Evidence) -> set[BreakClass | Doubt]:
    """Breaks and doubts, without notices."""
    found = all_findings(evidence)
    return {one.break_class for one in found if isinstance(one, Break)} | {
        one.doubt for one in found if isinstance(one, DoubtFound)
    }


def the_break(evidence: Evidence) -> Break:
    (found,) = [one for one in all_findings(evidence) if isinstance(one, Break)]
    return found


def items_of(evidence: Evidence) -> dict[str, OpenItem]:
    """What the run says of each item."""
    result = judge(evidence, matched_rows=0, matched_money={}, content_digests={}, look_ups={}, carried=())
    return {item.item_id: item for item in result.items}


def notices(evidence: Evidence) -> dict[Notice, int]:
    return {one.notice: one.count for one in all_findings(evidence) if isinstance(one, NoticeFound)}
