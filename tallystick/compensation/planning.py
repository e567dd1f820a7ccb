"""The choice of the breaks that a plan repairs and leaves out, with the reasons. Pure."""

from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

from tallystick.compensation.abort_plan import AbortItem, abort_items, why_not_abort
from tallystick.compensation.caps import CapBudget, not_opted_in
from tallystick.compensation.plan import (
    Candidate,
    CurrentRow,
    DailyUsage,
    ExcludedBreak,
    OffsetsUnread,
    Plan,
    PlanContext,
    PlanItem,
    RepairKind,
    SourceRow,
    action_id_of,
    rules_of,
    source_of_break,
)
from tallystick.contract.compensation import (
    ABOUT_EVENTS,
    COUNTERPOSTABLE,
    MISSING_EVENTS,
    POSTABLE,
    REVERSIBLE,
    CompensationRules,
)
from tallystick.contract.contract import Contract
from tallystick.matching.row_identity import row_item_id
from tallystick.matching.scan_result import ledger_item_id
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound
from tallystick.model.stored_run import StoredRun

BLOCKING_DOUBTS = (
    Doubt.BASELINE,
    Doubt.CUT_CLOSED,
    Doubt.UNEXPLAINED_GAP,
    Doubt.READERS_DISAGREE,
    Doubt.LOG_EXPIRED,
    Doubt.LOG_COMPACTED,
    Doubt.LOG_REWRITTEN,
    Doubt.LOG_TRUNCATED,
    Doubt.TOPIC_RECREATED,
    Doubt.TORN_CUT,
    Doubt.LEDGER_REWRITTEN,
    Doubt.LEDGER_FAILED_OVER,
    Doubt.LEDGER_IDS_REUSED,
)
"""Doubts under which an absence is not proven well enough to act on it."""


def make_plan(
    contract: Contract,
    run: StoredRun,
    candidates: Sequence[Candidate],
    *,
    newest_doubts: Sequence[DoubtFound] = (),
    around: PlanContext = PlanContext(),
    offsets_unread: OffsetsUnread = OffsetsUnread(),
    rows_unread_at: int = -1,
    taken: Collection[UUID] = (),
    spent: DailyUsage = DailyUsage(),
    dry_run: bool = True,
) -> Plan:
    """Take the candidates oldest first while the caps allow; what does not fit is named, and a smaller one may fit.

    newest_doubts: those of the newest run, where that is a later one. around: what hangs there goes before the breaks.
    rows_unread_at: the newest cut that left rows of the ledger unread; -1: none did. taken: action ids that a plan has
    acted on or is acting on. spent: what the day's caps have been used for. Raises CompensationOff.
    """
    rules = rules_of(contract)
    items: list[PlanItem] = []
    left_out: list[ExcludedBreak] = []
    room = CapBudget(rules, spent)
    unclean = _unclean("the run's", run.result.doubts) or _unclean("the newest run's", newest_doubts)
    aborts: list[AbortItem] = []
    for abort in abort_items(contract.name, around.planned, now_utc=run.now_utc):
        reason = (
            unclean
            or not_opted_in(rules)
            or ("another plan has it" if abort.action_id in taken else None)
            or why_not_abort(abort, topics=contract.topics, around=around.planned, newest=around.newest)
            or room.refusal(abort.place, abort.moved_minor)
        )
        if reason:
            left_out.append(ExcludedBreak(break_id=None, match_key=abort.place, reason=reason))
        else:
            aborts.append(abort)
            room.take(abort.place, abort.moved_minor)
    for candidate, place in _placed(sorted(candidates, key=_oldest_first)):
        found, source = candidate.item_break, _source_of(rules, candidate, place)
        action_id = action_id_of(contract.name, found.break_id)
        reason = (
            unclean
            or _not_ours(contract, rules, found)
            or ("another plan has it" if action_id in taken else None)
            or _may_stand_under_another_key(candidate)
            or _may_have_come(candidate, offsets_unread.at)
            or _row_may_have_come(candidate, rows_unread_at)
            or _correction_may_have_come(contract, rules, candidate, offsets_unread)
            or _was_unreadable(contract, candidate, offsets_unread)
            or _may_be_the_correction(contract, rules, candidate)
            or _row_fault(rules, candidate, place)
            or room.refusal(found.match_key, source.moved_minor)
        )
        if reason:
            left_out.append(ExcludedBreak(break_id=found.break_id, match_key=found.match_key, reason=reason))
        else:
            items.append(_item(contract, rules, found, place, source, action_id))
            room.take(found.match_key, source.moved_minor)
    return Plan(
        contract=contract.name,
        contract_fingerprint=contract.fingerprint,
        cut_n=run.cut.n,
        dry_run=dry_run,
        items=tuple(items),
        left_out=tuple(left_out),
        aborts=tuple(aborts),
    )


