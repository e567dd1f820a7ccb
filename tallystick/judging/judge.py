"""The way from evidence to a result: run the registry, merge the verdict, update every open item. Pure.

One file, since what becomes of an item is read off the same outcomes that the verdict and its figures are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from tallystick.anomalies.breaks.make_break import packed_with_origin
from tallystick.anomalies.breaks.torn_transaction import absent_legs, judge_legs, posted_strays
from tallystick.anomalies.registry import RULES, AnomalyRule
from tallystick.judging.run_digest import digest_of_run
from tallystick.matching.evidence import Evidence, LegsCase
from tallystick.matching.match_case import Entry, MatchResult, MatchStatus, UnmatchedItem
from tallystick.matching.pairing import is_judged, topic_of
from tallystick.model.direction import Direction
from tallystick.model.finding_names import SURPLUS_CLASSES, BreakClass
from tallystick.model.findings import Break, DoubtFound, NoticeFound, total_money
from tallystick.model.item_reason import Reason, ReasonCode, break_reason, reason_of
from tallystick.model.open_item import ItemSide, ItemState, OpenItem, legs_item_id
from tallystick.model.partner_lag import RunLag, TopicLag, add_lags, lags_of_pairs
from tallystick.model.run_result import RunFigures, RunResult
from tallystick.model.verdict import Verdict, merge_verdicts
from tallystick.text.side_terms import for_direction


def judge(
    evidence: Evidence,
    *,
    matched_rows: int,
    matched_money: Mapping[str, int],
    content_digests: Mapping[str, Any],
    look_ups: Mapping[str, Any],
    carried: Sequence[OpenItem],
    classes: Sequence[AnomalyRule] = RULES,
) -> RunResult:
    """Judge one cut.

    matched_*: the rows that the scan matched by itself: each with one equal event, or as what adds up.
    carried: open items as of the cut.
    """
    placed, others = _findings(evidence, classes)
    breaks = tuple(one.item_break for one in placed)
    doubts = tuple(finding for finding in others if isinstance(finding, DoubtFound))
    notices = tuple(finding for finding in others if isinstance(finding, NoticeFound))
    items = tuple(sorted(_item_changes(evidence, placed), key=lambda item: item.item_id))
    rows = [row for outcome in evidence.outcomes for row in _agreeing_rows(outcome)]
    open_after = _open_after(carried, items)
    figures = RunFigures(
        topic_rows=evidence.totals.topic_rows,
        ledger_rows=evidence.totals.ledger_rows,
        matched_rows=matched_rows + len(rows),
        matched_money=total_money([*matched_money.items(), *((row.currency, row.amount_minor) for row in rows)]),
        in_flight_items=len(open_after),
        in_flight_money=total_money((item.currency, item.amount_minor) for item in open_after),
        carried_items=sum(item.state is ItemState.OPEN for item in carried),
        undecidable_items=sum(item.state is ItemState.UNDECIDABLE for item in items),
        unreadable_records=evidence.oddities.unreadable_count,
        ledger_older_rows=evidence.looked_up.older_rows,
        census=evidence.census,
    )
    verdict = merge_verdicts([Verdict.MATCHED, *_verdicts(breaks, doubts)]) if classes else Verdict.INCONCLUSIVE
    return RunResult(
        contract=evidence.contract.name,
        cut_n=evidence.cut.n,
        verdict=verdict,
        doubts=doubts,
        breaks=breaks,
        items=items,
        figures=figures,
        digest=digest_of_run(
            evidence,
            verdict=verdict,
            breaks=breaks,
            doubts=doubts,
            items=items,
            figures=figures,
            content_digests=content_digests,
        ),
        notices=notices,
        look_ups=look_ups,
        unseen={name: places for rule in classes if (places := rule.places_unseen(evidence)) for name in rule.names},
        lag=RunLag(topics=add_lags((*evidence.totals.lags, *_lags_of(evidence))), grace=evidence.grace),
    )


class _Placed(NamedTuple):
    """A break, and what its evidence says of the items that answer for it: `at`, and whether it is about legs."""

    item_break: Break
    at: str | None
    is_of_legs: bool


def _findings(
    evidence: Evidence, classes: Iterable[AnomalyRule]
) -> tuple[list[_Placed], list[DoubtFound | NoticeFound]]:
    """Return what the rules find in the contract's words: breaks in their order, and the rest as it came.

    Each break is packed before the next is made.
    """
    direction, placed, others = evidence.contract.direction, [], []
    for found in (found for rule in classes for found in rule.judge(evidence)):
        if not isinstance(found, Break):
            others.append(replace(found, sentence=for_direction(direction, found.sentence)))
            continue
        story = for_direction(direction, found.story)
        item_break = packed_with_origin(found, evidence.record_origins, story=story)
        placed.append(_Placed(item_break, found.evidence.get("at"), "seen_legs" in found.evidence))
    placed.sort(key=lambda one: _break_order(one.item_break))
    return placed, others


def _agreeing_rows(outcome: MatchResult) -> Iterator[Entry]:
    """Yield each ledger row that agrees, once: one may be the whole of several events."""
    yield from (ledger for _, ledger in outcome.matched)
    for group in outcome.added_up:
        yield from (copy for copy in group.copies if copy.side is ItemSide.LEDGER)


def _lags_of(evidence: Evidence) -> tuple[TopicLag, ...]:
    """Measure the lags of pairs that the scan did not make itself: those of several cuts, or beside other copies."""
    sign = 1 if evidence.contract.direction is Direction.TOPIC_TO_LEDGER else -1
    return lags_of_pairs(
        (topic_of(topic.item_id), sign * (ledger.written_ms - topic.written_ms))
        for outcome in evidence.outcomes
        for topic, ledger in outcome.matched
        if not (_is_new(topic) and _is_new(ledger) and sum(map(_is_new, outcome.case.copies)) == 2)
        if topic.written_ms is not None and ledger.written_ms is not None
    )


def _is_new(copy: Entry) -> bool:
    return copy.carried is None


def _verdicts(breaks: Iterable[Break], doubts: Iterable[DoubtFound]) -> Iterator[Verdict]:
    yield from (Verdict.BROKEN for _ in breaks)
    yield from (Verdict.INCONCLUSIVE for _ in doubts)


def _break_order(item_break: Break) -> tuple[str, str, int]:
    return (item_break.break_class, item_break.match_key, item_break.break_id.int)


def _open_after(carried: Iterable[OpenItem], changes: Iterable[OpenItem]) -> list[OpenItem]:
    state = {item.item_id: item for item in (*carried, *changes)}
    return [item for item in state.values() if item.state is ItemState.OPEN]


def _item_changes(evidence: Evidence, placed: Sequence[_Placed]) -> Iterator[OpenItem]:
    """Return a row for each item that is new or whose state changed in this cut. Items are append-only."""
    break_at = {one.at: one.item_break for one in placed if one.at is not None}
    of_outcomes = [item for outcome in evidence.outcomes for item in _outcome_items(evidence, outcome, break_at)]
    yield from of_outcomes
    told = {item.item_id for item in of_outcomes}
    for action in evidence.cluster.actions:
        if action.item.item_id in break_at and action.item.item_id not in told:
            yield _not_repaired(action.item, break_at[action.item.item_id])
    of_legs = {one.item_break.transaction_key: one.item_break for one in placed if one.is_of_legs}
    for case in evidence.incomplete:
        yield from _legs_item(evidence, case, of_legs.get(case.transaction_key), break_at)


def _outcome_items(evidence: Evidence, outcome: MatchResult, break_at: Mapping[str, Break]) -> Iterator[OpenItem]:
    for topic, ledger in outcome.matched:
        yield from _cleared(topic, ledger)
        yield from _cleared(ledger, topic)
    for group in outcome.added_up:
        yield from _cleared(group.whole, group.parts[0])
        for part in group.parts:
            yield from _cleared(part, group.whole)
    for copy, reversal in outcome.netted:
        yield from _taken_back(copy, reversal)
    for residue in outcome.residues:
        item_break = break_at.get(residue.copy.item_id)
        yield from _residue_item(evidence, residue, item_break)
        for copy in _sharing_its_fate(residue):
            yield from _residue_item(evidence, replace(residue, copy=copy), item_break)
        if residue.partner is not None:
            yield from _cleared(residue.partner, residue.copy)
    yield from _judged_before(outcome)


def _sharing_its_fate(residue: UnmatchedItem) -> Sequence[Entry]:
    """Return of what does not add up the other copies that no run has judged."""
    if residue.group is None:
        return ()
    return [copy for copy in residue.group.copies if copy.item_id != residue.copy.item_id and not is_judged(copy)]


def _judged_before(outcome: MatchResult) -> Iterator[OpenItem]:
    """Yield broken and written-off rows that were written anew: with their judgement and their present content."""
    touched = {copy.item_id for pair in (*outcome.matched, *outcome.netted) for copy in pair}
    touched |= {copy.item_id for item in outcome.residues for copy in (item.copy, item.partner) if copy is not None}
    if outcome.case.parts is not None:
        touched |= {copy.item_id for item in outcome.residues for copy in _sharing_its_fate(item)}
        touched |= {copy.item_id for group in outcome.added_up for copy in group.copies}
    for copy in outcome.case.copies:
        item = _item_as_it_stands(copy)
        if item is not None and item != copy.carried and copy.item_id not in touched:
            yield item


def _item_as_it_stands(copy: Entry) -> OpenItem | None:
    """Return a carried copy's item; with its row's present content, where that was written anew."""
    if copy.carried is None or not copy.is_new_version:
        return copy.carried
    return replace(
        copy.carried,
        match_key=copy.match_key,
        transaction_key=copy.transaction_key,
        leg=copy.leg,
        amount_minor=copy.amount_minor,
        currency=copy.currency,
        written_ms=copy.written_ms,
        compared_text=copy.compared_text,
    )


def _cleared(copy: Entry, partner: Entry) -> Iterator[OpenItem]:
    """Clear a carried copy that found its partner. A duplicate keeps its state: a follower repairs nothing."""
    item = _item_as_it_stands(copy)
    if item is None:
        return
    judged = item.state in (ItemState.BROKEN, ItemState.WRITTEN_OFF)
    stays = judged and item.found_as in SURPLUS_CLASSES
    yield _change(
        item,
        state=item.state if stays else ItemState.CLEARED,
        reason=item.reason if stays else reason_of(ReasonCode.PARTNER_CAME),
        pairable=False,
        cleared_by=partner.item_id,
    )


def _taken_back(copy: Entry, reversal: Entry) -> Iterator[OpenItem]:
    """Clear a surplus copy that a reversal of ours has taken back."""
    item = _item_as_it_stands(copy)
    if item is not None:
        yield _change(
            item,
            state=ItemState.CLEARED,
            reason=reason_of(ReasonCode.TAKEN_BACK),
            pairable=False,
            cleared_by=f"action:{reversal.action_id}",
        )


def _not_repaired(item: OpenItem, item_break: Break) -> OpenItem:
    """Let a broken item whose repair was without effect answer for that break; it is not planned again."""
    return _change(
        item,
        state=ItemState.BROKEN,
        reason=break_reason(item_break.break_class),
        pairable=item.pairable,
        found=item_break,
    )


def _residue_item(evidence: Evidence, residue: UnmatchedItem, item_break: Break | None) -> Iterator[OpenItem]:
    copy, state, item = residue.copy, _STATE_OF[residue.fate], _item_as_it_stands(residue.copy)
    if item is not None and item == copy.carried and (item.state, item.reason) == (state, residue.reason):
        return
    make = partial(_change, item) if item else partial(_new_item, evidence, copy)
    yield make(
        state=state,
        reason=break_reason(item_break.break_class) if item_break else residue.reason,
        pairable=_is_pairable(evidence, residue),
        found=item_break,
        cleared_by=residue.partner.item_id if residue.partner else "",
    )


def _is_pairable(evidence: Evidence, residue: UnmatchedItem) -> bool:
    """Return whether a later arrival may be this copy's partner: not where one is known, nor for a surplus copy."""
    if residue.partner is not None or residue.fate in (
        MatchStatus.UNDECIDABLE,
        MatchStatus.PAIRED_BEFORE,
        MatchStatus.WITHOUT_KEY,
    ):
        return False
    return residue.fate is not MatchStatus.EXTRA or residue.copy.side is not _follower(evidence)


