"""M5: the event is committed, but not on the topic that its leg belongs to.

Evidence, any of:
- a ledger row is past its deadline and has no event on the topics of the legs, and a committed record of its key lies
  on one of the contract's stray topics. Not to be mistaken for a row whose record there was aborted (that is aborted
  only), or is open there (it waits);
- topic_to_ledger: a business transaction lacks legs past its deadline, and each of them is committed on a stray topic.
  Where all of them were posted from there, their rows say so, and the transaction says nothing more;
- an event lies on a leg's topic and names another leg of the contract, whether its row pairs with it or never came. Not
  to be mistaken for one that names no leg of the contract: that may be anything.
A second copy on a stray topic, beside the right one, is no break: nobody of this contract reads that topic. A second
copy under the wrong leg is a duplicate like any other. An event that no row stands behind is a phantom, on whatever
topic it lies.
"""

from collections.abc import Iterator, Mapping

from tallystick.anomalies.breaks.make_break import break_of
from tallystick.anomalies.breaks.torn_transaction import absent_legs, has_strayed, judge_legs, legs_break, posted_strays
from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import LegsCase, UnmatchedItems
from tallystick.matching.match_case import Deadlines, MatchStatus, RecordLocation, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide


def misrouted_in_topic(
    contract: Contract,
    unmatched: UnmatchedItems,
    incomplete: tuple[LegsCase, ...],
    record_origins: Mapping[str, LogRecord],
    deadlines: Deadlines,
) -> Iterator[Break]:
    """One break per row whose event strays, per event under the wrong leg, per transaction whose legs stray."""
    for fate in (MatchStatus.FOLLOWER_ABSENT, MatchStatus.ORIGIN_ABSENT):
        for residue in unmatched.of(fate, ItemSide.LEDGER):
            if is_astray(residue):
                yield _astray(contract, residue)
    for residue in unmatched.of(MatchStatus.MISROUTED, ItemSide.TOPIC):
        yield _under_the_wrong_leg(contract, residue)
    for case in incomplete:
        if judge_legs(case, deadlines) is not MatchStatus.FOLLOWER_ABSENT or not has_strayed(contract, case):
            continue
        if not posted_strays(contract, unmatched, case):
            yield _strayed_legs(contract, record_origins, case)


def _strayed_legs(contract: Contract, record_origins: Mapping[str, LogRecord], case: LegsCase) -> Break:
    absent = absent_legs(case, contract.legs)
    strays = [seen.item_id for leg in absent for seen in case.lookup_hits[leg] if seen.place is RecordLocation.STRAY]
    story = (
        f"The transaction {case.transaction_key} lacks its {'+'.join(absent)} leg, which is committed at "
        f"{', '.join(strays)}."
    )
    return legs_break(contract, record_origins, case, BreakClass.MISROUTED_IN_TOPIC, story)


def is_astray(residue: UnmatchedItem) -> bool:
    """Return whether an event of this copy's key was committed on a stray topic."""
    return any(seen.place is RecordLocation.STRAY for seen in residue.lookup_hits)


def _astray(contract: Contract, residue: UnmatchedItem) -> Break:
    strays = [seen.item_id for seen in residue.lookup_hits if seen.place is RecordLocation.STRAY]
    expected = contract.legs.get(residue.copy.leg)
    story = (
        f"The ledger has {residue.copy.item_id}; its event is committed at {', '.join(strays)}, and not on "
        f"{expected or 'the topic of a leg'}."
    )
    return break_of(
        contract,
        residue,
        BreakClass.MISROUTED_IN_TOPIC,
        story,
        evidence={"expected_topic": expected, "found_at": strays},
    )


def _under_the_wrong_leg(contract: Contract, residue: UnmatchedItem) -> Break:
    copy, expected = residue.copy, contract.legs[residue.copy.leg]
    story = f"The event at {copy.item_id} is of the leg {copy.leg!r}, whose topic is {expected}."
    return break_of(
        contract,
        residue,
        BreakClass.MISROUTED_IN_TOPIC,
        story,
        evidence={
            "expected_topic": expected,
            "found_at": [copy.item_id],
            "partner": residue.partner.item_id if residue.partner else None,
        },
    )
