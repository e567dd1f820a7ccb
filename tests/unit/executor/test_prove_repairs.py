"""What log, ledger and progress prove of each action before it begins, and what keeps it from being done.

One file, since each fate is one branch of one judgement on the same proof.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from tallystick.compensation.plan import CurrentRow, OffsetsUnread, RepairKind
from tallystick.compensation.republished_event import CurrentEvent, CurrentEvents, event_value, why_not_reversible
from tallystick.contract.compensation import CompensationRules, DagTrigger, LedgerPost
from tallystick.contract.contract import Contract
from tallystick.executor import prove_repairs
from tallystick.executor.effects.action_log import ItemOutcome
from tallystick.executor.progress_proof import ProgressProof
from tallystick.executor.prove_repairs import (
    already_done,
    contract_to_look_by,
    fate_of_action,
    prove_actions,
    why_done_otherwise,
    why_unproven,
)
from tallystick.kafka_log.committed_records import SettledTopics
from tallystick.kafka_log.event_decoder import decoder_of
from tallystick.model.cut import JudgedPart, PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.planned_items import ITEM
from tests.unit.builders import NOON, contract_of

PLANNED_AT, LATER = 4, 5
WORK: Any = SimpleNamespace(stopped={}, plan=SimpleNamespace(cut_n=PLANNED_AT))
PART = PartitionSnapshot(
    topic="payouts", partition=0, topic_id="t", leader_epoch=0, log_start=9, lso=9, high_watermark=9
)


UNREAD = OffsetsUnread(at=LATER)


def proof(*, offsets_lost_at: int, on_its_topic: int | None = None) -> Any:
    """The log begins where the newest cut with a verdict ends."""
    judged = {
        TopicPartition(topic="payouts", partition=0): JudgedPart(
            topic_id="t", leader_epoch=0, log_start=0, kafka_offset_end=9
        )
    }
    settled = SimpleNamespace(of=lambda _: (PART,))
    at_topic = {} if on_its_topic is None else {ITEM.topic: on_its_topic}
    unread = OffsetsUnread(at=offsets_lost_at, at_topic=at_topic)
    return SimpleNamespace(settled=settled, judged=judged, offsets_unread=unread, unreadable_since={})


def test_what_a_later_cut_has_lost_may_have_been_the_event() -> None:
    outcome = why_unproven(WORK, ITEM, proof(offsets_lost_at=LATER))
    assert outcome is not None
    told = "offsets were lost before cut 5 could read them, or closed unread with it"
    assert outcome.reason == f"its event may have come since: {told}"


@pytest.mark.parametrize("offsets_lost_at", [-1, PLANNED_AT])
def test_what_was_lost_before_the_plan_was_held_against_it_when_it_was_drawn(offsets_lost_at: int) -> None:
    assert why_unproven(WORK, ITEM, proof(offsets_lost_at=offsets_lost_at)) is None


CORRECTED = (
    "an event that amends, cancels or takes it back may have come: offsets were lost before cut 5 could read them, or "
    "closed unread with it; look at the payment, then repair it by hand, or write the break off"
)


@pytest.mark.parametrize(("offsets_lost_at", "reason"), [(-1, None), (PLANNED_AT, None), (LATER, CORRECTED)])
@pytest.mark.parametrize("kind", [RepairKind.POST, RepairKind.REVERSE])
def test_what_a_later_cut_has_lost_may_have_been_a_correction(
    kind: RepairKind, offsets_lost_at: int, reason: str | None
) -> None:
    outcome = why_unproven(WORK, replace(ITEM, kind=kind), proof(offsets_lost_at=offsets_lost_at))
    assert (outcome and outcome.reason) == reason


@pytest.mark.parametrize(
    ("kind", "hindered"), [(RepairKind.POST, False), (RepairKind.REVERSE, False), (RepairKind.REPUBLISH, True)]
)
def test_on_another_topic_than_its_own_no_correction_is_lost_and_a_misrouted_event_may_be(
    kind: RepairKind, hindered: bool
) -> None:
    item = replace(ITEM, kind=kind)
    elsewhere = proof(offsets_lost_at=LATER, on_its_topic=PLANNED_AT)
    assert (why_unproven(WORK, item, elsewhere) is not None) is hindered
    assert why_unproven(WORK, item, proof(offsets_lost_at=LATER, on_its_topic=LATER)) is not None


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        (RepairKind.REPUBLISH, True),
        (RepairKind.POST, True),
        (RepairKind.REVERSE, True),
        (RepairKind.COUNTERPOST, False),
    ],
)
def test_beside_what_expired_unread_nothing_is_done_by_the_log(kind: RepairKind, refused: bool) -> None:
    unread = proof(offsets_lost_at=-1)
    unread.settled = SimpleNamespace(of=lambda _: (replace(PART, log_start=10),))
    outcome = why_unproven(WORK, replace(ITEM, kind=kind), unread)
    assert (outcome is not None and "begins at 10 by now, and runs have read it up to 9" in outcome.reason) is refused


@pytest.mark.parametrize("kind", [RepairKind.REPUBLISH, RepairKind.POST, RepairKind.REVERSE])
def test_what_a_run_could_not_read_and_the_log_has_lost_since_the_plan_may_have_been_about_it(kind: RepairKind) -> None:
    item, since = replace(ITEM, kind=kind), proof(offsets_lost_at=-1)
    since.unreadable_since = {ITEM.break_id: 0}
    told = "not provable: since this was planned the log may have lost what cut 0 could not read, or what a "
    outcome = why_unproven(WORK, item, since)
    assert (
        outcome is not None
        and outcome.reason == f"{told}later leader wrote; let the next window be judged, then plan anew"
    )
    assert why_unproven(WORK, replace(item, break_id=UUID(int=9)), since) is None
    assert why_unproven(WORK, replace(ITEM, kind=RepairKind.COUNTERPOST), since) is None


# What posts into the ledger, or takes a row of it back.

POSTED = replace(ITEM, kind=RepairKind.POST, posts="topic:payouts:0:9")
TAKEN_BACK = replace(ITEM, kind=RepairKind.COUNTERPOST)
EVENT = CurrentEvent(
    topic="payouts", partition=0, kafka_offset=9, action_id="", value=event_value(ITEM, contract_of().event)
)


def action(state: ActionState, **outcome: Any) -> StoredAction:
    return StoredAction(
        action_id=ITEM.action_id,
        break_id=ITEM.break_id,
        plan_id=UUID(int=5),
        state=state,
        outcome=outcome,
        recorded_at=NOON,
    )


def post_proof(
    *events: CurrentEvent,
    stored: StoredAction | None = None,
    rows: tuple[CurrentRow, ...] = (),
    writers: bool = False,
    held: str = "others",
) -> Any:
    standing = CurrentEvents(by_key={("payouts", "ev-1"): events}, unreadable_keys=frozenset())
    return SimpleNamespace(
        actions={ITEM.action_id: stored} if stored else {},
        events=standing,
        names=contract_of().event,
        writers_open=writers,
        held=frozenset({held}),
        rows={"ev-1": rows},
        settled=SettledTopics(partitions=(PART,), held=frozenset()),
        cleaned=frozenset(),
    )


def told(outcome: ItemOutcome | None) -> tuple[str, str, bool] | None:
    return None if outcome is None else (str(outcome.fate), outcome.reason, outcome.waits)


def test_an_event_that_stands_and_is_in_force_may_be_posted() -> None:
    assert fate_of_action(POSTED, post_proof(EVENT)) is None


def test_nothing_is_repaired_beside_what_a_cleaner_has_taken_unread() -> None:
    """Found by the simulated world: the event had come, was compacted away, and was published once more."""
    said = "not provable: a cleaner has taken records of payouts[0] that no run has read; the next run says which"
    of_ours, of_others = (
        {"cleaned": frozenset({TopicPartition(topic=topic, partition=0)})} for topic in ("payouts", "fees")
    )
    assert told(fate_of_action(ITEM, publish_proof(**of_ours))) == ("refused", said, False)
    assert fate_of_action(ITEM, publish_proof(**of_others)) is None
    to_post = post_proof(EVENT)
    to_post.cleaned = of_ours["cleaned"]
    assert told(fate_of_action(POSTED, to_post)) == ("refused", said, False)


def test_an_event_that_is_gone_or_was_taken_back_is_not_posted() -> None:
    gone = "not provable: the event is not on the retained log any more"
    assert told(fate_of_action(POSTED, post_proof())) == ("refused", gone, False)
    back = replace(EVENT, kafka_offset=12, reverses=EVENT.item_id)
    assert told(fate_of_action(POSTED, post_proof(EVENT, back))) == ("refused", "the event was taken back", False)


def test_while_somebody_writes_in_the_ledger_nothing_is_posted() -> None:
    reason = "not provable now: a database transaction that is open in the ledger may hold a row of it"
    assert told(fate_of_action(POSTED, post_proof(EVENT, writers=True))) == ("refused", reason, False)
    gone = fate_of_action(POSTED, post_proof(writers=True))
    assert gone is not None and gone.reason != reason


def test_while_its_topic_is_held_nothing_is_posted_since_what_cancels_the_event_may_stand_behind_it() -> None:
    reason = "not provable now: an open producer transaction holds payouts"
    assert told(fate_of_action(POSTED, post_proof(EVENT, held="payouts"))) == ("refused", reason, False)
    assert fate_of_action(TAKEN_BACK, post_proof(rows=(ROW, replace(ROW, row_id="8")), held="payouts")) is None


def test_what_was_posted_is_done_and_what_waits_for_a_person_waits_on() -> None:
    done = fate_of_action(POSTED, post_proof(EVENT, stored=action(ActionState.DONE, rows=["7"])))
    assert done == already_done(POSTED, {"rows": ["7"]})
    waits = fate_of_action(POSTED, post_proof(EVENT, stored=action(ActionState.WAITING, reason="look", at=3)))
    assert (told(waits), waits and waits.seen) == (("refused", "look", True), {"at": 3})
    assert fate_of_action(POSTED, post_proof(EVENT, stored=action(ActionState.EXECUTING))) is None


def test_a_row_is_taken_back_while_it_stands_as_the_plan_has_it_and_nobody_writes() -> None:
    (row,) = (CurrentRow(**{name: getattr(ITEM.row, name) for name in vars(ITEM.row)}),)
    twice = (row, replace(row, row_id="8"))
    assert fate_of_action(TAKEN_BACK, post_proof(rows=twice)) is None
    reason = "not provable now: a database transaction that is open in the ledger may hold a row of it"
    assert told(fate_of_action(TAKEN_BACK, post_proof(rows=twice, writers=True))) == ("refused", reason, False)
    gone = fate_of_action(TAKEN_BACK, post_proof(rows=()))
    assert told(gone) == ("refused", "the ledger row is gone or changed", False)


def test_what_was_stopped_is_refused_with_its_reason_and_nothing_else_is() -> None:
    work: Any = SimpleNamespace(stopped={ITEM.action_id: "the switch"})
    for item in (ITEM, TAKEN_BACK):
        assert told(why_unproven(work, item, proof(offsets_lost_at=LATER))) == ("refused", "the switch", False)
    assert why_unproven(WORK, TAKEN_BACK, proof(offsets_lost_at=LATER)) is None


# What publishes an event.

TAKES_BACK = replace(ITEM, kind=RepairKind.REVERSE, reverses="topic:payouts:0:9")
SEEN = {"progress_end": 7}
STANDS = replace(EVENT, action_id="")
ROW = CurrentRow(**{name: getattr(ITEM.row, name) for name in vars(ITEM.row)})


def publish_proof(*events: CurrentEvent, **named: Any) -> Any:
    """By default nothing stands anywhere but the row, and nothing is in doubt."""
    standing = CurrentEvents(by_key={("payouts", "ev-1"): events}, unreadable_keys=frozenset())
    proof = {
        "actions": {},
        "progress": ProgressProof(seen=SEEN),
        "events": standing,
        "held": frozenset(),
        "rows": {"ev-1": (ROW,)},
        "names": contract_of().event,
        "settled": SettledTopics(partitions=(PART,), held=frozenset()),
        "cleaned": frozenset(),
        "taken_back": {},
        "negated": True,
        "writers_open": False,
    }
    return SimpleNamespace(**proof | named)


def test_what_stands_nowhere_and_has_its_row_may_be_published() -> None:
    assert fate_of_action(ITEM, publish_proof()) is None


@pytest.mark.parametrize("rows", [(), (ROW, ROW), (replace(ROW, amount_minor=1),)])
def test_without_exactly_its_row_nothing_is_published(rows: tuple[CurrentRow, ...]) -> None:
    outcome = fate_of_action(ITEM, publish_proof(rows={"ev-1": rows}))
    assert told(outcome) == ("refused", "the ledger row is gone, doubled or changed", False)


def test_a_doubt_about_its_progress_waits_for_a_person_with_what_was_seen() -> None:
    progress = ProgressProof(doubts={ITEM.action_id: "its record may be gone"}, seen=SEEN)
    outcome = fate_of_action(ITEM, publish_proof(progress=progress))
    assert outcome is not None
    assert (outcome.action_id, outcome.waits, outcome.seen) == (ITEM.action_id, True, SEEN)
    assert outcome.reason.startswith("a person has to look: its record may be gone. ")
    others = ProgressProof(doubts={UUID(int=2): "its record may be gone"}, seen=SEEN)
    assert fate_of_action(ITEM, publish_proof(progress=others)) is None


def test_an_event_with_the_actions_header_that_says_something_else_waits_for_a_person() -> None:
    ours = replace(EVENT, action_id=str(ITEM.action_id), message_key=b"pay-1")
    assert fate_of_action(ITEM, publish_proof(ours)) == already_done(ITEM, ours.place)
    other = replace(ours, value=b"{}")
    outcome = fate_of_action(ITEM, publish_proof(other))
    assert outcome is not None
    assert (outcome.waits, outcome.seen) == (True, SEEN)
    assert "payouts[0] at 9 has the action's header and does not say what the plan says" in outcome.reason


def test_an_event_that_stands_by_now_is_not_published_and_one_to_take_back_has_to_stand() -> None:
    assert told(fate_of_action(ITEM, publish_proof(STANDS))) == ("refused", "the event stands: payouts[0] at 9", False)
    other = replace(STANDS, kafka_offset=12)
    assert fate_of_action(TAKES_BACK, publish_proof(STANDS, other)) is None
    gone = fate_of_action(TAKES_BACK, publish_proof())
    assert gone is not None
    assert (gone.action_id, str(gone.fate), gone.waits, bool(gone.reason)) == (
        ITEM.action_id,
        "refused",
        False,
        True,
    )


def test_a_copy_is_not_taken_back_while_another_action_takes_the_only_other_one_back() -> None:
    both = (STANDS, replace(STANDS, kafka_offset=12))
    elsewhere = {ITEM.action_id: frozenset({"topic:payouts:0:12"})}
    assert fate_of_action(TAKES_BACK, publish_proof(*both, taken_back={UUID(int=2): elsewhere[ITEM.action_id]})) is None
    refusal = fate_of_action(TAKES_BACK, publish_proof(*both, taken_back=elsewhere))
    assert refusal is not None
    assert (refusal.action_id, refusal.waits) == (ITEM.action_id, False)
    assert refusal.reason == why_not_reversible(
        TAKES_BACK, both, contract_of().event, elsewhere=elsewhere[ITEM.action_id]
    )


def test_what_is_hidden_or_held_is_not_provable_now() -> None:
    held = fate_of_action(ITEM, publish_proof(held=frozenset({"payouts"})))
    assert told(held) == ("refused", "not provable now: an open producer transaction holds payouts", False)
    assert fate_of_action(ITEM, publish_proof(held=frozenset({"others"}))) is None
    hidden = CurrentEvents(by_key={}, unreadable_keys=frozenset({("payouts", b"pay-1")}))
    reason = hidden.why_hidden(ITEM)
    assert reason
    assert told(fate_of_action(ITEM, publish_proof(events=hidden))) == ("refused", reason, False)


def test_the_least_amount_has_no_other_sign_that_anybody_could_read() -> None:
    least = replace(TAKES_BACK, amount_minor=-(2**63))
    said = replace(STANDS, value=event_value(least, contract_of().event))
    rows = {"ev-1": (replace(ROW, amount_minor=-(2**63)),)}
    two = (said, replace(said, kafka_offset=12))
    outcome = fate_of_action(least, publish_proof(*two, rows=rows, negated=True))
    assert outcome is not None
    assert "more than 64 bits hold" in outcome.reason
    assert fate_of_action(least, publish_proof(*two, rows=rows, negated=False)) is None
    next_to = replace(least, amount_minor=1 - 2**63)
    said = replace(STANDS, value=event_value(next_to, contract_of().event))
    rows = {"ev-1": (replace(ROW, amount_minor=1 - 2**63),)}
    two = (said, replace(said, kafka_offset=12))
    assert fate_of_action(next_to, publish_proof(*two, rows=rows, negated=True)) is None


def test_what_waits_for_a_person_waits_on_with_its_reason_and_all_else_that_was_kept() -> None:
    for item in (ITEM, POSTED):
        waiting = {ITEM.action_id: action(ActionState.WAITING, reason="look", at=3)}
        outcome = fate_of_action(item, publish_proof(EVENT, actions=waiting))
        assert (told(outcome), outcome and outcome.seen) == (("refused", "look", True), {"at": 3})
    without_words = {ITEM.action_id: action(ActionState.WAITING)}
    assert told(fate_of_action(ITEM, publish_proof(actions=without_words))) == ("refused", "", True)


# What its progress says was published, and no log shows.

PUBLISHED = frozenset({ITEM.action_id})


def published(ends: Any, *, log_start: int = 9, held: frozenset[str] = frozenset()) -> ItemOutcome | None:
    behind = {} if ends is None else {ITEM.action_id: ends}
    progress = ProgressProof(published=PUBLISHED, behind=behind, seen=SEEN)
    part = replace(PART, log_start=log_start)
    settled = SettledTopics(partitions=(part,), held=held)
    return fate_of_action(ITEM, publish_proof(progress=progress, settled=settled, held=held))


DONE = already_done(ITEM, {"topic": "payouts"})


def test_an_event_whose_place_retention_has_taken_was_published() -> None:
    assert published({"payouts": {"0": 8}}) == DONE


def test_where_the_log_has_all_that_came_since_a_person_has_to_look() -> None:
    for end in (9, 10):
        outcome = published({"payouts": {"0": end}})
        assert outcome is not None
        assert (outcome.waits, outcome.seen) == (True, SEEN)
        assert "payouts has all events since and none of it" in outcome.reason
    assert published({"payouts": {"0": 9}}, held=frozenset({"payouts"})) == DONE


def test_an_event_that_may_stand_where_nobody_can_read_is_not_said_to_be_gone() -> None:
    progress = ProgressProof(published=PUBLISHED, behind={ITEM.action_id: {"payouts": {"0": 9}}}, seen=SEEN)
    settled = SettledTopics(partitions=(PART,), held=frozenset())
    hidden = CurrentEvents(by_key={}, unreadable_keys=frozenset({("payouts", b"pay-1")}))
    outcome = fate_of_action(ITEM, publish_proof(events=hidden, progress=progress, settled=settled))
    assert outcome is not None and outcome.waits
    assert f"published, and {hidden.why_hidden(ITEM)}" in outcome.reason
    assert "none of it" not in outcome.reason


def test_an_event_of_the_action_that_says_something_else_is_named_and_not_said_to_be_gone() -> None:
    other = replace(EVENT, action_id=str(ITEM.action_id), message_key=b"pay-1", value=b"{}")
    progress = ProgressProof(published=PUBLISHED, behind={ITEM.action_id: {"payouts": {"0": 9}}}, seen=SEEN)
    settled = SettledTopics(partitions=(PART,), held=frozenset())
    outcome = fate_of_action(ITEM, publish_proof(other, progress=progress, settled=settled))
    assert outcome is not None and outcome.waits
    assert "payouts[0] at 9 has the action's header and does not say what the plan says" in outcome.reason
    taken = replace(progress, behind={ITEM.action_id: {"payouts": {"0": 8}}})
    assert fate_of_action(ITEM, publish_proof(other, progress=taken, settled=settled)) == DONE


def test_where_nobody_knows_how_far_the_log_reached_it_was_published() -> None:
    assert published(None) == published({"others": {"0": 9}}) == DONE


def test_a_partition_that_was_not_there_had_nothing_before() -> None:
    whole = published({"payouts": {}}, log_start=0)
    assert whole is not None and whole.waits
    assert published({"payouts": {}}, log_start=1) == DONE


# What is read for it, and in which order.


class Reading:
    """Notes what prove_actions asks, in order. ends: whether the ledger's writers do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.ends = True
        for name in (
            "settle_topics",
            "prove_progress",
            "read_committed",
            "open_ledger",
            "writers_end",
            "read_source_rows",
            "judged_parts",
            "last_cuts_with_offsets_unread",
            "unreadable_since",
        ):
            monkeypatch.setattr(prove_repairs, name, getattr(self, name))

    def settle_topics(self, kafka: str, topics: Any, *, wait_seconds: float) -> SettledTopics:
        self.asked.append(("settle", kafka, sorted(topics), wait_seconds))
        return SettledTopics(partitions=(PART,), held=frozenset({"payouts"}))

    def prove_progress(self, work: Any, items: Any, actions: Any, settled: SettledTopics) -> ProgressProof:
        self.asked.append(("progress", items, actions, settled.partitions))
        return ProgressProof(published=PUBLISHED)

    def read_committed(self, kafka: str, partitions: Any) -> tuple[Any, ...]:
        self.asked.append(("read", kafka, list(partitions)))
        return ()

    @contextmanager
    def open_ledger(self, dsn: str) -> Iterator[str]:
        self.asked.append(("ledger", dsn))
        yield "ledger"

    def writers_end(self, ledger: str, table: str, *, wait_seconds: float) -> bool:
        self.asked.append(("writers", ledger, table, wait_seconds))
        return self.ends

    def read_source_rows(self, ledger: str, section: Any, keys: set[str]) -> Any:
        self.asked.append(("rows", ledger, section.table, keys))
        return {"ev-1": (ROW,)}

    def judged_parts(self, engine: str, name: str, *, planned_at: int) -> Any:
        self.asked.append(("judged", engine, name, planned_at))
        return {}

    def last_cuts_with_offsets_unread(
        self, engine: str, name: str, topics: Any, *, log_starts: Any, planned_at: int
    ) -> OffsetsUnread:
        assert (set(log_starts.values()) <= {0, 9}, planned_at) == (True, PLANNED_AT)
        self.asked.append(("unread", engine, name, sorted(topics)))
        return UNREAD

    def unreadable_since(self, engine: str, contract: Contract, items: Any, unread: OffsetsUnread) -> dict[UUID, int]:
        assert (engine, contract.name, unread) == ("engine", contract_of().name, UNREAD)
        return {item.break_id: 3 for item in items}


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    return Reading(monkeypatch)


