"""M3, T4, P2, L1: a side could not be read up to its mark, or an absence could not be judged for that reason.

Held is never missing: these are doubts, and name who holds the side back, since when, and how much is held.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from tallystick.break_class import Doubt
from tallystick.classes.torn_transaction import absent_legs, judge_legs
from tallystick.cut import TopicSlice
from tallystick.evidence import Evidence
from tallystick.pairing import Fate
from tallystick.run_result import DoubtFound, ItemSide, total_money
from tallystick.topic_snapshot import OpenTransaction


def held_by_open_transaction(evidence: Evidence) -> Iterator[DoubtFound]:
    """One per partition whose slice ends below its mark."""
    for topic_slice in evidence.cut.topic_slices:
        if topic_slice.held:
            holders = [
                held
                for held in evidence.surroundings.open_transactions
                if held.topic_partition == topic_slice.offsets.topic_partition
            ]
            yield _held_partition(topic_slice, min(holders, key=lambda held: held.kafka_offset_start, default=None))


def _held_partition(topic_slice: TopicSlice, holder: OpenTransaction | None) -> DoubtFound:
    part, held = topic_slice.offsets.topic_partition, topic_slice.mark - topic_slice.offsets.kafka_offset_end
    return DoubtFound(
        doubt=Doubt.HELD_BY_OPEN_TRANSACTION,
        sentence=f"{part}: {held} offsets could not be read: {_describe(holder)} holds the LSO at "
        f"{topic_slice.offsets.kafka_offset_end}, the mark is {topic_slice.mark}.",
        details={
            "topic": part.topic,
            "partition": part.partition,
            "held_offsets": held,
            "lso": topic_slice.offsets.kafka_offset_end,
            "mark": topic_slice.mark,
            "transactional_id": holder.transactional_id if holder else "",
            "producer_id": holder.producer_id if holder else None,
            "producer_epoch": holder.producer_epoch if holder else None,
            "since_utc": _moment(holder.started_ms) if holder else None,
        },
    )


def _describe(holder: OpenTransaction | None) -> str:
    if holder is None:
        return "a producer transaction that has ended meanwhile"
    name = holder.transactional_id or "unknown to every coordinator"
    since = _moment(holder.started_ms)
    return f"the open transaction of {name} (producer {holder.producer_id}{f', since {since}' if since else ''})"


def _moment(milliseconds: int | None) -> str | None:
    if milliseconds is None or milliseconds < 0:
        return None
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def held_by_ledger_horizon(evidence: Evidence) -> Iterator[DoubtFound]:
    """The horizon stands below the mark: a database transaction that was open then is open still."""
    ledger = evidence.cut.ledger_slice
    if not ledger.held:
        return
    holder = evidence.horizon_holder
    since = f"{holder.since:%Y-%m-%d %H:%M:%S} UTC" if holder and holder.since else None
    who = (
        f"{holder.holder}{f', open since {since}' if since else ''}"
        if holder
        else "a transaction that has ended meanwhile"
    )
    yield DoubtFound(
        doubt=Doubt.HELD_BY_LEDGER_HORIZON,
        sentence=f"ledger: {ledger.mark - ledger.xid_end} transaction ids could not be read: {who} holds the horizon "
        f"at {ledger.xid_end}, the mark is {ledger.mark}.",
        details={
            "held_transaction_ids": ledger.mark - ledger.xid_end,
            "horizon": ledger.xid_end,
            "mark": ledger.mark,
            "holder": holder.holder if holder else "",
            "since_utc": since,
        },
    )


def partner_not_settled(evidence: Evidence) -> Iterator[DoubtFound]:
    """Copies past their deadline whose other side was held back before it, or not read whole: not judged."""
    unsettled = [
        residue.copy
        for side in (ItemSide.TOPIC, ItemSide.LEDGER)
        for fate in (Fate.UNSETTLED, Fate.PARTNER_EXPIRED, Fate.PARTNER_UNREAD)
        for residue in evidence.residues(fate, side)
    ]
    legs = [
        case
        for case in evidence.incomplete
        if absent_legs(case, evidence.contract.legs)
        and judge_legs(case, evidence.deadlines) in (Fate.UNSETTLED, Fate.PARTNER_EXPIRED)
    ]
    if unsettled or legs:
        yield DoubtFound(
            doubt=Doubt.PARTNER_NOT_SETTLED,
            sentence=f"{len(unsettled) + len(legs)} items are due, but their other side could not be read up to their "
            "deadline.",
            details={
                "items": len(unsettled) + len(legs),
                "money": total_money((copy.currency, copy.amount_minor) for copy in unsettled),
            },
        )
