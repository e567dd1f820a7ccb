"""The effect of a changed contract on the books begun under another one: on each open item, and on judged windows.

Decides field by field: kept, re-evaluated or refused. With a refused change no sample is taken, no cut made and
none judged: the old contract goes on, or a new one begins under a new name. Sees a connection's id, not where it is.

One file, since each field's rule and its reason stand in one table.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tallystick.contract.compare import CompareRule, rule_of
from tallystick.contract.compensation import CompensationRules
from tallystick.contract.contract import Contract
from tallystick.model.errors import TallystickError


class ContractChangeRefused(TallystickError):
    """The contract's books were begun under another meaning. One line per field: got, expected, why, what to do."""


class ChangeEffect(StrEnum):
    """The effect of a change. Stored verdicts stay in every case."""

    KEPT = "kept"
    """Nothing that was judged, or is to be, comes out otherwise."""
    RE_EVALUATED = "re-evaluated"
    """The next run judges by the new rule."""
    REFUSED = "refused"
    """No cut is made: a new contract must begin, under a new name."""


@dataclass(frozen=True, kw_only=True)
class ContractChange:
    """One field that differs. before, after: its values as JSON has them; None where there is none."""

    field: str
    before: Any
    after: Any
    effect: ChangeEffect
    why: str


Rule = Callable[[str, Any, Any], tuple[ContractChange, ...]]
"""From a field's name and its two values, which differ, to what that does."""


def contract_changes(before: Contract, after: Contract, *, posted_in: str | None = None) -> tuple[ContractChange, ...]:
    """Every field that differs, in the contract's own order. before: the contract of the newest cut.

    posted_in: the actions table of the newest cut whose contract named one; None: none did.
    """
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    if posted_in and before.actions_table is None and after.actions_table is not None:
        old = _with_actions_table(old, posted_in)
    values = ((field, rule, _value(old, field), _value(new, field)) for field, rule in RULES.items())
    return tuple(change for field, rule, was, now in values if was != now for change in rule(field, was, now))


def refuse_other_books(before: Contract | None, after: Contract, *, posted_in: str | None = None) -> None:
    """Hold a contract against the one that a cut was made with; None: there is no cut. posted_in: see above.

    Raises ContractChangeRefused.
    """
    changes = contract_changes(before, after, posted_in=posted_in) if before is not None else ()
    refused = [change for change in changes if change.effect is ChangeEffect.REFUSED]
    if refused:
        raise ContractChangeRefused(
            "\n".join(
                f"{after.name}: {one.field}: got {value_text(one.after)}; expected {value_text(one.before)}, as in "
                f"its stored cuts. {one.why} What to do: put the old value back, or begin a contract under a new name."
                for one in refused
            )
        )


def gravest(changes: Iterable[ContractChange]) -> ChangeEffect:
    """The gravest effect there is; kept where nothing differs."""
    return max((change.effect for change in changes), key=list(ChangeEffect).index, default=ChangeEffect.KEPT)


def value_text(value: Any) -> str:
    """A field's value as people read it."""
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _value(document: Mapping[str, Any], field: str) -> Any:
    """The value at a dotted name; None inside a part that is absent."""
    found: Any = document
    for name in field.split("."):
        found = found[name] if found is not None else None
    return found


def _with_actions_table(document: dict[str, Any], actions_table: str) -> dict[str, Any]:
    """As if the section had never gone: what it holds does not go with it."""
    post = {"connection": None, "columns": None, "rows": None, "actions_table": actions_table}
    rules = document["compensation"] or dict.fromkeys(CompensationRules.model_fields)
    return document | {"compensation": rules | {"post": post}}


def _always(effect: ChangeEffect, why: str) -> Rule:
    return lambda field, before, after: (
        ContractChange(field=field, before=before, after=after, effect=effect, why=why),
    )


def _kept(why: str) -> Rule:
    return _always(ChangeEffect.KEPT, why)


def _anew(why: str) -> Rule:
    return _always(ChangeEffect.RE_EVALUATED, why)