def proven(
    *items: Any, progress: tuple[str, ...] = (), reversal: str | None = None, rules: bool = True
) -> tuple[Any, list[Any]]:
    """The proof, and the steps that were told."""
    steps: list[Any] = []
    compensation = SimpleNamespace(reversal=reversal) if rules else None
    work: Any = SimpleNamespace(
        connections=SimpleNamespace(kafka="kafka", ledger_dsn="dsn"),
        contract=contract_of().model_copy(update={"compensation": compensation}),
        engine="engine",
        plan=SimpleNamespace(cut_n=PLANNED_AT),
        taken_back={ITEM.action_id: frozenset({"x"})},
        on_progress=lambda step, figures: steps.append((str(step), figures)),
    )
    return prove_actions(work, items, actions={}, progress_topics=progress), steps


def test_all_is_read_behind_the_progress_and_the_losses_last(reading: Reading) -> None:
    proof, steps = proven(ITEM, progress=("progress",))
    name, table = contract_of().name, contract_of().ledger.table
    assert reading.asked == [
        ("settle", "kafka", ["payouts", "progress"], 10),
        ("progress", (ITEM,), {}, (PART,)),
        ("read", "kafka", [PART]),
        ("ledger", "dsn"),
        ("rows", "ledger", table, {"ev-1"}),
        ("judged", "engine", name, PLANNED_AT),
        ("unread", "engine", name, ["billing.payouts"]),
    ]
    assert steps == [("progress_read", {"published": 1}), ("proved", {})]
    assert (proof.held, proof.rows, proof.offsets_unread) == (frozenset({"payouts"}), {"ev-1": (ROW,)}, UNREAD)
    assert proof.unreadable_since == {ITEM.break_id: 3}
    assert (proof.progress.published, proof.taken_back) == (PUBLISHED, {ITEM.action_id: frozenset({"x"})})
    assert not proof.writers_open


