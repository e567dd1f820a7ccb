"""What a plan is drawn from: each answer of the store counts, about this contract and the cut that is asked for."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.plan import Candidate, CurrentRow, DailyUsage, OffsetsUnread, Plan
from tallystick.contract.contract import Contract
from tallystick.executor import draw_plan
from tallystick.executor.draw_plan import endable_transactions, unreadable_since, why_not_any_more
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import TopicPartition
from tallystick.model.stored_run import StoredRun
from tallystick.store.plans.claim_store import NOT_OUTSTANDING
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.unit.compensation.abort_plans import ABORTS, AROUND
from tests.unit.compensation.plans import NOON, candidate, contract, row, run

CUT, NEWEST = 5, 7
NOTHING = ClusterState()


class Store:
    """The answers of a store about the books of payouts, whose newest run has judged cut 7."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[Candidate] = [candidate("a"), candidate("b")]
        self.runs: dict[int, StoredRun] = {CUT: run()}
        self.around = {CUT: NOTHING, NEWEST: NOTHING}
        self.newest_doubts: tuple[DoubtFound, ...] = ()
        self.taken: dict[UUID, StoredAction] = {}
        self.spent: dict[UUID, DailyUsage] = {}
        self.lost_at = self.unread_at = -1
        self.read_whole: dict[int, int] = {}
        self.before_rows: dict[int, int] = {}
        self.rows = {"a": (row("a"),), "b": (row("b"),)}
        self.keys_read: list[set[str]] = []
        self.lonely: dict[str, BreakClass] = {}
        for name in (
            "require_same_books",
            "open_actions",
            "spent_today",
            "read_run",
            "list_runs",
            "outstanding_breaks",
            "last_cuts_with_offsets_unread",
            "last_cuts_read_whole",
            "last_cuts_before_rows",
            "last_cut_with_rows_unread",
            "keys_whose_copies_differ",
            "transactions_with_lonely_copies",
            "cluster_state_document",
            "open_ledger",
            "read_source_rows",
        ):
            monkeypatch.setattr(draw_plan, name, getattr(self, name))

    def require_same_books(self, engine: str, contract: Contract) -> None:
        assert (engine, contract.name) == ("engine", "payouts")

    def open_actions(self, engine: str, name: str) -> dict[UUID, StoredAction]:
        assert (engine, name) == ("engine", "payouts")
        return self.taken

    def spent_today(self, engine: str, name: str, *, but: Collection[UUID] = ()) -> DailyUsage:
        assert (engine, name) == ("engine", "payouts")
        return DailyUsage(items=sum(usage.items for action_id, usage in self.spent.items() if action_id not in but))

    def read_run(self, engine: str, name: str, cut_n: int) -> StoredRun | None:
        assert (engine, name) == ("engine", "payouts")
        return self.runs.get(cut_n)

    def list_runs(self, engine: str, name: str, *, limit: int) -> tuple[Any, ...]:
        assert (engine, name) == ("engine", "payouts")
        older = SimpleNamespace(doubts=(), cut_n=CUT)
        return (SimpleNamespace(doubts=self.newest_doubts, cut_n=NEWEST), older)[:limit]

    def outstanding_breaks(self, engine: str, name: str) -> tuple[Any, ...]:
        assert (engine, name) == ("engine", "payouts")
        return tuple(one.outstanding for one in self.found)

    def last_cuts_with_offsets_unread(self, engine: str, name: str, topics: Collection[str]) -> OffsetsUnread:
        assert (engine, name, set(topics)) == ("engine", "payouts", {"billing.payouts"})
        return OffsetsUnread(at=self.lost_at)

    def last_cuts_read_whole(
        self, engine: str, name: str, asked: Collection[tuple[TopicPartition, int]]
    ) -> dict[tuple[TopicPartition, int], int]:
        assert (engine, name) == ("engine", "payouts")
        return {(part, before): self.read_whole[part.partition] for part, before in asked}

    def last_cuts_before_rows(self, engine: str, contract: Contract, cuts: Collection[int]) -> dict[int, int]:
        assert (engine, contract.name) == ("engine", "payouts")
        return {cut_n: self.before_rows[cut_n] for cut_n in cuts}

    def keys_whose_copies_differ(self, engine: str, name: str, keys: Collection[str]) -> dict[str, BreakClass]:
        return {}

    def transactions_with_lonely_copies(self, engine: str, name: str, keys: Collection[str]) -> dict[str, BreakClass]:
        assert (engine, name) == ("engine", "payouts")
        return {key: one for key, one in self.lonely.items() if key in keys}

    def last_cut_with_rows_unread(self, engine: str, name: str) -> int:
        assert (engine, name) == ("engine", "payouts")
        return self.unread_at

    def cluster_state_document(self, engine: str, name: str, cut_n: int) -> Any:
        assert (engine, name) == ("engine", "payouts")
        return CLUSTER_STATE.dump_python(self.around[cut_n], mode="json")

    @contextmanager
    def open_ledger(self, dsn: str) -> Iterator[str]:
        assert dsn == "dsn"
        yield "ledger"

    def read_source_rows(self, ledger: str, section: Any, keys: set[str]) -> dict[str, tuple[CurrentRow, ...]]:
        assert (ledger, section.table) == ("ledger", "billing.payout")
        self.keys_read.append(keys)
        return {key: self.rows[key] for key in keys}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


