"""M3, T4, P2, L1: a side could not be read up to its mark, or an absence could not be judged for that reason.

Held is never missing: these are doubts, and name who holds the side back, since when, and how much is held.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tallystick.anomalies.breaks.torn_transaction import absent_legs, judge_legs
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import BlockedEvents, ClusterState
from tallystick.ledger.protocol import HorizonHolder
from tallystick.matching.evidence import LegsCase, LookedUp, UnmatchedItems
from tallystick.matching.match_case import Deadlines, MatchStatus
from tallystick.model.cut import Cut, TopicSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound, total_money
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide
from tallystick.text.money import format_money
from tallystick.text.plain import format_time
from tallystick.text.verdict_sentence import counted


def held_by_open_transaction(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per partition whose slice ends behind an open transaction, and whose holder is alive or has ended meanwhile.

    A holder that nobody will end is a hanging transaction, one that waits on purpose a prepared one.
    """
    for topic_slice in cut.topic_slices:
        holder = holder_of(cluster, topic_slice)
        if topic_slice.held_by_transaction and not (holder and (holder.hangs or is_prepared(cluster, holder))):
            yield _held_partition(cut, cluster, topic_slice, holder)


def holder_of(cluster: ClusterState, topic_slice: TopicSlice) -> OpenTransaction | None:
    """Return whose transaction is open from the slice's end on; None where it has ended since, or nobody is named."""
    end = topic_slice.offsets.kafka_offset_end
    return next(
        (
            one
            for one in cluster.open_transactions
            if one.topic_partition == topic_slice.offsets.topic_partition and one.kafka_offset_start <= end
        ),
        None,
    )


def is_prepared(cluster: ClusterState, one: OpenTransaction) -> bool:
    """Return whether it may stay open without end. A two-phase transaction has no time-out, an ordinary one is capped.
    Source: KIP-939.

    One that began before the cap was lowered looks the same, and is as alive.
    """
    settings = cluster.broker_settings
    if settings is None or one.timeout_ms is None or not one.will_end:
        return False
    return one.timeout_ms > settings.transaction_max_timeout_ms


def _held_partition(
    cut: Cut, cluster: ClusterState, topic_slice: TopicSlice, holder: OpenTransaction | None
) -> DoubtFound:
    part, held = topic_slice.offsets.topic_partition, topic_slice.mark - topic_slice.offsets.kafka_offset_end
    return DoubtFound(
        doubt=Doubt.HELD_BY_OPEN_TRANSACTION,
        sentence=f"{part}: {counted(held, 'offset')} could not be read: {describe_holder(holder, cluster)} holds the "
        f"LSO at {topic_slice.offsets.kafka_offset_end}, the mark is {topic_slice.mark}.{held_sentence(cluster, part)}",
        details=holder_details(cut, cluster, topic_slice, holder)
        | {"since_utc": moment_text(holder.started_ms) if holder else None},
    )


def holder_details(
    cut: Cut, cluster: ClusterState, topic_slice: TopicSlice, holder: OpenTransaction | None
) -> dict[str, Any]:
    """The figures behind a held partition. Ages and time-outs in seconds; None where no coordinator says."""
    part, end = topic_slice.offsets.topic_partition, topic_slice.offsets.kafka_offset_end
    held = cluster.held_on(part)
    started_ms = holder.started_ms if holder and (holder.started_ms or 0) >= 0 else None
    timeout_ms = holder.timeout_ms if holder else None
    return {
        "topic": part.topic,
        "partition": part.partition,
        "held_offsets": max(0, topic_slice.mark - end),
        "lso": end,
        "mark": topic_slice.mark,
        "transactional_id": holder.transactional_id if holder else "",
        "producer_id": holder.producer_id if holder else None,
        "producer_epoch": holder.producer_epoch if holder else None,
        "kafka_offset_start": holder.kafka_offset_start if holder else None,
        "coordinator_state": holder.coordinator_state if holder else "",
        "age_seconds": None if started_ms is None else seconds_since(cut, from_ms(started_ms)),
        "timeout_seconds": None if timeout_ms is None else timeout_ms // 1000,
        "held_events": sum(one.events for one in held),
        "held_money": held_money(held),
        "held_events_of_holder": sum(one.events for one in held if one.holds),
        "held_money_of_holder": held_money(one for one in held if one.holds),
    }