def test_a_rehearsal_asks_no_progress_topic(reading: Reading) -> None:
    proof, steps = proven(ITEM)
    assert (proof.progress, steps) == (ProgressProof(), [("proved", {})])
    assert reading.asked[0] == ("settle", "kafka", ["payouts"], 10)


@pytest.mark.parametrize(("ends", "still_open"), [(True, False), (False, True)])
def test_before_a_post_the_ledgers_writers_are_waited_for(reading: Reading, ends: bool, still_open: bool) -> None:
    reading.ends = ends
    proof, _ = proven(ITEM, POSTED)
    assert ("writers", "ledger", contract_of().ledger.table, 10) in reading.asked
    assert proof.writers_open is still_open


def test_for_a_row_to_take_back_no_log_is_read_and_each_writer_waited_for(reading: Reading) -> None:
    reading.ends = False
    proof, _ = proven(TAKEN_BACK)
    assert reading.asked[:2] == [("settle", "kafka", [], 10), ("read", "kafka", [])]
    assert "writers" in [asked[0] for asked in reading.asked]
    assert proof.writers_open


@pytest.mark.parametrize(
    ("rules", "reversal", "negated"),
    [(True, "negated", True), (True, "column", False), (True, None, False), (False, None, False)],
)
def test_an_event_is_taken_back_by_the_other_sign_only_where_the_contract_says_so(
    reading: Reading, rules: bool, reversal: str | None, negated: bool
) -> None:
    proof, _ = proven(ITEM, rules=rules, reversal=reversal)
    assert proof.negated is negated


