"""Is what the product reports so? Each class is held against the truth at the moment of the run."""

from collections.abc import Callable
from datetime import datetime, timedelta

from tallystick.matching.scan_result import topic_place
from tallystick.model.findings import Break
from tests.simulator.oracle.facts import KeyFacts, facts_of, wrongs_of
from tests.simulator.world.config import Config
from tests.simulator.world.truth import EventFact, RowFact, Truth

Claim = Callable[[KeyFacts, Config], bool]


def _missing_in_ledger(facts: KeyFacts, config: Config) -> bool:
    rows = [row for row in facts.rows if row.by != "idle reversal"]  # which is no copy of the event
    return len(rows) < len(facts.events) + len(facts.lost)


def _missing_in_topic(facts: KeyFacts, config: Config) -> bool:
    return len(facts.events) < len(facts.rows) + len(facts.gone)


def _phantom_in_ledger(facts: KeyFacts, config: Config) -> bool:
    return len(facts.events) < len(facts.rows) + len(facts.gone)


def _phantom_in_topic(facts: KeyFacts, config: Config) -> bool:
    return len(facts.rows) < len(facts.events) + len(facts.lost)


def _duplicate_in_topic(facts: KeyFacts, config: Config) -> bool:
    return len(facts.events) + len(facts.lost) > 1


def _duplicate_in_ledger(facts: KeyFacts, config: Config) -> bool:
    return len(facts.rows) + len(facts.gone) > 1


def _open_read(facts: KeyFacts, config: Config) -> bool:
    rows = (*facts.rows, *facts.gone)
    early = any(e.visible_at and e.visible_at > r.visible_at for e in facts.events for r in rows)
    return bool(rows) and (bool(facts.open) or early or len(facts.events) < len(rows))


def _not_effective(facts: KeyFacts, config: Config) -> bool:
    return bool(wrongs_of(facts, config)) or any(row.action_id for row in facts.gone)


def _amount(facts: KeyFacts, config: Config) -> bool:
    return facts.amounts_differ


def _currency(facts: KeyFacts, config: Config) -> bool:
    return facts.currencies_differ or facts.amounts_differ


CLAIMS: dict[str, Claim] = {
    "missing_in_ledger": _missing_in_ledger,
    "missing_in_topic_never_produced": _missing_in_topic,
    "missing_in_topic_aborted_only": _missing_in_topic,
    "lost_acknowledged_write": _missing_in_topic,
    "phantom_in_ledger": _phantom_in_ledger,
    "aborted_read_in_ledger": _phantom_in_ledger,
    "open_read_in_ledger": _open_read,
    "phantom_in_topic": _phantom_in_topic,
    "amount_mismatch": _amount,
    "currency_mismatch": _currency,
    "duplicate_in_ledger": _duplicate_in_ledger,
    "duplicate_in_ledger_compensated": _duplicate_in_ledger,
    "compensated_twice": _duplicate_in_topic,
    "compensation_not_effective": _not_effective,
}


def why_not_so(found: Break, truth: Truth, config: Config, *, run_began: datetime, grace: timedelta) -> str | None:
    """None where the truth before the run's own questions, or after them, bears the break out."""
    name = str(found.break_class)
    if name.startswith("torn_"):
        return _why_not_torn(found, truth, config, run_began=run_began)
    if name == "bled_into_transaction":
        return _why_not_bled(found, truth)
    claim = _duplicate_in_topic if name.startswith("duplicate_in_topic") else CLAIMS.get(name)
    if claim is None:
        return None
    before = facts_of(truth, found.match_key, before=run_began)
    after = facts_of(truth, found.match_key)
    if not claim(before, config) and not claim(after, config):
        if any(one.gone_before_books for one in after.events):
            return None
        if name == "duplicate_in_topic_compensated" and any(
            one.taken_back_at for one in truth.events_of(found.match_key)
        ):
            return None
        if name.startswith("duplicate_in_topic") and _its_reversal_does_not_stand(found, truth):
            return None
        if name.startswith("duplicate_in_ledger") and _changed_beside_a_repair(found, truth):
            return None
        if name.startswith("duplicate_in_ledger") and _is_gone_beside_its_reversal(found, truth):
            return None
        if name.startswith("missing_in_topic") and _came_ahead_of_the_books(after, truth):
            return None
        if name == "compensation_not_effective" and _what_we_wrote_was_cut_away(found, truth):
            return None
        if name == "missing_in_ledger" and _is_gone_beside_an_idle_reversal(found, truth):
            return None
        if name == "missing_in_ledger" and _lost_its_marker_unfollowed(found, truth, run_began):
            return None
        return f"{found.break_class} of {found.match_key}: {told(after)}"
    if name.startswith("missing") and before.copies:
        first = min((at for one in before.copies if (at := _first_seen(one))), default=None)
        if first is not None and run_began - first < grace:
            return f"{found.break_class} of {found.match_key} within its grace: written {first:%H:%M:%S}"
    return None


def _first_seen(copy: EventFact | RowFact) -> datetime | None:
    """When a reader could first see it: a run has read it then, though its marker may have been cut away since."""
    return copy.first_visible_at if isinstance(copy, EventFact) else copy.visible_at