def _refused(why: str) -> Rule:
    return _always(ChangeEffect.REFUSED, why)


def _leg_changes(field: str, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ContractChange, ...]:
    """A leg may join. One that goes, or moves to another topic, leaves books that nobody reads on."""
    changes = []
    for leg in sorted(before.keys() | after.keys()):
        was, now = before.get(leg), after.get(leg)
        if was == now:
            continue
        if was is None:
            effect, why = ChangeEffect.RE_EVALUATED, _LEG_ADDED
        else:
            effect, why = ChangeEffect.REFUSED, _LEG_REMOVED if now is None else _LEG_MOVED
        changes.append(ContractChange(field=f"{field}.{leg}", before=was, after=now, effect=effect, why=why))
    return tuple(changes)


_LEG_ADDED = (
    "Its topic is read from its log start, not from a baseline: all that it still retains is judged with the next cut. "
    "A business transaction of which that cut or an open item knows a leg is torn without this one, past its deadline. "
    "So add it before its first event is written; where its topic has a past, begin a contract under a new name."
)
_LEG_REMOVED = (
    "Its partitions belong to the books, and every cut goes on where the one before it ended. Open items wait for this "
    "leg by its name, and nobody would read its topic any more."
)
_LEG_MOVED = (
    "The books of a leg go on at the offsets of its old topic; events there that wait for their partner would be "
    "called misrouted, and the new topic's past is not in the books."
)