# Which contract says where to look, and how an action is done.

POST = {"connection": "poster", "actions_table": "t.actions", "columns": {"id": "id"}, "rows": {"payout": [{}]}}
TRIGGER = {"connection": "airflow", "dags": {"phantom_in_topic": "by_hand"}}
UNDER = "the plan's"


def rules(**named: Any) -> CompensationRules:
    wanted = {"abort_hanging_transactions": True, "max_amount_minor": {"EUR": 1}} | named
    known = wanted | {"post": LedgerPost.model_validate(named["post"])} if named.get("post") else wanted
    known = known | {"trigger": DagTrigger.model_validate(named["trigger"])} if named.get("trigger") else known
    return CompensationRules.model_construct(**cast(Any, known))


def under(compensation: CompensationRules | None) -> Contract:
    return contract_of().model_copy(update={"compensation": compensation})


class Contracts:
    """Those that the store has: the plan's own, and the one of its cut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.of_plan: Contract | None = None
        self.of_cut: Contract | None = None
        monkeypatch.setattr(prove_repairs, "contract_of_fingerprint", self.contract_of_fingerprint)
        monkeypatch.setattr(prove_repairs, "contract_begun_under", self.contract_begun_under)

    def contract_of_fingerprint(self, engine: str, name: str, fingerprint: str) -> Contract | None:
        assert (engine, name, fingerprint) == ("engine", contract_of().name, UNDER)
        return self.of_plan

    def contract_begun_under(self, engine: str, name: str, fingerprint: str, *, cut_n: int) -> Contract | None:
        assert cut_n == PLANNED_AT
        return self.contract_of_fingerprint(engine, name, fingerprint) or self.of_cut


@pytest.fixture
def contracts(monkeypatch: pytest.MonkeyPatch) -> Contracts:
    return Contracts(monkeypatch)


ENGINE: Any = "engine"


def begun_plan(*kinds: RepairKind, fingerprint: str = UNDER) -> Any:
    items = tuple(replace(ITEM, kind=kind, action_id=UUID(int=n)) for n, kind in enumerate(kinds, start=1))
    return SimpleNamespace(items=items, cut_n=PLANNED_AT, contract_fingerprint=fingerprint)


@pytest.mark.parametrize(
    ("kind", "now", "by_now"),
    [
        (RepairKind.REPUBLISH, {}, True),
        (RepairKind.POST, {}, False),
        (RepairKind.POST, {"post": POST}, True),
        (RepairKind.COUNTERPOST, {"trigger": TRIGGER}, False),
        (RepairKind.TRIGGER, {}, False),
        (RepairKind.TRIGGER, {"trigger": TRIGGER}, True),
        (RepairKind.TRIGGER, {"post": POST}, False),
    ],
)
def test_where_the_contract_no_longer_says_how_the_plans_own_does_or_its_cuts(
    contracts: Contracts, kind: RepairKind, now: dict[str, Any], by_now: bool
) -> None:
    then, contract = rules(max_items=7), under(rules(**now))
    contracts.of_cut = under(then)
    for contracts.of_plan in (None, under(then)):
        found = contract_to_look_by(ENGINE, contract, begun_plan(kind)).compensation
        assert found == (contract.compensation if by_now else then)
        contracts.of_cut = under(rules(max_items=8)) if contracts.of_plan else contracts.of_cut


def test_a_contract_without_any_rules_is_read_as_the_plan_or_its_cut_had_it_if_that_is_there(
    contracts: Contracts,
) -> None:
    contract, plan = contract_of(), begun_plan(RepairKind.REPUBLISH)
    assert contract_to_look_by(ENGINE, contract, plan).compensation is None
    contracts.of_cut = under(rules(max_items=7))
    assert contract_to_look_by(ENGINE, contract, plan).compensation == rules(max_items=7)
    contracts.of_plan = under(rules(max_items=8))
    assert contract_to_look_by(ENGINE, contract, plan).compensation == rules(max_items=8)


def test_what_a_begun_plan_has_done_is_looked_for_as_json_whatever_the_topic_has_by_now(contracts: Contracts) -> None:
    """Such a contract allows no repair, so nothing more is written."""
    avro = contract_of(event={"format": "avro"}, kafka={"connection": "kafka", "schema_registry": "schemas"})
    for contracts.of_plan in (None, under(rules())):
        for kind in RepairKind:
            event = contract_to_look_by(ENGINE, avro, begun_plan(kind)).event
            is_ours = kind is not RepairKind.TRIGGER
            assert (event.format, event.registry) == (("json", None) if is_ours else ("avro", "schemas"))
            assert not is_ours or decoder_of(event).read(EVENT.value).match_key == ITEM.match_key


def test_what_a_begun_plan_has_done_is_looked_for_by_the_reversal_that_it_was_approved_under(
    contracts: Contracts,
) -> None:
    now = under(rules(reversal="header", max_items=9))
    plan = begun_plan(RepairKind.REVERSE)
    assert contract_to_look_by(ENGINE, now, plan) == now
    contracts.of_plan = under(rules(reversal="negated", max_items=8))
    assert contract_to_look_by(ENGINE, now, plan) == under(rules(reversal="negated", max_items=9))
    assert contract_to_look_by(ENGINE, now, begun_plan(RepairKind.REVERSE, fingerprint=now.fingerprint)) is now


@pytest.mark.parametrize(("kind", "table"), [(RepairKind.POST, "t.actions"), (RepairKind.REPUBLISH, "t.renamed")])
def test_what_a_begun_plan_has_posted_is_looked_for_in_the_table_that_it_began_with(
    contracts: Contracts, kind: RepairKind, table: str
) -> None:
    """Its action's row stood in the one of before, and the action was called refused."""
    now = under(rules(post=POST | {"actions_table": "t.renamed"}, max_items=9))
    contracts.of_plan = under(rules(post=POST, max_items=8))
    found = contract_to_look_by(ENGINE, now, begun_plan(kind))
    assert (found.actions_table, found.compensation and found.compensation.max_items) == (table, 9)


