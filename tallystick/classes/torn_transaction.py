"""T1: a business transaction of which some legs are committed and some are not, past the grace.

Evidence: 0 < committed legs < expected legs; the LSO has passed every mark taken by the deadline; and no record of the
transaction is committed or open in an absent leg's topic anywhere on the retained log. Not to be mistaken for a leg
that lies beyond the cut, behind the LSO or before the baseline.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from tallystick.break_class import BreakClass
from tallystick.classes.breaks import seen_as_json
from tallystick.evidence import Evidence, LegsCase
from tallystick.pairing import Deadlines, Fate, Place
from tallystick.run_result import Break, ItemSide, ItemState, break_id


def torn_transaction(evidence: Evidence) -> Iterator[Break]:
    """One break per transaction; its leg names the absent ones, joined by +. At stake is what the seen legs moved."""
    for case in evidence.incomplete:
        absent = absent_legs(case, evidence.contract.legs)
        if absent and judge_legs(case, evidence.deadlines) is Fate.FOLLOWER_ABSENT:
            yield _torn(evidence, case, absent)


def absent_legs(case: LegsCase, legs: Iterable[str]) -> list[str]:
    """Expected legs that neither this cut, an open item nor an earlier slice has shown committed."""
    return [leg for leg in sorted(legs) if leg not in case.seen and not _committed_earlier(case, leg)]


def judge_legs(case: LegsCase, deadlines: Deadlines) -> Fate:
    """FOLLOWER_ABSENT: torn, proven. Else what it waits for. Judged once: a broken one is not judged again."""
    if case.carried is not None and case.carried.state is not ItemState.OPEN:
        return Fate.WAITING
    places = {seen.place for sightings in case.sightings.values() for seen in sightings}
    due = case.carried.due_utc if case.carried else deadlines.new_copies_due_utc
    if Place.PENDING in places:
        return Fate.WAITING
    if Place.BEFORE_BASELINE in places:
        return Fate.UNDECIDABLE
    if due > deadlines.now_utc:
        return Fate.WAITING
    if deadlines.topic_lost_offsets:
        return Fate.PARTNER_EXPIRED
    return Fate.FOLLOWER_ABSENT if _settled(due, deadlines) else Fate.UNSETTLED


def _settled(due: datetime, deadlines: Deadlines) -> bool:
    until = deadlines.settled_until(ItemSide.TOPIC)
    return until is not None and until >= due


def _committed_earlier(case: LegsCase, leg: str) -> bool:
    return any(seen.place in (Place.EARLIER_SLICE, Place.SLICE) for seen in case.sightings.get(leg, ()))


def _where(case: LegsCase, leg: str) -> str:
    """Where a seen leg stands. Of an earlier cut's leg the item knows only that it was seen, the look-up where."""
    if case.carried is not None and case.seen[leg][2] == case.carried.item_id:
        committed = (seen for seen in case.sightings.get(leg, ()) if seen.place is Place.EARLIER_SLICE)
        return next((seen.item_id for seen in committed), "an earlier offset")
    return case.seen[leg][2]


def _torn(evidence: Evidence, case: LegsCase, absent: list[str]) -> Break:
    leg = "+".join(absent)
    amounts = [(amount, currency) for amount, currency, _ in case.seen.values()]
    seen_legs = {name: _where(case, name) for name in sorted(case.seen)}
    seen = ", ".join(f"{name} at {item_id}" for name, item_id in seen_legs.items())
    story = f"The transaction {case.transaction_key} committed {seen}, but never its {leg} leg."
    return Break(
        break_id=break_id(
            contract=evidence.contract.contract,
            break_class=BreakClass.TORN_TRANSACTION,
            match_key=case.transaction_key,
            position=leg,
        ),
        break_class=BreakClass.TORN_TRANSACTION,
        match_key=case.transaction_key,
        transaction_key=case.transaction_key,
        leg=leg,
        amount_minor=max(amount for amount, _ in amounts),
        currency=amounts[0][1],
        copies=1,
        story=story,
        evidence={
            "seen_legs": seen_legs,
            "found_elsewhere": [seen_as_json(seen) for leg in absent for seen in case.sightings.get(leg, ())],
        },
    )