def held_sentence(cluster: ClusterState, part: TopicPartition) -> str:
    """Say in words what is above the LSO; nothing where it was not counted."""
    held = cluster.held_on(part)
    if not held:
        return ""
    events, own = sum(one.events for one in held), sum(one.events for one in held if one.holds)
    at_least = "" if all(one.complete for one in held) else "At least "
    return (
        f" {at_least}{events} events, {format_money(held_money(held))}, are held: {own} of its own, "
        f"{events - own} that merely stand behind it."
    )


def held_money(held: Iterable[BlockedEvents]) -> dict[str, int]:
    return total_money(pair for one in held for pair in one.money.items())


def seconds_since(cut: Cut, since_utc: datetime) -> int:
    """Whole seconds up to the cut; 0 for what began after it."""
    return max(0, int((cut.now_utc - since_utc).total_seconds()))


def describe_holder(holder: OpenTransaction | None, cluster: ClusterState) -> str:
    """Say who holds the LSO; None has ended since the cut was made, or the broker names nobody."""
    if not cluster.transactions_are_told:
        return "a producer transaction that this broker does not name (KIP-664, Kafka 3.0)"
    if holder is None:
        return "a producer transaction that has ended meanwhile"
    name = holder.transactional_id or "unknown to every coordinator"
    since = moment_text(holder.started_ms)
    limit = f", time-out {holder.timeout_ms // 1000} s" if holder.timeout_ms is not None else ""
    return f"the open transaction of {name} (producer {holder.producer_id}{f', since {since}' if since else ''}{limit})"


def moment_text(milliseconds: int | None) -> str | None:
    return None if milliseconds is None or milliseconds < 0 else format_time(from_ms(milliseconds))