OTHERWISE = [
    ({"reversal": "negated"}, {"reversal": "header"}, ["reverse", "counterpost"]),
    ({"post": POST}, {"post": POST | {"columns": {"id": "event_id"}}}, ["post", "counterpost"]),
    ({"post": POST}, {"post": POST | {"rows": {"payout": [{"side": "credit"}]}}}, ["post", "counterpost"]),
    ({"post": POST}, {"post": POST | {"actions_table": "t.others"}}, ["post", "counterpost"]),
    ({"post": POST}, {}, ["post", "counterpost"]),
    ({"post": POST}, {"post": POST | {"connection": "renamed"}, "max_items": 2}, []),
    ({}, {"trigger": TRIGGER}, []),
    ({"trigger": TRIGGER}, {"trigger": TRIGGER | {"connection": "another"}}, ["trigger"]),
    ({"trigger": TRIGGER}, {"trigger": TRIGGER, "max_items": 2}, []),
]


@pytest.mark.parametrize(("then", "now", "stopped"), OTHERWISE)
def test_what_would_be_done_in_another_way_than_was_approved_is_told(
    contracts: Contracts, then: dict[str, Any], now: dict[str, Any], stopped: list[str]
) -> None:
    contracts.of_plan, contract, plan = under(rules(**then)), under(rules(**now)), begun_plan(*RepairKind)
    reasons = why_done_otherwise(ENGINE, contract, plan)
    assert [str(item.kind) for item in plan.items if item.action_id in reasons] == stopped
    assert why_done_otherwise(ENGINE, contract, begun_plan(*RepairKind, fingerprint=contract.fingerprint)) == {}


