"""T1: a business transaction of which some legs are committed and some are not, past the grace.

Evidence: 0 < committed legs < expected legs; the LSO has passed every mark taken by the deadline; and no record of the
transaction is committed or open in an absent leg's topic anywhere on the retained log. Not to be mistaken for a leg
that lies beyond the cut, behind the LSO or before the baseline, nor for one on a stray topic (misrouted_in_topic);
nor for one that the protocol tore (torn_by_protocol); nor for a transaction from before the books, of which a leg is
sent again when the log has forgotten the others: a row of it that may be older than the books tells, or a row of an
absent leg that is undecidable itself. While a row or event of it waits, what will tell may be still to come.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from tallystick.anomalies.breaks.make_break import origin_json, seen_as_json
from tallystick.contract.contract import Contract
from tallystick.kafka_log.batch_header import NO_PRODUCER_ID
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import LegsCase, UnmatchedItems
from tallystick.matching.match_case import BEYOND_THE_CUT, Deadlines, Entry, LookupHit, MatchStatus, RecordLocation
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, break_id
from tallystick.model.open_item import ItemSide, ItemState


def torn_transaction(
    contract: Contract, incomplete: tuple[LegsCase, ...], record_origins: Mapping[str, LogRecord], deadlines: Deadlines
) -> Iterator[Break]:
    """One break per transaction; its leg names the absent ones, joined by +. At stake is what the seen legs moved."""
    for case, absent in proven_torn(contract, incomplete, deadlines):
        if not was_torn_by_protocol(record_origins, case, absent):
            leg = "+".join(absent)
            story = f"The transaction {case.transaction_key} committed {seen_legs(case)}, but never its {leg} leg."
            yield legs_break(contract, record_origins, case, BreakClass.TORN_TRANSACTION, story)


def proven_torn(
    contract: Contract, incomplete: tuple[LegsCase, ...], deadlines: Deadlines
) -> Iterator[tuple[LegsCase, list[str]]]:
    """Transactions that are torn, whoever tore them, with their absent legs."""
    for case in incomplete:
        absent = absent_legs(case, contract.legs)
        proven = absent and judge_legs(case, deadlines) is MatchStatus.FOLLOWER_ABSENT
        if proven and not has_strayed(contract, case):
            yield case, absent


def was_torn_by_protocol(record_origins: Mapping[str, LogRecord], case: LegsCase, absent: Iterable[str]) -> bool:
    """Return whether every absent leg was written, and aborted, in the producer transaction that
    committed a seen leg.
    """
    committed = [
        record
        for leg in case.seen
        for one in case.lookup_hits.get(leg, ())
        if _is_committed(one) and (record := record_origins.get(one.item_id)) is not None
    ]
    return all(
        any(
            _are_one_transaction(record, other)
            for one in case.lookup_hits.get(leg, ())
            if one.place is RecordLocation.ABORTED and (record := record_origins.get(one.item_id)) is not None
            for other in committed
        )
        for leg in absent
    )


def _are_one_transaction(aborted: LogRecord, committed: LogRecord) -> bool:
    """Return whether both are of one producer transaction. Where the epoch moves with each, id and epoch name one.

    Where it stays, two records are of one when each was written before the other's marker: a producer has one
    transaction at a time. Records carry the client's clock, markers the broker's; what a clock cannot tell is no proof.
    """
    if (aborted.producer_id, aborted.producer_epoch) != (committed.producer_id, committed.producer_epoch):
        return False
    if aborted.producer_id == NO_PRODUCER_ID or aborted.span is None or committed.span is None:
        return False
    if MarkerProtocol.EPOCH_PER_TRANSACTION in (aborted.span.protocol, committed.span.protocol):
        return True
    ends = aborted.span.marker_timestamp_ms, committed.span.marker_timestamp_ms
    return (
        ends[0] is not None
        and ends[1] is not None
        and aborted.timestamp_ms <= ends[1]
        and committed.timestamp_ms <= ends[0]
    )


def _is_committed(seen: LookupHit) -> bool:
    return seen.place in (RecordLocation.EARLIER_SLICE, RecordLocation.SLICE)


def absent_legs(case: LegsCase, legs: Iterable[str]) -> list[str]:
    """Expected legs that neither this cut, an open item nor an earlier slice has shown committed."""
    return [leg for leg in sorted(legs) if leg not in case.seen and not _committed_earlier(case, leg)]


def has_strayed(contract: Contract, case: LegsCase) -> bool:
    """Return whether every absent leg is on a stray topic. Where the ledger comes first, its rows say
    so, one by one.
    """
    absent = absent_legs(case, contract.legs)
    strayed = all(any(seen.place is RecordLocation.STRAY for seen in case.lookup_hits.get(leg, ())) for leg in absent)
    return contract.direction is Direction.TOPIC_TO_LEDGER and bool(absent) and strayed


def posted_strays(contract: Contract, unmatched: UnmatchedItems, case: LegsCase) -> list[Entry]:
    """The rows of the strayed legs, where every one of them has one: each answers for its event. Else none."""
    absent = absent_legs(case, contract.legs)
    rows = [unmatched.rows_without_event.get((case.transaction_key, leg)) for leg in absent]
    return [row for row in rows if row is not None] if has_strayed(contract, case) and None not in rows else []


def judge_legs(case: LegsCase, deadlines: Deadlines) -> MatchStatus:
    """FOLLOWER_ABSENT: torn, proven. Else what it waits for. Judged once: a broken one is not judged again."""
    if case.carried is not None and case.carried.state is not ItemState.OPEN:
        return MatchStatus.WAITING
    places = {seen.place for lookup_hits in case.lookup_hits.values() for seen in lookup_hits}
    due = case.carried.due_utc if case.carried else deadlines.new_copies_due_utc
    if places & BEYOND_THE_CUT:
        return MatchStatus.WAITING
    if RecordLocation.BEFORE_BASELINE in places:
        return MatchStatus.UNDECIDABLE
    if due > deadlines.now_utc:
        return MatchStatus.WAITING
    unseen = deadlines.out_of_sight
    if deadlines.topic_lost_offsets or deadlines.first_seen_by(case.carried) in unseen.legs_lost:
        return MatchStatus.PARTNER_EXPIRED
    if case.unread - case.seen.keys():
        return MatchStatus.PARTNER_EXPIRED
    undecided = any(leg not in case.seen and not _committed_earlier(case, leg) for leg in case.undecided)
    if unseen.legs_of_before_lost and (case.is_of_before or undecided):
        return MatchStatus.PARTNER_EXPIRED
    if unseen.legs_of_before_lost and case.partner_awaited is not None:
        return case.partner_awaited
    return MatchStatus.FOLLOWER_ABSENT if _settled(due, deadlines) else MatchStatus.UNSETTLED


def _settled(due: datetime, deadlines: Deadlines) -> bool:
    until = deadlines.settled_until(ItemSide.TOPIC)
    return until is not None and until >= due


def _committed_earlier(case: LegsCase, leg: str) -> bool:
    return any(_is_committed(seen) for seen in case.lookup_hits.get(leg, ()))


def _where(case: LegsCase, leg: str) -> str:
    """Return the place of a seen leg. The item of an earlier cut's leg knows only that it was seen, the look-up knows
    where.
    """
    if case.carried is not None and case.seen[leg][2] == case.carried.item_id:
        committed = (seen for seen in case.lookup_hits.get(leg, ()) if seen.place is RecordLocation.EARLIER_SLICE)
        return next((seen.item_id for seen in committed), "an earlier offset")
    return case.seen[leg][2]


def seen_legs(case: LegsCase) -> str:
    """The committed legs and where they stand, for people."""
    return ", ".join(f"{name} at {_where(case, name)}" for name in sorted(case.seen))


def _size(money: tuple[int, str]) -> int:
    """Whatever the sign: a refund is torn as a payment is."""
    return abs(money[0])


def legs_break(
    contract: Contract, record_origins: Mapping[str, LogRecord], case: LegsCase, break_class: BreakClass, story: str
) -> Break:
    """A break about the absent legs of one business transaction."""
    absent = absent_legs(case, contract.legs)
    leg = "+".join(absent)
    amount_minor, currency = max(((amount, currency) for amount, currency, _ in case.seen.values()), key=_size)
    return Break(
        break_id=break_id(
            contract=contract.name,
            break_class=break_class,
            match_key=case.transaction_key,
            position=leg,
        ),
        break_class=break_class,
        match_key=case.transaction_key,
        transaction_key=case.transaction_key,
        leg=leg,
        amount_minor=amount_minor,
        currency=currency,
        copies=1,
        story=story,
        evidence={
            "seen_legs": {name: _where(case, name) for name in sorted(case.seen)},
            "found_elsewhere": [seen_as_json(seen) for leg in absent for seen in case.lookup_hits.get(leg, ())],
            "identities": {
                item_id: origin_json(record_origins[item_id])
                for item_id in _stands_of(case)
                if item_id in record_origins
            },
        },
    )


def _stands_of(case: LegsCase) -> list[str]:
    """Item ids of all that is known of a transaction's legs, once each."""
    seen = (item_id for _, _, item_id in case.seen.values())
    lookup_hits = (seen.item_id for found in case.lookup_hits.values() for seen in found)
    return list(dict.fromkeys((*seen, *lookup_hits)))