def _compare_changes(field: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[ContractChange, ...]:
    """A column may join or go, and be compared by another rule, but neither stand elsewhere nor be another kind."""
    changes = []
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was != now:
            same = len({(rule.kind, rule.event or name, rule.column or name) for rule in _rules([was, now])}) < 2
            effect, why = (
                (ChangeEffect.RE_EVALUATED, _COMPARED) if same else (ChangeEffect.REFUSED, _COMPARED_OTHERWISE)
            )
            changes.append(ContractChange(field=f"{field}.{name}", before=was, after=now, effect=effect, why=why))
    return tuple(changes)


def _rules(stated: Iterable[Any]) -> Iterator[CompareRule]:
    """Yield the rules of these, without those that compare nothing."""
    for one in stated:
        rule = rule_of(CompareRule.model_validate(one) if isinstance(one, dict) else one) if one else None
        if rule is not None:
            yield rule


_COMPARED = (
    "Pairs that come together from the next run on are compared so. Of an open item that was read before, what it does "
    "not hold is not compared."
)
_COMPARED_OTHERWISE = (
    "Open items hold the column as it was read under the old rule: compared with partners read under the new one, "
    "equal pairs would be mismatches."
)


def _currency_case_changes(field: str, before: str, after: str) -> tuple[ContractChange, ...]:
    """Looser is possible at any time. Stricter is not: how an open item wrote its currency was not kept."""
    rule = _anew(_CASE_IGNORED) if after == "ignored" else _refused(_CASE_FORGOTTEN)
    return rule(field, before, after)


def _overlap_changes(field: str, before: int | None, after: int | None) -> tuple[ContractChange, ...]:
    """Smaller is possible at any time. Larger would move the horizon back behind what cuts have read."""
    rule = _anew(_OVERLAP_SMALLER) if (after or 0) < (before or 0) else _refused(_OVERLAP_LARGER)
    return rule(field, before, after)


def _quiet_changes(field: str, before: int | None, after: int | None) -> tuple[ContractChange, ...]:
    """As for an overlap: the horizon must not fall back."""
    rule = _anew(_QUIET_SHORTER) if (after or 0) < (before or 0) else _refused(_QUIET_LONGER)
    return rule(field, before, after)


def _reversal_changes(field: str, before: str | None, after: str | None) -> tuple[ContractChange, ...]:
    """column is how rows say that they take one back; all others leave it to the sign, which no event is asked for."""
    rule = _anew(_ROWS_KEEP_SIGN) if "column" in (before, after) else _kept(_REPAIRS_ONLY)
    return rule(field, before, after)


def _actions_table_changes(field: str, before: str | None, after: str | None) -> tuple[ContractChange, ...]:
    """It may go with its section, and come again. Another one does not know what was posted."""
    rule = _kept(_REPAIRS_ONLY) if None in (before, after) else _refused(_POSTED_THERE)
    return rule(field, before, after)


_ROWS_KEEP_SIGN = "From the next cut on a row takes another one back only with the sign that this says."
_QUIET_SHORTER = "From the next cut on files are taken that much sooner; one that is written to after that is a doubt."
_QUIET_LONGER = (
    "Cuts have taken files up to a later moment than the new rule allows: the horizon would fall back behind it."
)
_OVERLAP_SMALLER = "From the next cut on rows are read that much sooner; one that comes later than that is in no cut."
_OVERLAP_LARGER = (
    "Cuts have read closer to the newest row than the new overlap allows: what came late there is in no cut, and the "
    "horizon would fall back behind it."
)
_POSTED_BY = (
    "Who posts from now on. A plan is carried out only where it leads to the database that ledger.connection leads to, "
    "so to the same actions_table."
)
_POSTED_THERE = "It holds which repairs were posted: with another table, one could be posted again."
_FORMAT = "From the next cut on values are read as this says; one of the other format is then unreadable, and told."
_SCHEMAS = (
    "From the next run on records are read by the schemas of the registry that is named, by which the same bytes may "
    "say something else. What was read keeps its verdict."
)
_CASE_IGNORED = (
    "Pairs that come together from the next run on may write their currency in either case, open items included; "
    "mismatches that were found before stay broken."
)
_CASE_FORGOTTEN = (
    "Open items know their currency in upper case only, so a partner that writes it as they did would be a "
    "currency_mismatch."
)
_WHAT_ITEMS_HOLD = (
    "Open items hold what was read under the old name, and earlier records are looked up by it: pairs that are equal "
    "would differ or be missed, and what was paired before would not be known again."
)
_MONEY_ITEMS_HOLD = (
    "Open items hold the money as it was read under the old rule: compared with partners read under the new one, equal "
    "pairs would be mismatches."
)
_ELSEWHERE = (
    "Where the books stand is a position on the old server, and means nothing on another one. For another address or "
    "account of the same server keep this id, and change the connection that it names."
)
_TOLD_ONLY = "Who is told, and how loudly, from the next run on; what was sent is not sent again."
_REPAIRS_ONLY = (
    "What may be repaired from now on, outstanding breaks included; an approved plan is held against it when it is "
    "carried out. No verdict asks for it."
)
_SHOWN_ONLY = "Shown to people; no verdict asks for it."
_SHOWN_KEYS = "What people see of the cuts made from now on; reports that were written stay as they are."
_ORIGINS = (
    "An unpaired event past its deadline is held against the new list from the next run on, open items included; what "
    "is broken already is not judged again."
)
_ORDER = (
    "Events are held against their order from the next cut on, each cut by itself; earlier ones are not read again."
)
_RECEIPTS = (
    "From the next run on the acknowledgement in these columns proves a missing event lost, open items included; what "
    "is broken already is not judged again."
)
_NOTICE_ONLY = "Changes a notice and the config check; no verdict asks for it."

RULES: Mapping[str, Rule] = {
    "contract": _refused("The name is what the books are kept under."),
    "version": _kept("A label for people: the books know a contract by its fingerprint."),
    "description": _kept(_SHOWN_ONLY),
    "owner": _kept(_SHOWN_ONLY),
    "direction": _refused(
        "Open items were judged by which side is written first: what is missing, what is a phantom, which copy is one "
        "too many, and which side was captured last."
    ),
    "schedule": _kept(
        "Windows end at other times; slices tile by offset and transaction id, so nothing is left out or read twice."
    ),
    "start_date": _kept(
        "The books begin at their baseline, whatever it says; what lies before that stays undecidable."
    ),
    "kafka.connection": _refused(_ELSEWHERE),
    "kafka.stray_topics": _anew(
        "Look-ups search the new list from the next run on, for open items too; a topic that is not there refuses the "
        "cut, and what is broken already is not judged again."
    ),
    "kafka.schema_registry": _anew(_SCHEMAS),
    "kafka.producers": _kept(_NOTICE_ONLY),
    "legs": _leg_changes,
    "compare": _compare_changes,
    "event.format": _anew(_FORMAT),
    "event.match_key": _refused(_WHAT_ITEMS_HOLD),
    "event.transaction_key": _refused(_WHAT_ITEMS_HOLD),
    "event.leg": _refused(_WHAT_ITEMS_HOLD),
    "event.amount_minor": _refused(_MONEY_ITEMS_HOLD),
    "event.currency": _refused(_MONEY_ITEMS_HOLD),
    "event.amount_unit": _refused(_MONEY_ITEMS_HOLD),
    "event.ordering_key": _anew(_ORDER),
    "event.sequence": _anew(_ORDER),
    "event.origin_header": _anew(_ORIGINS),
    "event.known_origins": _anew(_ORIGINS),
    "ledger.kind": _refused(_ELSEWHERE),
    "ledger.connection": _refused(_ELSEWHERE),
    "ledger.primary_connection": _anew(
        "From the next cut on rows come from a standby of this primary, or from the primary alone. Transaction ids are "
        "the same on both, so the books go on; what a standby has not replayed waits."
    ),
    "ledger.table": _refused(
        "The books hold rows of the old table: what earlier transactions wrote to another one was never read, and "
        "would count as read."
    ),
    "ledger.order_by": _refused(
        "It says where a row stands: by another column, rows that were read would count as never read, or come again."
    ),
    "ledger.overlap": _overlap_changes,
    "ledger.horizon": _refused(
        "It says how far cuts may read: under another rule rows that were left for later would count as read."
    ),
    "ledger.quiet_seconds": _quiet_changes,
    "ledger.topics": _refused(
        "Cuts have read the old topics and index only their keys: what another one held before would count as never "
        "written, and an input that is not read any more as lost."
    ),
    "ledger.event.format": _anew(_FORMAT),
    "ledger.event.match_key": _refused(_WHAT_ITEMS_HOLD),
    "ledger.event.transaction_key": _refused(_WHAT_ITEMS_HOLD),
    "ledger.event.leg": _refused(_WHAT_ITEMS_HOLD),
    "ledger.event.amount_minor": _refused(_MONEY_ITEMS_HOLD),
    "ledger.event.currency": _refused(_MONEY_ITEMS_HOLD),
    "ledger.index_windows": _anew(
        "Look-ups ask so many windows' key index from the next run on; an index that was deleted beyond a shorter "
        "horizon does not come back."
    ),
    "ledger.where": _refused(
        "It says which rows were read: older rows that only the new condition picks would count as read and paired, "
        "and their events as duplicates. Two conditions cannot be compared, so other words for one are refused too."
    ),
    "ledger.slice_by": _refused(
        "It says which transaction wrote a row: by the other column, rows that were read would count as never read, or "
        "come again."
    ),
    "ledger.earlier_rows": _anew(
        "Rows that are deleted from the next run on are told or not, as it says then; what was counted so far stands."
    ),
    "ledger.compared_windows": _anew(
        "From the next run on so many windows are read again; what was changed in them before that no run can tell."
    ),
    "ledger.columns.row_id": _refused(
        "Open items know their row by it: the same row would look like another one, and its event like a duplicate."
    ),
    "ledger.columns.match_key": _refused(_WHAT_ITEMS_HOLD),
    "ledger.columns.transaction_key": _refused(_WHAT_ITEMS_HOLD),
    "ledger.columns.leg": _refused(_WHAT_ITEMS_HOLD),
    "ledger.columns.amount_minor": _refused(_MONEY_ITEMS_HOLD),
    "ledger.columns.currency": _refused(_MONEY_ITEMS_HOLD),
    "ledger.columns.occurred_at": _kept("Copied into a republished event only; no verdict asks for it."),
    "ledger.columns.written_at": _anew(
        "From the next cut on the lag is measured by it; the grace follows what clean runs measured, under its cap."
    ),
    "ledger.columns.receipt_partition": _anew(_RECEIPTS),
    "ledger.columns.receipt_offset": _anew(_RECEIPTS),
    "ledger.columns.reverses": _anew(
        "From the next cut on a row is taken back by one that names it there; earlier cuts do not change."
    ),
    "ledger.columns.action_id": _anew("From the next cut on rows of ours are known by it; earlier cuts do not change."),
    "ledger.amount_unit": _refused(_MONEY_ITEMS_HOLD),
    "ledger.consumer_isolation": _kept(_NOTICE_ONLY),
    "currency_case": _currency_case_changes,
    "match.many_to_one": _refused(
        "What was closed is no open item any more: under another rule what comes late to a group or to a pair would be "
        "judged against nothing."
    ),
    "timestamp_tolerance_seconds": _kept("Changes a notice, from the next cut on; no verdict asks for it."),
    "partner_grace_seconds": _anew(
        "What is first seen from the next cut on gets the new deadline; an item that is open keeps the one it was "
        "given. A repair is awaited by the new one at once."
    ),
    "partner_grace_cap_seconds": _anew(
        "What is first seen from the next cut on is due under the new cap, where a longer lag was measured; an item "
        "that is open keeps the deadline it was given."
    ),
    "settle_timeout_seconds": _anew(
        "From the next run on this is how long a run waits before it says what it could not see. Deadlines stay."
    ),
    "verdict_within_seconds": _kept(
        "Runs that begin from now on are told of as overdue sooner or later; no verdict asks for it."
    ),
    "empty": _anew("The next window without any event or row is judged by it; earlier ones keep their verdict."),
    "shown_keys": _kept(_SHOWN_KEYS),
    "expectations": _kept(
        "Windows are held against the new module from the next report on; what was evaluated stays. No verdict asks "
        "for it."
    ),
    "alert.sinks": _kept(
        "Later alerts go to the new list; what is still owed to a sink that goes is not sent, and nobody resolves what "
        "stands open there: end it by hand. No verdict asks for it."
    ),
    "alert.critical_at_minor": _kept(_TOLD_ONLY),
    "alert.severity_by_class": _kept(_TOLD_ONLY),
    "alert.escalate_after_seconds": _kept(_TOLD_ONLY),
    "alert.backfilled": _kept(_TOLD_ONLY),
    "alert.match_keys": _kept(_TOLD_ONLY),
    "compensation.classes": _kept(_REPAIRS_ONLY),
    "compensation.reversal": _reversal_changes,
    "compensation.post.connection": _kept(_POSTED_BY),
    "compensation.post.actions_table": _actions_table_changes,
    "compensation.post.columns": _kept(_REPAIRS_ONLY),
    "compensation.post.rows": _kept(_REPAIRS_ONLY),
    "compensation.trigger.connection": _kept(_REPAIRS_ONLY),
    "compensation.trigger.dags": _kept(_REPAIRS_ONLY),
    "compensation.abort_hanging_transactions": _kept(_REPAIRS_ONLY),
    "compensation.max_items": _kept(_REPAIRS_ONLY),
    "compensation.max_amount_minor": _kept(_REPAIRS_ONLY),
    "compensation.max_items_per_day": _kept(_REPAIRS_ONLY),
    "compensation.max_amount_minor_per_day": _kept(_REPAIRS_ONLY),
    "compensation.acting_minutes": _kept(_REPAIRS_ONLY),
    "compensation.four_eyes_above_minor": _kept(_REPAIRS_ONLY),
    "compensation.approvers": _kept(_REPAIRS_ONLY),
    "compensation.approval_timeout_seconds": _kept(_REPAIRS_ONLY),
    "compensation.approval_valid_seconds": _kept(_REPAIRS_ONLY),
}
"""Every field of a contract, in its order, with what its change does. A field that is not here fails a test."""