def with_columns(**columns: str) -> Contract:
    contract = under(rules(post=POST))
    ledger = contract.ledger.model_copy(update={"columns": contract.ledger.columns.model_copy(update=columns)})
    return contract.model_copy(update={"ledger": ledger})


@pytest.mark.parametrize(
    ("columns", "stopped"),
    [
        ({"action_id": "repaired_by"}, ["post", "counterpost"]),
        ({"reverses": "takes_back"}, ["counterpost"]),
        ({"occurred_at": "booked_at", "written_at": "booked_at"}, []),
    ],
)
def test_of_the_ledgers_columns_those_that_a_repair_writes_are_held_against_what_was_approved(
    contracts: Contracts, columns: dict[str, str], stopped: list[str]
) -> None:
    contracts.of_plan, plan = with_columns(), begun_plan(*RepairKind)
    reasons = why_done_otherwise(ENGINE, with_columns(**columns), plan)
    assert [str(item.kind) for item in plan.items if item.action_id in reasons] == stopped


def test_where_the_plans_own_contract_is_not_stored_nobody_knows_how_it_was_to_be_done(contracts: Contracts) -> None:
    reasons = why_done_otherwise(ENGINE, under(rules()), begun_plan(*RepairKind))
    assert [kind for kind in RepairKind if UUID(int=[*RepairKind].index(kind) + 1) in reasons] == [
        RepairKind.REVERSE,
        RepairKind.POST,
        RepairKind.COUNTERPOST,
    ]
    assert set(reasons.values()) == {
        "the contract has changed, and how its plan was to be done is not stored, readable or in it any more"
    }