CONNECTIONS: Any = SimpleNamespace(ledger_dsn="dsn")
ENGINE: Any = "engine"


def drawn(**rules: Any) -> Plan:
    return draw_plan.draw_plan(ENGINE, contract(**rules), CONNECTIONS, cut_n=CUT)


def reasons(plan: Plan) -> dict[str, str]:
    return {one.match_key: one.reason for one in plan.left_out}


def action_of(plan: Plan, n: int, state: ActionState, *, plan_id: UUID | None = None) -> dict[UUID, StoredAction]:
    action = plan.actions[n]
    stored = StoredAction(
        action_id=action.action_id,
        break_id=getattr(action, "break_id", None),
        plan_id=plan_id or plan.plan_id,
        state=state,
        outcome={},
        recorded_at=NOON,
    )
    return {action.action_id: stored}


def test_a_plan_is_made_of_what_is_outstanding_and_of_the_rows_of_its_keys(store: Store) -> None:
    plan = drawn()
    assert ([item.match_key for item in plan.items], plan.left_out, plan.dry_run) == (["a", "b"], (), True)
    assert store.keys_read == [{"a", "b"}]


@pytest.mark.parametrize(("key", "planned"), [("a", ["b"]), ("c", ["a", "b"])])
def test_what_stands_alone_with_the_same_transaction_keeps_a_missing_one_from_being_published(
    store: Store, key: str, planned: list[str]
) -> None:
    store.lonely = {f"transaction-{key}": BreakClass.PHANTOM_IN_TOPIC}
    assert [item.match_key for item in drawn().items] == planned


def test_rows_are_read_of_those_breaks_only_that_the_contract_repairs(store: Store) -> None:
    drawn(classes=["missing_in_topic_aborted_only"])
    assert store.keys_read == []


def test_what_other_plans_have_spent_today_counts_against_the_days_cap(store: Store) -> None:
    assert reasons(drawn(max_items_per_day=2)) == {}
    store.spent = {UUID(int=1): DailyUsage(items=1)}
    assert reasons(drawn(max_items_per_day=2)) == {"b": "over the day's cap on the number of events"}


def test_what_another_plan_has_begun_is_left_to_it(store: Store) -> None:
    store.taken = action_of(drawn(), 0, ActionState.DONE)
    assert reasons(drawn()) == {"a": "another plan has it"}


def test_a_doubt_of_the_newest_run_empties_the_plan_of_an_older_cut(store: Store) -> None:
    store.newest_doubts = (DoubtFound(doubt=Doubt.LOG_TRUNCATED, sentence=""),)
    unclean = "the newest run's evidence is not clean: log_truncated"
    assert reasons(drawn()) == {"a": unclean, "b": unclean}


def test_what_a_later_cut_has_lost_unread_may_have_been_the_event(store: Store) -> None:
    store.lost_at = CUT
    assert reasons(drawn()) == {}
    store.lost_at = CUT + 1
    assert set(reasons(drawn())) == {"a", "b"}


POSTS: dict[str, Any] = {
    "classes": ["missing_in_ledger"],
    "post": {
        "connection": "poster",
        "actions_table": "ours.action",
        "columns": {"event_id": "event_id"},
        "rows": {"payout": [{}]},
    },
}


def posting() -> Contract:
    rules = contract().model_dump(mode="json", exclude_defaults=True) | {"direction": "topic_to_ledger"}
    rules["compensation"] = POSTS | {"max_items": 3, "max_amount_minor": {"EUR": 1000}}
    return Contract.model_validate(rules)