def _changed_beside_a_repair(found: Break, truth: Truth) -> bool:
    """Has a row of the key been taken back, and has another been changed? The one too many says other money then."""
    rows = truth.rows_of(found.match_key)
    return any(one.taken_back_at for one in rows) and any(one.changed for one in rows)


def _is_gone_beside_its_reversal(found: Break, truth: Truth) -> bool:
    """Has a row of the key been taken back, and gone since? Its reversal takes nothing back that stands."""
    return any(one.taken_back_at and not one.stands for one in truth.rows_of(found.match_key))


def _its_reversal_does_not_stand(found: Break, truth: Truth) -> bool:
    """Has an election taken what took it back, be it that its marker went, and it was aborted then?"""
    reversals = [one for one in truth.events_of(found.match_key) if one.reverses == found.evidence["at"]]
    return bool(reversals) and not any(one.visible for one in reversals)


def _what_we_wrote_was_cut_away(found: Break, truth: Truth) -> bool:
    """Has an election taken an event of the key that a repair of ours had written?"""
    events = truth.events_of(found.match_key)
    return any((one.negated or one.by == "repair") and one.once_visible and not one.visible for one in events)


def _is_gone_beside_an_idle_reversal(found: Break, truth: Truth) -> bool:
    """Has a row of the key gone while somebody's row names it as taken back? Where no cut had read it, nobody can say
    that it ever was there, and no plan posts beside the row that stands (planning.POSTABLE asks for none).
    """
    rows = truth.rows_of(found.match_key)
    return any(one.by == "idle reversal" and one.stands for one in rows) and any(not one.stands for one in rows)


def _came_ahead_of_the_books(facts: KeyFacts, truth: Truth) -> bool:
    """Is every event of the key older than the books, and a row came since? An event comes behind its row, so that one
    has had none.
    """
    began = truth.baseline_at
    events = [one.visible_at for one in facts.events if one.visible_at]
    return began is not None and max(events, default=began) <= began < max(
        (row.visible_at for row in (*facts.rows, *facts.gone)), default=began
    )


def _lost_its_marker_unfollowed(found: Break, truth: Truth, run_began: datetime) -> bool:
    """Had readers seen an event of the key, whose marker went since, and was no row there when the run began?"""
    seen = any(
        one.reopened and one.first_visible_at and one.first_visible_at < run_began
        for one in truth.events_of(found.match_key)
    )
    return seen and not any(row.visible_at < run_began for row in truth.rows_of(found.match_key))


def _why_not_torn(found: Break, truth: Truth, config: Config, *, run_began: datetime) -> str | None:
    if found.break_class == "torn_by_protocol" and not _has_an_aborted_leg(found, truth):
        return f"torn_by_protocol of {found.transaction_key}: no leg of it was aborted"
    events = [one for one in truth.events if one.money.transaction_key == found.transaction_key and one.visible_at]
    if len({one.money.leg for one in events if one.visible_at and one.visible_at < run_began}) < config.legs:
        return None
    legs = {one.money.leg for one in events}
    if len(legs) >= config.legs and all(one.visible for one in events):
        again = len(events) > len({one.money.match_key for one in events})
        stand = f"all legs stand{', one of them again' if again else ''}: {sorted(legs)}"
        return f"torn_transaction of {found.transaction_key}: {stand}{_older_than_the_books(found, truth, again=again)}"
    return None


def _older_than_the_books(found: Break, truth: Truth, *, again: bool) -> str:
    """Is some of the transaction older than the books, and what has become of the rows that would tell a run so?

    again: did a leg come again, or else late for the first time?
    """
    began, key = truth.baseline_at, found.transaction_key
    copies = [one for one in (*truth.events, *truth.rows.values()) if one.money.transaction_key == key]
    rows = [one for one in copies if isinstance(one, RowFact)]
    older = [one for one in copies if began is not None and one.visible_at and one.visible_at <= began]
    if any(isinstance(one, RowFact) and (one.touched or not one.stands) for one in older):
        return "; some older than the books, and a row of it was archived or written anew"
    if older and not again:
        return "; some older than the books, and a leg of it came late for the first time"
    if older and not any(one.visible_at for one in rows):
        return "; some older than the books, and no row of it has come into sight"
    if older and any(one not in older for one in rows):
        return "; some older than the books, and what came again has a row of since"
    return "; some older than the books" if older else ""


def _has_an_aborted_leg(found: Break, truth: Truth) -> bool:
    return any(one.outcome == "aborted" for one in truth.events if one.money.transaction_key == found.transaction_key)


def _why_not_bled(found: Break, truth: Truth) -> str | None:
    """An event bleeds into the next transaction of its producer once an election has cut the marker of its own away."""
    at = found.evidence["at"]
    place, offset = topic_place(at)
    cut_back = (above for _, what, of, above in truth.losses if what == "truncated" and of == place)
    if any(above > offset for above in cut_back):
        return None
    return f"bled_into_transaction of {found.match_key} at {at}: its marker stands"


def told(facts: KeyFacts) -> str:
    """The key's copies in a few words."""
    parts = [
        f"{len(some)} {name}"
        for name, some in (
            ("events", facts.events),
            ("lost events", facts.lost),
            ("aborted events", facts.aborted),
            ("open events", facts.open),
            ("rows", facts.rows),
            ("rows gone", facts.gone),
        )
        if some
    ]
    return f"the truth has {', '.join(parts) or 'nothing'}"