_STATE_OF = {
    MatchStatus.FOLLOWER_ABSENT: ItemState.BROKEN,
    MatchStatus.ORIGIN_ABSENT: ItemState.BROKEN,
    MatchStatus.EXTRA: ItemState.BROKEN,
    MatchStatus.UNEQUAL: ItemState.BROKEN,
    MatchStatus.SUM_DIFFERS: ItemState.BROKEN,
    MatchStatus.MISROUTED: ItemState.BROKEN,
    MatchStatus.ORIGIN_OPEN: ItemState.BROKEN,
    MatchStatus.WITHOUT_KEY: ItemState.BROKEN,
    MatchStatus.WAITING: ItemState.OPEN,
    MatchStatus.UNSETTLED: ItemState.OPEN,
    MatchStatus.UNDECIDABLE: ItemState.UNDECIDABLE,
    MatchStatus.PAIRED_BEFORE: ItemState.UNDECIDABLE,
    MatchStatus.PARTNER_EXPIRED: ItemState.UNDECIDABLE,
    MatchStatus.PARTNER_UNREAD: ItemState.UNDECIDABLE,
}


def _follower(evidence: Evidence) -> ItemSide:
    from_topic = evidence.contract.direction == "topic_to_ledger"
    return ItemSide.LEDGER if from_topic else ItemSide.TOPIC