def _oldest_first(candidate: Candidate) -> tuple[int, str, str]:
    return candidate.outstanding.cut_n, candidate.item_break.match_key, str(candidate.item_break.break_id)


def _unclean(whose: str, found: Sequence[DoubtFound]) -> str | None:
    doubts = sorted(doubt.doubt for doubt in found if doubt.doubt in BLOCKING_DOUBTS)
    return f"{whose} evidence is not clean: {', '.join(doubts)}" if doubts else None


def _not_ours(contract: Contract, rules: CompensationRules, found: Break) -> str | None:
    if rules.dag_of(found.break_class):
        return None
    if found.break_class not in rules.classes:
        return f"class {found.break_class} is not compensated by the contract"
    if found.leg not in contract.legs:
        return "the contract names no topic for its leg"
    if rules.post is not None and found.leg not in rules.post.rows:
        return "the contract names no rows for its leg"
    if found.break_class in REVERSIBLE + POSTABLE and not _at(found).startswith(f"topic:{contract.legs[found.leg]}:"):
        return "the copy does not stand on the topic of its leg"
    return None


def _may_stand_under_another_key(candidate: Candidate) -> str | None:
    """Return whether what is missing may be what another break has found without a partner."""
    if candidate.alike is None or candidate.item_break.break_class not in MISSING_EVENTS + POSTABLE:
        return None
    return (
        f"a break {candidate.alike} is about the same transaction, and was not cleared: it may be this one under "
        "another key, without one, or in parts; look at both, and repair this one by hand or write it off"
    )


def _may_have_come(candidate: Candidate, unread_at: int) -> str | None:
    """Return whether a missing event may have come since, among the data that no run has read: on its own topic, or
    misrouted on another.
    """
    if candidate.item_break.break_class not in MISSING_EVENTS or unread_at <= candidate.outstanding.cut_n:
        return None
    return why_event_may_have_come(unread_at)


def why_event_may_have_come(unread_at: int) -> str:
    """Return the reason not to publish an event in that case."""
    return f"its event may have come since: {_left_unread(unread_at)}"


def _left_unread(cut_n: int) -> str:
    return f"offsets were lost before cut {cut_n} could read them, or closed unread with it"


def _row_may_have_come(candidate: Candidate, rows_unread_at: int) -> str | None:
    """Return whether a missing row may have been where no run has read it, and been archived since.

    The cut before the one that read the event counts too: it may have ended between the event and its row. While the
    event's partition is held, so do all since the last one that had read that as far as it was written.
    """
    if candidate.item_break.break_class not in POSTABLE or not candidate.may_have_partner_in(rows_unread_at):
        return None
    return why_row_may_have_come(rows_unread_at)


def why_row_may_have_come(rows_unread_at: int) -> str:
    """Return the reason not to post a row in that case."""
    return (
        f"its row may have come and been archived: nobody has read all rows up to cut {rows_unread_at}; look for it, "
        "then post it by hand, or write the break off"
    )