def test_what_a_later_cut_left_unread_of_the_ledger_may_have_been_the_row(store: Store) -> None:
    store.found = [candidate("a", break_class=BreakClass.MISSING_IN_LEDGER, at="topic:billing.payouts:0:3")]
    store.rows = {"a": ()}

    def planned() -> list[str]:
        plan = draw_plan.draw_plan(ENGINE, posting(), CONNECTIONS, cut_n=CUT)
        return [item.match_key for item in plan.items]

    assert planned() == ["a"]
    store.unread_at, store.read_whole = CUT + 1, {0: 0}
    assert planned() == []


@pytest.mark.parametrize("told", ["lost_at", "unread_at"])
@pytest.mark.parametrize(
    ("second", "whole", "planned"),
    [(0, {0: 3}, 1), (0, {0: 2}, 1), (0, {0: 1}, 0), (1, {0: 3, 1: 1}, 0), (1, {0: 3, 1: 2}, 1)],
)
def test_while_a_copys_partition_was_held_each_loss_since_counts(
    store: Store, told: str, second: int, whole: dict[int, int], planned: int
) -> None:
    """Of two copies either may have come first."""
    at = "topic:billing.payouts:{}:3"
    found = candidate("a", break_class=BreakClass.MISSING_IN_LEDGER, at=at.format(0), first_seen_cut=4)
    seen_by = ((at.format(0), 4), (at.format(second), 4))
    store.found = [replace(found, outstanding=replace(found.outstanding, seen_by=seen_by))]
    store.rows, store.read_whole = {"a": ()}, whole
    setattr(store, told, 1)
    assert len(draw_plan.draw_plan(ENGINE, posting(), CONNECTIONS, cut_n=CUT).items) == planned


@pytest.mark.parametrize(
    ("break_class", "at"),
    [
        (BreakClass.MISSING_IN_LEDGER, "topic:billing.payouts:0:3"),
        (BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, ""),
        (BreakClass.LOST_ACKNOWLEDGED_WRITE, ""),
    ],
)
@pytest.mark.parametrize(("unreadable_at", "told"), [(1, False), (2, True), (3, True)])
def test_what_the_log_has_lost_unread_since_a_plan_holds_back_what_is_old_enough_to_be_about_it(
    store: Store, break_class: BreakClass, at: str, unreadable_at: int, told: bool
) -> None:
    """Found by review: the executor refused each item of the topic, however young its break."""
    found = candidate("a", break_class=break_class, at=at, first_seen_cut=4)
    plan, item_break = drawn(), found.item_break
    store.found, store.read_whole, store.before_rows = [found], {0: 2}, {4: 2}
    (item,) = (replace(one, break_id=item_break.break_id) for one in plan.items[:1])

    def since(**at_topics: int) -> dict[UUID, int]:
        unread = OffsetsUnread(unreadable_at={f"billing.{name}": cut_n for name, cut_n in at_topics.items()})
        return unreadable_since(ENGINE, contract(), [item], unread)

    assert since(payouts=unreadable_at) == ({item.break_id: unreadable_at} if told else {})
    assert since(payouts=-1, fees=9) == {}
    on_both = [replace(item, topic=topic) for topic in ("billing.fees", "billing.payouts", "billing.fees")]
    unread = OffsetsUnread(unreadable_at={"billing.fees": 0, "billing.payouts": unreadable_at})
    told_of_both = {item.break_id: unreadable_at} if told else {}
    for some in (on_both, on_both[:2], on_both[1:]):
        assert unreadable_since(ENGINE, contract(), some, unread) == told_of_both
    store.found = []
    assert since(payouts=unreadable_at) == {item.break_id: unreadable_at}


# What hangs.


def test_a_transaction_that_the_newest_run_does_not_find_any_more_is_left_alone(store: Store) -> None:
    store.found, store.around = [], {CUT: AROUND, NEWEST: AROUND}
    assert len(drawn(**ABORTS).aborts) == 1
    store.around[NEWEST] = NOTHING
    assert list(reasons(drawn(**ABORTS)).values()) == ["the newest run does not find it any more"]


def test_people_are_asked_about_a_transaction_that_a_plan_of_this_run_may_end(store: Store) -> None:
    store.around = {CUT: AROUND, NEWEST: NOTHING}
    (item,) = endable_transactions(ENGINE, contract(**ABORTS), run())
    assert (item.place, item.age_seconds) == ("billing.payouts:0 at offset 20", 7_500)
    assert item == drawn_abort(store)