def _new_item(
    evidence: Evidence,
    copy: Entry,
    *,
    state: ItemState,
    reason: Reason,
    pairable: bool,
    found: Break | None,
    cleared_by: str,
) -> OpenItem:
    return OpenItem(
        item_id=copy.item_id,
        side=copy.side,
        match_key=copy.match_key,
        transaction_key=copy.transaction_key,
        leg=copy.leg,
        amount_minor=copy.amount_minor,
        currency=copy.currency,
        first_seen_cut=evidence.cut.n,
        first_seen_utc=evidence.cut.marked_at_utc,
        due_utc=evidence.deadlines.new_copies_due_utc,
        state=state,
        reason=reason,
        pairable=pairable,
        break_id=found.break_id if found else None,
        found_as=found.break_class if found else None,
        cleared_by=cleared_by,
        written_ms=copy.written_ms,
        compared_text=copy.compared_text,
    )


def _change(
    item: OpenItem,
    *,
    state: ItemState,
    reason: Reason,
    pairable: bool,
    found: Break | None = None,
    cleared_by: str = "",
) -> OpenItem:
    return replace(
        item,
        state=state,
        reason=reason,
        pairable=pairable,
        break_id=found.break_id if found else item.break_id,
        found_as=found.break_class if found else item.found_as,
        cleared_by=cleared_by,
    )