def from_ms(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def held_by_ledger_horizon(contract: Contract, cut: Cut, looked_up: LookedUp) -> Iterator[DoubtFound]:
    """The horizon stands below the mark: a transaction is open since then, or the overlap reaches there."""
    ledger = cut.ledger_slice
    if not ledger.held:
        return
    holder = looked_up.horizon_holder
    who, positions = describe_horizon_holder(holder), contract.ledger.positions
    yield DoubtFound(
        doubt=Doubt.HELD_BY_LEDGER_HORIZON,
        sentence=f"ledger: {ledger.mark - ledger.position_end} {positions} could not be read: {who} holds the horizon "
        f"at {ledger.position_end}, the mark is {ledger.mark}.",
        details={
            "held_transaction_ids": ledger.mark - ledger.position_end,
            "horizon": ledger.position_end,
            "mark": ledger.mark,
            "holder": holder.holder if holder else "",
            "since_utc": _since_text(holder),
        },
    )


def describe_horizon_holder(holder: HorizonHolder | None) -> str:
    """Say who holds the ledger's horizon; None has ended since the cut was made."""
    if holder is None:
        return "a transaction that has ended meanwhile"
    since = _since_text(holder)
    return f"{holder.holder}{f', open since {since}' if since else ''}"


def _since_text(holder: HorizonHolder | None) -> str | None:
    return f"{holder.since:%Y-%m-%d %H:%M:%S} UTC" if holder and holder.since else None


def partner_not_settled(
    contract: Contract, unmatched: UnmatchedItems, incomplete: tuple[LegsCase, ...], deadlines: Deadlines
) -> Iterator[DoubtFound]:
    """Copies past their deadline whose other side was held back before it, or not read whole: not judged."""
    residues = [
        residue
        for side in (ItemSide.TOPIC, ItemSide.LEDGER)
        for fate in (
            MatchStatus.UNSETTLED,
            MatchStatus.PARTNER_EXPIRED,
            MatchStatus.PARTNER_UNREAD,
            MatchStatus.PAIRED_BEFORE,
        )
        for residue in unmatched.of(fate, side)
    ]
    unsettled, reasons = [one.copy for one in residues], Counter(one.reason.stored for one in residues)
    legs = [
        case
        for case in incomplete
        if absent_legs(case, contract.legs)
        and judge_legs(case, deadlines) in (MatchStatus.UNSETTLED, MatchStatus.PARTNER_EXPIRED)
    ]
    if count := len(unsettled) + len(legs):
        are, their = ("is", "its") if count == 1 else ("are", "their")
        yield DoubtFound(
            doubt=Doubt.PARTNER_NOT_SETTLED,
            sentence=f"{counted(count, 'item')} {are} due, but {their} other side could not be read up to {their} "
            f"deadline.{_out_of_sight(unmatched, deadlines)}{_may_be_older(unmatched)}{_paired_before(unmatched)}"
            f"{_taken_back_and_gone(unmatched)}{_cut_away(unmatched)}{_legs_out_of_sight(legs, deadlines)}",
            details={
                "items": count,
                "reasons": dict(sorted(reasons.items())),
                "money": total_money((copy.currency, copy.amount_minor) for copy in unsettled),
            },
        )


def _may_be_older(unmatched: UnmatchedItems) -> str:
    """Why a row without event is neither missing nor a phantom: the guard, and the log's beginning."""
    rows = [
        one
        for one in unmatched.of(MatchStatus.PARTNER_EXPIRED, ItemSide.LEDGER)
        if one.reason == reason_of(ReasonCode.MAY_BE_OLDER)  # of a ledger's row: no input is written anew
    ]
    if not rows:
        return ""
    return (
        f" Of {counted(len(rows), 'row')} nobody can tell whether an UPDATE or a rewrite wrote it anew: rows below the "
        "slice have moved, and its event may have left the log after it was read. That stays so."
    )


def _paired_before(unmatched: UnmatchedItems) -> str:
    """Why a row of an earlier event is no mere new version of that one's row: no row below the slice has moved."""
    rows = unmatched.of(MatchStatus.PAIRED_BEFORE, ItemSide.LEDGER)
    if not rows:
        return ""
    return (
        f" Of {counted(len(rows), 'row')} an earlier cut has read the event, and no row has moved since: posted a "
        "second time, or in the place of one that was deleted or archived; or the event was unreadable. That stays so."
    )


def _taken_back_and_gone(unmatched: UnmatchedItems) -> str:
    """Why an event without row is neither missing nor a phantom: its row was there, and was taken back."""
    expired = unmatched.of(MatchStatus.PARTNER_EXPIRED, ItemSide.TOPIC)
    events = [one for one in expired if one.reason.code is ReasonCode.TAKEN_BACK_ROW_GONE]
    if not events:
        return ""
    return (
        f" Of {counted(len(events), 'event')} a row was posted: another one takes it back, and it was deleted or "
        "archived unread. Nobody can tell whether its money still counts. That stays so."
    )


def _cut_away(unmatched: UnmatchedItems) -> str:
    """Why a row that was paired is neither matched nor a second one: its event went while the run read."""
    unsettled = unmatched.of(MatchStatus.UNSETTLED, ItemSide.LEDGER)
    rows = [one for one in unsettled if one.reason.code is ReasonCode.PARTNER_CUT_AWAY]
    if not rows:
        return ""
    return (
        f" Of {counted(len(rows), 'row')} an election took the event while this run read it. The next run judges by "
        "what stands then."
    )


def _legs_out_of_sight(legs: Iterable[LegsCase], deadlines: Deadlines) -> str:
    """Why a business transaction that lacks a leg is not torn: offsets have gone that no run has read."""
    gone = [case for case in legs if judge_legs(case, deadlines) is MatchStatus.PARTNER_EXPIRED]
    if not gone:
        return ""
    return (
        f" Of {counted(len(gone), 'business transaction')} nobody can tell whether the absent leg was written: it may "
        "have stood among the offsets that left the log before any run read them. That stays so."
    )


def _out_of_sight(unmatched: UnmatchedItems, deadlines: Deadlines) -> str:
    """Why an output without input is no phantom: the input topic has forgotten its beginning."""
    alone = unmatched.of(MatchStatus.PARTNER_EXPIRED, ItemSide.TOPIC)
    if not (alone and deadlines.inputs_out_of_sight):
        return ""
    return (
        f" Of {counted(len(alone), 'output')} no input is known; it may have stood where neither the input's retained "
        "log nor the key index reaches."
    )