def drawn_abort(store: Store) -> Any:
    store.found, store.around = [], {CUT: AROUND, NEWEST: AROUND}
    (item,) = drawn(**ABORTS).aborts
    return item


def test_nobody_is_asked_about_a_transaction_that_may_not_be_ended(store: Store) -> None:
    store.around = {CUT: AROUND}
    assert endable_transactions(ENGINE, contract(), run()) == ()
    without_rules = contract().model_copy(update={"compensation": None})
    assert endable_transactions(ENGINE, without_rules, run()) == ()
    young = replace(AROUND.first_sights[0], first_seen_utc=NOON - timedelta(seconds=60))
    store.around = {CUT: replace(AROUND, first_sights=(young,))}
    assert endable_transactions(ENGINE, contract(**ABORTS), run()) == ()


# A plan that has begun.


def stopped(plan: Plan, begun: dict[UUID, StoredAction], **rules: Any) -> dict[UUID, str]:
    return why_not_any_more(ENGINE, contract(**rules), CONNECTIONS, plan, begun)


@pytest.mark.parametrize("state", [ActionState.EXECUTING, ActionState.DONE, ActionState.WAITING])
def test_nothing_is_stopped_while_all_would_be_planned_the_same(store: Store, state: ActionState) -> None:
    plan = drawn()
    assert stopped(plan, action_of(plan, 0, state)) == {}


def test_an_action_whose_break_is_cleared_is_stopped_unless_it_is_done_or_waits_for_a_person(store: Store) -> None:
    plan = drawn()
    one, other = (item.action_id for item in plan.items)
    store.found = []
    assert stopped(plan, action_of(plan, 0, ActionState.EXECUTING)) == dict.fromkeys((one, other), NOT_OUTSTANDING)
    assert stopped(plan, action_of(plan, 0, ActionState.DONE)) == {other: NOT_OUTSTANDING}
    assert stopped(plan, action_of(plan, 0, ActionState.WAITING)) == {other: NOT_OUTSTANDING}


def test_an_action_that_would_be_done_otherwise_or_not_at_all_says_which(store: Store) -> None:
    plan = drawn()
    one, other = (item.action_id for item in plan.items)
    store.found = [candidate("a", amount_minor=99), candidate("b")]
    store.rows = {"a": (row("a", amount_minor=99),), "b": ()}
    assert stopped(plan, {}) == {
        one: "it would be done otherwise by now: its row or the contract has changed",
        other: "the ledger has 0 rows of its key, expected 1",
    }


def test_what_another_plan_has_begun_meanwhile_is_stopped_here(store: Store) -> None:
    plan = drawn()
    others = action_of(plan, 0, ActionState.EXECUTING, plan_id=UUID(int=9))
    assert stopped(plan, others) == {plan.items[0].action_id: "another plan has it"}


def test_what_the_plan_itself_is_executing_is_not_counted_against_it_twice(store: Store) -> None:
    plan = drawn()
    begun = action_of(plan, 0, ActionState.EXECUTING)
    store.spent = {plan.items[0].action_id: DailyUsage(items=1)}
    assert stopped(plan, begun, max_items_per_day=2) == {}
    store.spent |= {UUID(int=9): DailyUsage(items=1)}
    over = "over the day's cap on the number of events"
    assert stopped(plan, begun, max_items_per_day=2) == {plan.items[1].action_id: over}


def test_breaks_that_came_since_take_no_room_from_a_plan_that_has_begun(store: Store) -> None:
    plan = drawn(max_items=2)
    store.found = [candidate("0", cut_n=1), *store.found]
    store.rows["0"] = (row("0"),)
    assert stopped(plan, {}, max_items=2) == {}
    assert [item.match_key for item in drawn(max_items=2).items] == ["0", "a"]


def test_a_transaction_that_is_not_found_any_more_is_stopped_by_its_place(store: Store) -> None:
    abort = drawn_abort(store)
    plan = drawn(**ABORTS)
    assert stopped(plan, {}, **ABORTS) == {}
    store.around[NEWEST] = NOTHING
    assert stopped(plan, {}, **ABORTS) == {abort.action_id: "the newest run does not find it any more"}
    store.around[CUT] = NOTHING
    assert stopped(plan, {}, **ABORTS) == {abort.action_id: NOT_OUTSTANDING}


def test_a_plan_takes_what_was_found_up_to_its_cut(store: Store) -> None:
    store.found = [candidate("a", cut_n=CUT), candidate("b", cut_n=CUT + 1)]
    assert [item.match_key for item in drawn().items] == ["a"]