def _legs_item(
    evidence: Evidence, case: LegsCase, item_break: Break | None, break_at: Mapping[str, Break]
) -> Iterator[OpenItem]:
    """Return one item per business transaction. Its leg joins the contract's legs seen so far by +, and keeps no other.

    No leg's name has a +.
    """
    absent = absent_legs(case, evidence.contract.legs)
    posted = posted_strays(evidence.contract, evidence.unmatched, case)
    answers_for = (
        (item_break.break_id, item_break.break_class) if item_break else _break_of_rows(posted, break_at)
    ) or ((case.carried.break_id, case.carried.found_as) if case.carried else (None, None))
    if not absent:
        state, reason = ItemState.CLEARED, reason_of(ReasonCode.LEGS_CAME)
    elif item_break is not None:
        state, reason = ItemState.BROKEN, break_reason(item_break.break_class)
    elif posted:
        state = ItemState.OPEN if _break_of_rows(posted, break_at) is None else ItemState.BROKEN
        reason = reason_of(ReasonCode.LEGS_STRAYED, about=", ".join(absent))
    else:
        state = _STATE_OF[judge_legs(case, evidence.deadlines)]
        awaited = ReasonCode.LEGS_OF_BEFORE_AWAITED if case.is_of_before else ReasonCode.LEGS_AWAITED
        reason = reason_of(awaited, about=", ".join(absent))
    if case.carried is None and state is ItemState.CLEARED:
        return
    if case.carried is not None:
        is_known = case.carried.reason.code is reason.code or reason.code is not ReasonCode.LEGS_OF_BEFORE_AWAITED
        if (case.carried.state is state and is_known) or (case.carried.state is not ItemState.OPEN and absent):
            return
    amount, currency, _ = next(iter(case.seen.values()))
    yield OpenItem(
        item_id=legs_item_id(case.transaction_key),
        side=ItemSide.LEGS,
        match_key=case.transaction_key,
        transaction_key=case.transaction_key,
        leg="+".join(sorted(case.seen.keys() & evidence.contract.legs.keys())),
        amount_minor=amount,
        currency=currency,
        first_seen_cut=case.carried.first_seen_cut if case.carried else evidence.cut.n,
        first_seen_utc=case.carried.first_seen_utc if case.carried else evidence.cut.marked_at_utc,
        due_utc=case.carried.due_utc if case.carried else evidence.deadlines.new_copies_due_utc,
        state=state,
        reason=reason,
        pairable=state in (ItemState.OPEN, ItemState.BROKEN),
        break_id=answers_for[0],
        found_as=answers_for[1],
        cleared_by="" if absent else ",".join(item_id for _, _, item_id in case.seen.values()),
    )


def _break_of_rows(
    rows: Iterable[Entry], break_at: Mapping[str, Break]
) -> tuple[UUID | None, BreakClass | None] | None:
    """Return the break, of this or an earlier cut, that a row of a strayed leg has, with its class."""
    for row in rows:
        if row.item_id in break_at:
            return break_at[row.item_id].break_id, break_at[row.item_id].break_class
        if row.carried is not None and row.carried.break_id is not None:
            return row.carried.break_id, row.carried.found_as
    return None