def _correction_may_have_come(
    contract: Contract, rules: CompensationRules, candidate: Candidate, offsets_unread: OffsetsUnread
) -> str | None:
    """Return whether another event of its key may have come among the data that no run has read of its topic.

    The cut before the one that read its own event counts too: on another partition it may have ended behind that. While
    its own is held, so do all since the last one that had read that as far as it was written.
    """
    found = candidate.item_break
    if rules.dag_of(found.break_class) or found.break_class not in REVERSIBLE + POSTABLE:
        return None
    unread_at = offsets_unread.of_topic(contract.legs[found.leg])
    return why_correction_may_have_come(unread_at) if candidate.may_have_partner_in(unread_at) else None


def why_correction_may_have_come(unread_at: int) -> str:
    """Return the reason neither to post an event nor to take a copy back in that case."""
    return (
        f"an event that amends, cancels or takes it back may have come: {_left_unread(unread_at)}; look at the "
        "payment, then repair it by hand, or write the break off"
    )


def _was_unreadable(contract: Contract, candidate: Candidate, offsets_unread: OffsetsUnread) -> str | None:
    """Return whether its event, or another one of its key, may have been a record that no run could read, and that the
    log does not show any more. Such a record may have come with its row or event, and its break is found all the same.
    """
    found = candidate.item_break
    if found.break_class not in ABOUT_EVENTS:
        return None
    unreadable_at = offsets_unread.unreadable_of(contract.legs.get(found.leg, ""))
    if not candidate.may_have_partner_in(unreadable_at):
        return None
    return (
        f"a record that cut {unreadable_at} could not read, or that a later leader's log had lost by then, may have "
        "been its event, or one that amends, cancels or takes it back; look at the payment, then repair it by hand, or "
        "write the break off"
    )


def _may_be_the_correction(contract: Contract, rules: CompensationRules, candidate: Candidate) -> str | None:
    """Return whether the copy that is one too many may be the right one: the wrong one alone would be left. Or whether
    what is missing was amended or cancelled by another event of its key, which may have left the log since.
    """
    found = candidate.item_break
    if rules.dag_of(found.break_class) or found.break_class not in REVERSIBLE + COUNTERPOSTABLE + POSTABLE:
        return None
    if candidate.differs_by is not None and found.break_class in POSTABLE:
        return (
            f"its key has a break {candidate.differs_by} too, of other money, or by which its copies differ: what is "
            "missing may have been amended or cancelled; look at both, and write off what is settled"
        )
    if candidate.differs_by is not None:
        return (
            f"its key has a break {candidate.differs_by} too, so that this copy may be the correction: look at both, "
            "and write off what is settled"
        )
    if found.evidence.get("money_differs"):
        return "the copy that it repeats says other money, so that this one may be the correction: look at both"
    original = str(found.evidence.get("original") or "")
    if original.startswith("topic:") and not original.startswith(f"topic:{contract.legs[found.leg]}:"):
        return "the copy that it repeats stands on another topic than its leg's, so that this one may be the right one"
    return None


def _at(found: Break) -> str:
    return str(found.evidence.get("at", ""))


def _placed(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, str]]:
    """Return each with the item id of the copy that it is about: of two equal rows ours, unless that was taken back or
    an older break is about it.
    """
    named: set[str] = set()
    for candidate in candidates:
        ours = str(candidate.item_break.evidence.get("ours", ""))
        named |= {ledger_item_id(row.takes_back) for row in candidate.rows if row.takes_back}
        yield candidate, _at(candidate.item_break) if not ours or ours in named else ours
        named.add(ours)


def _row_fault(rules: CompensationRules, candidate: Candidate, place: str) -> str | None:
    found, rows = candidate.item_break, candidate.rows
    if rules.dag_of(found.break_class):
        return None
    if found.break_class in POSTABLE:
        return f"the ledger has {len(rows)} rows of its key, expected none" if rows else None
    if found.break_class in COUNTERPOSTABLE:
        return _surplus_row_fault(found, rows, place)
    if len(rows) != 1:
        return f"the ledger has {len(rows)} rows of its key, expected 1"
    expected = found.match_key, found.transaction_key, found.leg, found.amount_minor, found.currency
    row = rows[0]
    if expected != (row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency):
        return "the ledger row has changed since the run"
    return None


