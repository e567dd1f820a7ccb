"""The oracle: what must hold of each run, and of the books when all is over.

One file, since all clauses ask the same few questions of one world.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from tallystick.contract.contract import Contract
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide, ItemState
from tallystick.model.run_result import RunResult
from tests.simulator.oracle.causes import has_its_cause
from tests.simulator.oracle.effects_in_ledger import effects_in_ledger
from tests.simulator.oracle.facts import KeyFacts, Wrong, came, facts_of, wrongs_of
from tests.simulator.oracle.given_up import effects_given_up
from tests.simulator.oracle.money_of_keys import MadeWorse
from tests.simulator.oracle.reports import told, why_not_so
from tests.simulator.oracle.unread import (
    TAKEN,
    closed_over,
    rows_in_closed_cuts,
    rows_in_no_cut,
    unread_events,
    was_taken,
)
from tests.simulator.oracle.what_else import (
    about_taken_back,
    another_of_its_rows_was_taken_back,
    came_late_and_unseen,
    came_once_its_events_were_closed_away,
    came_once_its_events_were_gone,
    came_where_others_stood,
    came_where_others_stood_and_expired,
    gave_way_to_what_expired,
    its_input_stands_where_others_stood,
    its_leg_came_late_and_unseen,
    its_reversal_was_touched,
    moved_ahead_of_runs,
)
from tests.simulator.schedule.product import Product
from tests.simulator.standins.run_functions import outstanding_breaks, outstanding_classes
from tests.simulator.world.truth import EventFact, RowFact
from tests.simulator.world.world import World

SEEN_IN_PART = frozenset(
    {
        Doubt.CUT_CLOSED,
        Doubt.LOG_COMPACTED,
        Doubt.LOG_EXPIRED,
        Doubt.LOG_TRUNCATED,
        Doubt.LOG_REWRITTEN,
        Doubt.TOPIC_RECREATED,
        Doubt.LEDGER_REWRITTEN,
        Doubt.LEDGER_FAILED_OVER,
        Doubt.LEDGER_IDS_REUSED,
    }
)
"""Doubts in which a run says in words that it may not have seen something."""

LOST_UNREAD = frozenset(
    {
        Doubt.CUT_CLOSED,
        Doubt.LOG_COMPACTED,
        Doubt.LOG_EXPIRED,
        Doubt.LOG_TRUNCATED,
        Doubt.TOPIC_RECREATED,
        Doubt.LOG_REWRITTEN,
    }
)
"""Doubts after which an absence is not decidable: a partner may have stood where nobody has read."""


_NOT_ALL_ROWS = {
    "jdbc": {Doubt.LEDGER_REWRITTEN},
    "parquet": {Doubt.LEDGER_REWRITTEN},  # what is added to a file that a cut has taken is in no cut
    "topic": LOST_UNREAD,
}
"""By kind of ledger: doubts in which a run says that a row of it may be in no cut."""


class Violation(NamedTuple):
    """What did not hold, and what the truth is."""

    clause: str
    sentence: str


@dataclass
class Oracle:
    """Watches one world."""

    world: World
    violations: list[Violation] = field(default_factory=list)
    reported: dict[str, dict[str, list[tuple[datetime, Break]]]] = field(default_factory=dict)
    """By contract and match key: when a run said what."""
    doubted: dict[str, list[tuple[datetime, Doubt]]] = field(default_factory=dict)

    def judged(self, contract: Contract, result: RunResult, *, made_at: datetime | None = None) -> None:
        """Nothing is reported that is not so. made_at: when its cut was made, whatever a host's clock said."""
        name = contract.name
        said = self.world.store.of(name).cuts[result.cut_n].cut.now_utc
        for found in result.breaks:
            of_key = self.reported.setdefault(name, {}).setdefault(found.match_key, [])
            of_key.append((self.world.clock.now, found))
            reason = why_not_so(
                found,
                self.world.truth,
                self.world.config,
                run_began=min(said, made_at or said),
                grace=contract.partner_grace,
            )
            if reason and self._is_so_all_the_same(contract, found):
                continue
            if reason:
                sentence = f"{name}/{result.cut_n}: {reason}{self._about(name, found)}"
                self._violated("nothing is reported that is not so", sentence)
        for one in result.doubts:
            if not has_its_cause(self.world, name, result.cut_n, one):
                self._violated("no doubt without a cause", f"{name}/{result.cut_n}: {one.sentence}")
        self.doubted.setdefault(name, []).extend((self.world.clock.now, one.doubt) for one in result.doubts)

    def _is_so_all_the_same(self, contract: Contract, found: Break) -> bool:
        """Are the key's events, of something missing, none that its row may have; of legs, none that anybody sees?"""
        if found.break_class == "torn_transaction":
            return its_leg_came_late_and_unseen(self.world, contract, found)
        if not found.break_class.startswith("missing"):
            return False
        if came_late_and_unseen(self.world, contract, found):
            return True
        return found.break_class.startswith("missing_in_topic") and (
            came_once_its_events_were_gone(self.world, found)
            or came_once_its_events_were_closed_away(self.world, contract.name, found)
        )

    def over(self, product: Product) -> None:
        """All that must hold once everything has ended and a few quiet windows were judged."""
        for sentence in product.stopped:
            self._violated("books never stop", sentence)
        for sentence in (*self._effects(), *effects_in_ledger(self.world.truth)):
            self._violated("no effect twice", sentence)
        for sentence in effects_given_up(self.world):
            self._violated("no effect for what was given up", sentence)
        for contract in self.world.contracts:
            books = self.world.store.of(contract.name)
            self.doubted[contract.name] = [
                (row.recorded_at, one.doubt) for row in books.verdicts.values() for one in row.result.doubts
            ]  # a person's too, who closes a cut that nobody has judged
            if any(row.open for row in books.cuts):
                self._violated("books never stop", f"{contract.name}: a cut is open still")
                continue
            for sentence in self._wrong_and_not_told(contract):
                self._violated("each wrong is told", sentence)
            for sentence in self._torn_and_not_told(contract):
                self._violated("each wrong is told", sentence)
            for sentence in self._gone_and_not_told(contract):
                self._violated("what is gone is told", sentence)
            for sentence in self._told_and_not_wrong(contract):
                self._violated("what stands is wrong", sentence)
            for sentence in self._alerts(contract, product):
                self._violated("alerts follow the books", sentence)

    def read_again(self, differently: list[str]) -> None:
        """A cut that is read again gives the same digest, while log and ledger are what they were."""
        for sentence in differently:
            self._violated("a cut reads the same again", sentence)

    def repaired(self, made_worse: list[MadeWorse]) -> None:
        """No repair of ours makes a key's money worse."""
        about = {ours.money.match_key: self._had_gone_unseen(ours, before) for ours, before in self._published_again()}
        for one in made_worse:
            self._violated("no repair makes it worse", f"{one.sentence}{about.get(one.match_key, '')}")

    def _effects(self) -> Iterator[str]:
        """No effect twice: each action published once, and none of what stood already."""
        published: dict[str, int] = {}
        for one in self.world.truth.events:
            if one.by == "repair" and one.once_visible:
                published[one.action_id] = published.get(one.action_id, 0) + 1
        for action_id, times in published.items():
            if times > 1:
                yield f"action {action_id} published {times} times"
        for ours, before in self._published_again():
            archived = any(not row.stands for row in self.world.truth.rows_of(ours.money.match_key))
            older = archived and self._only_older_and_expired(before)
            about = "; older than the books, and expired" if older else self._had_gone_unseen(ours, before)
            yield f"{ours.money.match_key} was published again by us, {len(before)} stood before{about}"

    def _published_again(self) -> Iterator[tuple[EventFact, list[EventFact]]]:
        """What we have published, beside what stood already when it came."""
        for ours in self.world.truth.events:
            if ours.by != "repair" or not ours.once_visible or ours.negated:
                continue
            before = [
                other
                for other in self.world.truth.events_of(ours.money.match_key)
                if other is not ours and not other.negated and not other.taken_back_at and other.visible
                if other.visible_at and ours.visible_at and other.visible_at < ours.visible_at
            ]
            if before:
                yield ours, before

    def _had_gone_unseen(self, ours: EventFact, before: Sequence[EventFact]) -> str:
        """Why nobody could know of any of these, which retention had taken by the time that we published ours."""
        world, by_xmin = self.world, self.world.config.slice_by == "xmin"
        if ours.visible_at is None or not all(was_taken(world, one, before=ours.visible_at) for one in before):
            return ""
        for name in (contract.name for contract in world.contracts):
            where = {self._where_others_stood(name, [one]) for one in before}
            about = where.pop() if len(where) == 1 else ""
            about += moved_ahead_of_runs(world, name, ours.money.match_key) if by_xmin else ""
            if about:
                return about
        return ""

    def _only_older_and_expired(self, events: Iterable[EventFact]) -> bool:
        truth, began = self.world.truth, self.world.truth.baseline_at
        return began is not None and not any(
            _since(one, began) or truth.stands_on_log(one, self.world.broker) for one in events
        )

    def _violated(self, clause: str, sentence: str) -> None:
        self.violations.append(Violation(clause, sentence))

    def _wrong_and_not_told(self, contract: Contract) -> Iterator[str]:
        truth, name = self.world.truth, contract.name
        for key in truth.match_keys():
            facts = facts_of(truth, key)
            for wrong in wrongs_of(facts, self.world.config):
                since = self._came_too_many(facts, wrong)
                said = self.reported.get(name, {}).get(key, ())
                if any(_fits(one, wrong) and at >= since for at, one in said) or self._excused(name, facts, wrong):
                    continue
                if self._stand_for_all(name, facts, wrong) or self._is_told_as_torn(name, facts, wrong):
                    continue
                about = f"{self._touched(facts)}{self._given_up(name, facts)}"
                about += self._where_others_stood(name, facts.events) or self._others_stood_there(name, facts.lost)
                if its_input_stands_where_others_stood(self.world, key):
                    about += "; its input stands where others had been read"
                yield f"{name}: {key}: {wrong.kind}, and nobody said so: {told(facts)}{about}"

    def _came_too_many(self, facts: KeyFacts, wrong: Wrong) -> datetime:
        """When the newest of origins too many came: what was said before that was said of another one. Of followers
        nobody knows, since a further one may follow a further origin.
        """
        if wrong.kind != "origin twice":
            return datetime.min.replace(tzinfo=UTC)
        copies: Sequence[EventFact | RowFact] = facts.events if self.world.config.topic_first else facts.rows
        return max(at for one in copies if (at := came(one)))

    def _stand_for_all(self, name: str, facts: KeyFacts, wrong: Wrong) -> bool:
        """Of origins too many, where one is gone that the newest may stand for: does a break stand for each of them?"""
        if wrong.kind != "origin twice" or not (facts.gone or facts.lost):
            return False
        breaks = [one.item_break for one in outstanding_breaks(self.world.store, name)]
        return sum(one.match_key == facts.match_key and _fits(one, wrong) for one in breaks) >= wrong.copies

    def _is_told_as_torn(self, name: str, facts: KeyFacts, wrong: Wrong) -> bool:
        """Of a row without event: did a run say, once it stood, that its transaction never got just its leg?"""
        if wrong.kind != "missing" or self.world.config.topic_first:
            return False
        of_transaction = self.reported.get(name, {})
        return all(
            any(
                found.break_class == "torn_transaction"
                and row.money.leg in found.leg.split("+")
                and at >= row.visible_at
                for at, found in of_transaction.get(row.money.transaction_key, ())
            )
            for row in facts.rows
        )

    def _where_others_stood(self, name: str, events: Iterable[EventFact]) -> str:
        unread = unread_events(self.world, name, events)
        if came_where_others_stood_and_expired(self.world, name, unread):
            return "; an event of it came where others had been read, and expired before a run looked there"
        stands = came_where_others_stood(self.world.truth, unread)
        return "; an event of it stands where others had been read" if stands else ""

    def _others_stood_there(self, name: str, lost: Iterable[EventFact]) -> str:
        gone = gave_way_to_what_expired(self.world, name, lost)
        return "; another came in its event's place, and expired before a run looked there" if gone else ""

    def _given_up(self, name: str, facts: KeyFacts) -> str:
        """Did a run say of some copies, this key's perhaps, that their partners may have expired unread?"""
        lost = any(one in LOST_UNREAD for _, one in self.doubted.get(name, ()))
        lost |= any(what in TAKEN for _, what, *_ in self.world.truth.losses)
        said = any(
            one is Doubt.PARTNER_NOT_SETTLED and when >= facts.last_change for when, one in self.doubted.get(name, ())
        )
        return "; after a loss, and a run said that partners may be lost" if lost and said else ""

    def _torn_and_not_told(self, contract: Contract) -> Iterator[str]:
        """A business transaction of which some legs stand and others never came, where all of it came since the books
        began and all that stands was read.
        """
        name, began = contract.name, self.world.truth.baseline_at
        if len(contract.legs) < 2 or began is None:
            return
        lost = self.world.truth.gone_unread or any(one in LOST_UNREAD for _, one in self.doubted.get(name, ()))
        lost = lost or self._rows_had_events_before_the_books()
        lost = lost or bool(self.world.admin.compacted_topics.intersection(contract.topics))
        said = SEEN_IN_PART | ({Doubt.PARTNER_NOT_SETTLED} if lost else set())
        of_transaction: dict[str, list[EventFact]] = {}
        for one in self.world.truth.events:
            if one.readable and one.once_visible and not one.negated:
                of_transaction.setdefault(one.money.transaction_key, []).append(one)
        for key, events in of_transaction.items():
            if not any(one.visible for one in events):
                continue  # cut away since: nothing of it stands
            legs = {one.money.leg for one in events}
            older = any(one.written_at <= began for one in events)
            if len(legs) == len(contract.legs) or older or unread_events(self.world, name, events):
                continue
            keys = {key, *(one.money.match_key for one in events), *self._rows_beside(key)}
            if any(self.reported.get(name, {}).get(one) for one in keys):
                continue
            last = max((one.visible_at for one in events if one.visible_at), default=began)
            rows = [row for row in self.world.truth.rows.values() if row.money.transaction_key == key]
            of_before = any(row.visible_at <= began or row.odd_id or self._was_begun_before(name, row) for row in rows)
            undecided = {Doubt.PARTNER_NOT_SETTLED} if of_before else set()
            if self._left_undecided(name, key, legs, last):
                continue
            if not any(one in said | undecided and when >= last for when, one in self.doubted.get(name, ())):
                yield f"{name}: {key}: torn, and nobody said so: only {sorted(legs)} stands"

    def _was_begun_before(self, name: str, row: RowFact) -> bool:
        """Had the database transaction that wrote it begun before the books? Nobody knows when that ended, then."""
        began = self.world.store.of(name).cuts[0].cut.ledger_slice.snapshot
        positions = {"xmin": row.xid, "written_xid": row.written_xid, "jdbc": row.row_id}
        position = positions.get(self.world.config.slice_by)
        return position is not None and position < began.high_mark

    def _left_undecided(self, name: str, transaction_key: str, came: Collection[str], last: datetime) -> bool:
        """Did a run say of this transaction, once all that came of it stood, that nobody can decide it: where a row of
        a leg that never came may have been written anew, and its event have left the log?
        """
        if not self._rows_older_than_the_books_came_again(self.doubted.get(name, ())):
            return False
        row_undecided = False
        for _, run in sorted(self.world.store.of(name).verdicts.items()):
            undecided = [
                one
                for one in run.result.items
                if one.transaction_key == transaction_key and one.state is ItemState.UNDECIDABLE
            ]
            row_undecided |= any(one.side is ItemSide.LEDGER and one.leg not in came for one in undecided)
            said = run.recorded_at >= last and Doubt.PARTNER_NOT_SETTLED in run.doubts
            if row_undecided and said and any(one.side is ItemSide.LEGS for one in undecided):
                return True
        return False

    def _gone_and_not_told(self, contract: Contract) -> Iterator[str]:
        """Rows that a cut has read by the ids of their transactions, and that were deleted since."""
        if self.world.config.slice_by != "written_xid":
            return
        name, books = contract.name, self.world.store.of(contract.name)
        read = [
            (row.cut.ledger_slice, books.verdicts[row.cut.n].recorded_at)
            for row in books.cuts
            if not row.cut.is_baseline and Doubt.CUT_CLOSED not in books.verdicts[row.cut.n].doubts
        ]
        for row in self.world.truth.rows.values():
            gone, place = row.gone_at, row.written_xid or 0
            if gone is None or not any(
                part.position_start <= place < part.position_end and at < gone for part, at in read
            ):
                continue
            if not any(one in SEEN_IN_PART and when >= gone for when, one in self.doubted.get(name, ())):
                yield f"{name}: row {row.row_id} of {row.money.match_key} was read and is gone, and nobody said so"

    def _rows_beside(self, transaction_key: str) -> set[str]:
        """Keys of the transaction's rows: what is missing in the topic tells of it too."""
        rows = self.world.truth.rows.values()
        return {row.money.match_key for row in rows if row.money.transaction_key == transaction_key}

    def _excused(self, name: str, facts: KeyFacts, wrong: Wrong) -> bool:
        """Does a run say in words that it could not see it, or does the contract's guarantee leave it out?"""
        if self._lies_before_the_books(facts, wrong):
            return True
        at = facts.last_change
        doubts = self.doubted.get(name, ())
        if wrong.absence and any(one in LOST_UNREAD for _, one in doubts):
            return True
        if (
            (wrong.absence or self._events_before_the_books(facts))
            and (
                self.world.truth.gone_unread
                or self._rows_had_events_before_the_books()
                or self._topics_compact()
                or self._rows_older_than_the_books_came_again(doubts)
                or self._inputs_are_gone(contract_inputs=self.world.contract.input_topics)
            )
            and any(one is Doubt.PARTNER_NOT_SETTLED and when >= facts.last_came_to_stand for when, one in doubts)
        ):
            return True
        late = wrong.kind.endswith("twice") and self.world.config.slice_by in _NOT_ALL_ROWS
        if (wrong.kind in ("amount", "currency") or late) and self._one_unread(facts, doubts):
            return True
        if wrong.kind in ("amount", "currency") and self._read_in_part(name, facts):
            return True
        unpaired = any(one is Doubt.PARTNER_NOT_SETTLED and when >= facts.last_came for when, one in doubts)
        if wrong.kind in ("amount", "currency") and unpaired and self._stands_in_a_closed_cut(name, facts):
            return True
        if wrong.kind.endswith("twice") and self._inputs_cut_back_and_told(doubts):
            return True
        if self._got_an_id_of_before(name, facts.rows):
            return True
        if any(row.odd_id for row in facts.rows) and self._odd_ids_told(facts, doubts):
            return True
        if wrong.kind.endswith("twice") and (self._read_in_part(name, facts) or self._closed_unread(name, facts)):
            return True
        if self.world.config.slice_by == "written_xid" and wrong.kind == "follower twice":
            at = facts.last_change_of_money  # nobody sees that a row was touched
        return any(one in SEEN_IN_PART and when >= at for when, one in doubts)

    def _inputs_cut_back_and_told(self, doubts: Iterable[tuple[datetime, Doubt]]) -> bool:
        """Did a run say that inputs were cut back? One whose marker went may end otherwise, and no run looks there."""
        inputs = self.world.contract.input_topics
        cut_back = [
            at for at, what, place, _ in self.world.truth.losses if what == "truncated" and place.topic in inputs
        ]
        return any(one in LOST_UNREAD and when >= at for when, one in doubts for at in cut_back)

    def _odd_ids_told(self, facts: KeyFacts, doubts: Iterable[tuple[datetime, Doubt]]) -> bool:
        """Did a run say that rows have ids of another time; or, once all of the key had come, that partners lie beyond
        what it could read?
        """
        return any(
            one is Doubt.LEDGER_REWRITTEN or (one is Doubt.PARTNER_NOT_SETTLED and when >= facts.last_came)
            for when, one in doubts
        )

    def _rows_had_events_before_the_books(self) -> bool:
        """Had the topics lost events by then, so that a row that the baseline left behind may have had its own?"""
        return not self.world.config.topic_first and any(one.gone_before_books for one in self.world.truth.events)

    def _topics_compact(self) -> bool:
        """May a cleaner have taken what stood before the books began? It leaves no sign there."""
        return not self.world.admin.compacted_topics.isdisjoint(self.world.contract.topics)

    def _inputs_are_gone(self, *, contract_inputs: Iterable[str]) -> bool:
        """Has retention ever taken inputs? No index has those of before the books."""
        return any(log.log_start > 0 for log in self.world.broker.logs_of(contract_inputs))

    def _rows_older_than_the_books_came_again(self, doubts: Iterable[tuple[datetime, Doubt]]) -> bool:
        """Was a row told as written anew, where a row may be older than what its topic still has?"""
        began = self.world.truth.baseline_at
        older = began is not None and any(row.visible_at <= began for row in self.world.truth.rows.values())
        older |= any(what in TAKEN for _, what, *_ in self.world.truth.losses)
        return older and any(one is Doubt.LEDGER_REWRITTEN for _, one in doubts)

    def _one_unread(self, facts: KeyFacts, doubts: Iterable[tuple[datetime, Doubt]]) -> bool:
        """Did a run say, after one of the pair's copies had come, that it could not read all of that side?"""
        of_rows = {Doubt.CUT_CLOSED, *_NOT_ALL_ROWS.get(self.world.config.slice_by, ())}
        copies = [(at, LOST_UNREAD) for one in facts.events if (at := came(one))]
        copies += [(one.visible_at, frozenset(of_rows)) for one in facts.rows]
        return any(one in of_side and when >= at for when, one in doubts for at, of_side in copies)

    def _read_in_part(self, name: str, facts: KeyFacts) -> bool:
        """Did a run say that it lost offsets, after an event that no cut has read? One whose marker was cut away, or
        that stands where others had been read, came when it was written: no run looks there once it is visible.
        """
        unread = unread_events(self.world, name, facts.events)
        below = [one for one in unread if one.reopened or came_where_others_stood(self.world.truth, [one])]
        doubts = self.doubted.get(name, ())
        return any(
            one in LOST_UNREAD
            and event.visible_at
            and when >= (event.written_at if event in below else event.visible_at)
            for event in unread
            for when, one in doubts
        )

    def _stands_in_a_closed_cut(self, name: str, facts: KeyFacts) -> bool:
        """Did an event come to stand where others had stood in a cut that a person has closed unread? The doubt of that
        cut names its offset, and no run has read there or reads there again.
        """
        unread = unread_events(self.world, name, facts.events)
        below = [one for one in unread if came_where_others_stood(self.world.truth, [one])]
        return any(closed_over(self.world, name, one) for one in below)

    def _closed_unread(self, name: str, facts: KeyFacts) -> bool:
        """Did a run say, after the key's last copy, that its cut was closed or that some have no partner, where a cut
        that was closed has one of its rows? By written_xid nobody sees that a row was touched since.
        """
        at = facts.last_came if self.world.config.slice_by == "written_xid" else facts.last_change
        said = any(
            one in (Doubt.CUT_CLOSED, Doubt.PARTNER_NOT_SETTLED) and when >= at
            for when, one in self.doubted.get(name, ())
        )
        return said and bool(rows_in_closed_cuts(self.world, name, facts.rows))

    def _events_before_the_books(self, facts: KeyFacts) -> bool:
        """Has the key events, and none since the books began?"""
        began = self.world.truth.baseline_at
        return began is not None and bool(facts.events) and not any(_since(one, began) for one in facts.events)

    def _about(self, name: str, found: Break) -> str:
        """What else is true of what is said: by it a known violation is told from any other."""
        truth = self.world.truth
        if found.break_class.startswith("missing_in_topic"):
            about = (
                moved_ahead_of_runs(self.world, name, found.match_key) if self.world.config.slice_by == "xmin" else ""
            )
            return about + self._where_others_stood(name, truth.events_of(found.match_key))
        if found.break_class.startswith("phantom"):
            return self._where_others_stood(name, truth.events_of(found.match_key))
        if found.break_class.startswith("duplicate"):
            if self.world.config.slice_by == "xmin" and its_reversal_was_touched(truth, found):
                return "; what takes it back was touched, and no other row of it stands"
            if its_input_stands_where_others_stood(self.world, found.match_key):
                return "; its input stands where others had been read"
            if found.break_class.startswith("duplicate_in_ledger") and another_of_its_rows_was_taken_back(
                self.world, name, found
            ):
                return "; another contract took another row of it back"
            return about_taken_back(truth, name, found)
        if found.break_class != "torn_transaction":
            return ""
        events = [one for one in self.world.truth.events if one.money.transaction_key == found.transaction_key]
        unread = "; a leg of it is gone that nobody has read" if unread_events(self.world, name, events) else ""
        unread += self._where_others_stood(name, events)
        return f"{unread}; a row of it is undecidable" if self._had_an_undecidable_row(name, found) else unread

    def _had_an_undecidable_row(self, name: str, found: Break) -> bool:
        """Had a run said of a row of an absent leg that nobody can decide it, by the one that called it torn?"""
        for _, run in sorted(self.world.store.of(name).verdicts.items()):
            items = [one for one in run.result.items if one.transaction_key == found.transaction_key]
            rows = [one for one in items if one.side is ItemSide.LEDGER and one.leg in found.leg.split("+")]
            if any(one.state is ItemState.UNDECIDABLE for one in rows):
                return True
            if any(one.break_id == found.break_id for one in run.result.breaks):
                return False
        return False

    def _touched(self, facts: KeyFacts) -> str:
        """What else is true of a wrong that nobody told: by it a known violation is told from any other."""
        began = self.world.truth.baseline_at
        older = began is not None and any(one.visible_at and one.visible_at <= began for one in facts.events)
        touched = any(row.touched for row in facts.rows)
        return "; its row was touched, and an event of it is older than the books" if older and touched else ""

    def _lies_before_the_books(self, facts: KeyFacts, wrong: Wrong) -> bool:
        """A key all of whose copies but one are older than the contract; of two that came since, one is too many."""
        began = self.world.truth.baseline_at
        if began is None:
            return True
        if self.world.config.slice_by == "jdbc" and not all(_since(one, began) for one in facts.copies):
            return True  # the newest rows stand behind the baseline already, their events before it
        if wrong.kind in ("origin twice", "follower twice"):
            of_topic = (wrong.kind == "origin twice") == self.world.config.topic_first
            if of_topic:
                if not any(_since(one, began) for one in facts.events):
                    return True
                before = [one for one in facts.events if not _since(one, began)]
                known = any(self.world.truth.stands_on_log(one, self.world.broker) for one in before)
                known = known and any(row.visible_at < began for row in facts.rows)
                since = len(facts.events) - len(before)
                if self.world.config.slice_by == "topic" and since <= sum(_since(one, began) for one in facts.rows):
                    return True  # each has an input of its own, and no index has those of before
                return since + known < 2
            since = sum(_since(one, began) for one in facts.rows)
            before = sum(not _since(one, began) and one.by != "idle reversal" for one in facts.rows)
            needed = 2 if self.world.config.slice_by == "topic" else 1  # no index has inputs of before
            return since < needed or since + before < 2
        return any(one.visible_at is not None and one.visible_at <= began for one in facts.copies)

    def _told_and_not_wrong(self, contract: Contract) -> Iterator[str]:
        for one in outstanding_breaks(self.world.store, contract.name):
            found = one.item_break
            reason = why_not_so(
                found,
                self.world.truth,
                self.world.config,
                run_began=self.world.clock.now,
                grace=contract.partner_grace,
            )
            if reason and not self._partner_unread(contract.name, found):
                yield f"{contract.name}: outstanding still: {reason}{self._about(contract.name, found)}"

    def _partner_unread(self, name: str, found: Break) -> bool:
        """Did a run say, after the last copy came, that it could not read all that was written? Or after an event of
        what is missing came, and no cut has read that one?
        """
        torn = found.break_class.startswith("torn_")
        missing = found.break_class.startswith("missing_in_topic")
        if missing and self._read_in_part(name, facts_of(self.world.truth, found.match_key)):
            return True
        if missing and self._stands_in_a_closed_cut(name, facts_of(self.world.truth, found.match_key)):
            return True
        if found.break_class.startswith("missing_in_ledger") and self._a_row_went_unread(name, found):
            return True
        if found.break_class.startswith("duplicate_in_ledger") and self._a_reversal_went_unread(name, found):
            return True
        events = [
            one
            for one in self.world.truth.events
            if (one.money.transaction_key if torn else one.money.match_key) == found.match_key and one.visible_at
        ]
        if torn and self._leg_went_unread(name, events):
            return True
        came = [one.written_at for one in events]  # a record that is written anew may be visible long after
        rows = self.world.truth.rows_of(found.match_key)
        came += [row.visible_at for row in rows if row.by != "idle reversal"]  # which is no copy of the event
        if not came:
            return False
        return any(one in SEEN_IN_PART and when >= max(came) for when, one in self.doubted.get(name, ()))

    def _a_row_went_unread(self, name: str, found: Break) -> bool:
        """Has a cut that was closed one of its rows, or did a run say, after one came, that rows are in no cut?"""
        rows, doubts = self.world.truth.rows_of(found.match_key), self.doubted.get(name, ())
        of_rows = _NOT_ALL_ROWS.get(self.world.config.slice_by, ())
        told = any(one in of_rows and when >= row.visible_at for row in rows for when, one in doubts)
        told |= self._got_an_id_of_before(name, rows)
        return told or bool(rows_in_closed_cuts(self.world, name, rows))

    def _got_an_id_of_before(self, name: str, rows: Iterable[RowFact]) -> bool:
        """Did a run say, after one came that no cut has read, that ids were given out again?"""
        return any(
            one is Doubt.LEDGER_IDS_REUSED and when >= row.visible_at
            for row in rows_in_no_cut(self.world, name, rows)
            for when, one in self.doubted.get(name, ())
        )

    def _a_reversal_went_unread(self, name: str, found: Break) -> bool:
        """Has a cut that was closed a row of ours that takes one of the key's rows back?"""
        ours = [row for row in self.world.truth.rows_of(found.match_key) if row.nets and row.action_id]
        return bool(rows_in_closed_cuts(self.world, name, ours))

    def _leg_went_unread(self, name: str, events: Iterable[EventFact]) -> bool:
        """Did a run say that it lost offsets, after a leg came of which no cut has read any event?"""
        unread = unread_events(self.world, name, events)
        read = {one.money.leg for one in events if one not in unread}
        came = [one.visible_at for one in unread if one.visible_at and one.money.leg not in read]
        return any(one in LOST_UNREAD and when >= at for at in came for when, one in self.doubted.get(name, ()))

    def _alerts(self, contract: Contract, product: Product) -> Iterator[str]:
        """What fires at the receiver is what is outstanding, and that the last run proved nothing where it did not."""
        name = contract.name
        firing = {one.name for one in product.receiver.open.values() if one.contract == name}
        classes = {str(one) for one in outstanding_classes(self.world.store, name)}
        seen_anew = {"inconclusive", "hanging_transaction", "retention_overtakes", "promise_at_risk", "backlog_grows"}
        seen_anew |= {"host_clock_off", "cursor_stopped", "no_verdict", "verdict_overdue"}
        proves_nothing = bool(product.last_doubts.get(name))  # and then resolves nothing, by design
        if (classes - firing) or (firing - seen_anew - classes and not proves_nothing):
            yield f"{name}: fires at on-call's: {sorted(firing - seen_anew)}; outstanding: {sorted(classes)}"


def _since(copy: EventFact | RowFact, began: datetime) -> bool:
    return copy.visible_at is not None and copy.visible_at > began


def _fits(found: Break, wrong: Wrong) -> bool:
    return str(found.break_class).startswith(wrong.classes) or found.break_class == "torn_transaction"