_ID_NOT_ITS_OWN = "another row of its key has its row id, so no row can name it as the one that is taken back"


def _surplus_row_fault(found: Break, rows: Sequence[CurrentRow], place: str) -> str | None:
    row = next((current for current in rows if ledger_item_id(current.row_id) == place), None)
    if row is None and any(ledger_item_id(current.row_id) == row_item_id(place) for current in rows):
        return _ID_NOT_ITS_OWN
    if row is None:
        return "the row that is one too many is not in the ledger any more"
    expected = found.match_key, found.transaction_key, found.leg, found.amount_minor, found.currency
    if expected != (row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency):
        return "the ledger row has changed since the run"
    return why_not_counterpostable(row, rows)


def rows_in_force(rows: Sequence[CurrentRow]) -> tuple[CurrentRow, ...]:
    """Return the rows of one key that no row takes back, without those that take others back."""
    taken_back = {row.takes_back for row in rows if row.takes_back}
    return tuple(row for row in rows if not row.takes_back and row.row_id not in taken_back)


def why_not_counterpostable(row: CurrentRow, rows: Sequence[CurrentRow]) -> str | None:
    """Return the reason not to take a row back, by the contract's rows of its key; None: there is none."""
    if row.takes_back:
        return f"the row takes row {row.takes_back} back itself"
    if any(current is not row and current.row_id == row.row_id for current in rows):
        return _ID_NOT_ITS_OWN
    in_force = rows_in_force(rows)
    if row not in in_force:
        return "it was taken back already"
    if reason := why_taken_back_elsewhere(rows, rows):
        return reason
    if len(in_force) < 2:
        return "no other row of its key is in force"
    said = {(one.transaction_key, one.leg, one.amount_minor, one.currency) for one in in_force}
    if len(said) < 2:
        return None
    return "rows of its key differ in money, transaction or leg: one may be a correction or a refund"


def why_taken_back_elsewhere(rows: Sequence[CurrentRow], whole: Sequence[CurrentRow]) -> str | None:
    """Return the reason why the posting that one of these rows belongs to may have been taken back by another row of
    it, which another contract reads. whole: all rows of the key in the table, or those that are at hand.
    """
    ours = {row.row_id for row in rows}
    for row in whole:
        if row.takes_back and row.takes_back not in ours:
            return (
                f"row {row.row_id} of its key takes row {row.takes_back} back, which is none of the contract's: look "
                "whether that took back the same posting"
            )
    return None


def _source_of(rules: CompensationRules, candidate: Candidate, place: str) -> SourceRow:
    """Return the source of its event or rows: the ledger row, also a surplus one; without a row, the event. Of what is
    handed to a DAG it is the break: rows are at hand only where another break of its key asks for them.
    """
    if candidate.rows and not rules.dag_of(candidate.item_break.break_class):
        return next((row for row in candidate.rows if ledger_item_id(row.row_id) == place), candidate.rows[0]).source
    return source_of_break(candidate.item_break)


def _item(
    contract: Contract, rules: CompensationRules, found: Break, place: str, row: SourceRow, action_id: UUID
) -> PlanItem:
    kind = _kind_of(rules, found.break_class)
    return PlanItem(
        kind=kind,
        reverses=place if kind in (RepairKind.REVERSE, RepairKind.COUNTERPOST) else "",
        posts=place if kind is RepairKind.POST else "",
        triggers=rules.dag_of(found.break_class) or "",
        action_id=action_id,
        break_id=found.break_id,
        break_class=found.break_class,
        topic=contract.legs.get(row.leg, ""),
        **vars(row),
    )


def _kind_of(rules: CompensationRules, break_class: BreakClass) -> RepairKind:
    if rules.dag_of(break_class):
        return RepairKind.TRIGGER
    if break_class in REVERSIBLE:
        return RepairKind.REVERSE
    if break_class in COUNTERPOSTABLE:
        return RepairKind.COUNTERPOST
    return RepairKind.POST if break_class in POSTABLE else RepairKind.REPUBLISH
