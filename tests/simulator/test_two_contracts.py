"""What one of two contracts over the same sides repairs, the other neither hands to a DAG nor gives up as well."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.plan import Plan, PlanStale
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.contract.contract import Contract
from tallystick.executor import draw_plan, execute_plan
from tallystick.executor.effects import trigger_dags
from tallystick.executor.effects.airflow_api import Started
from tallystick.model.open_item import ItemState, WriteOff
from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.standins import plan_functions, run_functions
from tests.simulator.world.config import Config
from tests.simulator.world.world import World

PUBLISHING = Config(direction="ledger_to_topic", producer_mode="plain", carrier_mode="at_least", contracts=2)
POSTING = Config(carrier_mode="at_least", posts="negated", contracts=2)
LOST = ("window", ("half_trade", 2, 7), ("trade", 1, 1), "window", "window")
DOUBLED = ("window", ("trade", 1, 5), "window", ("redeliver", 1, 5), "window")
NOT_BOOKED = ("window", "half_trade", "lose", "window", "window")
BOOKED_TWICE = ("window", "trade", ("redeliver", 1, 0), "window", "window")

pytestmark = pytest.mark.usefixtures("in_the_world")


class AirflowOfDags:
    """Starts whatever it is asked for, if that may start. started: ids of the runs."""

    def __init__(self) -> None:
        self.started: list[str] = []

    def start_once(
        self,
        dag_id: str,
        run_id: str,
        conf: Mapping[str, Any],
        *,
        asked_before: bool,
        may_start: Callable[[], str | None],
    ) -> Started:
        if reason := may_start():
            return Started(refused=reason)
        self.started.append(run_id)
        return Started()


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> AirflowOfDags:
    found = AirflowOfDags()
    monkeypatch.setattr(World, "airflow", "an address", raising=False)
    monkeypatch.setattr(trigger_dags, "open_airflow", lambda account: nullcontext(found))
    return found


def handing_over(contract: Contract, name: str) -> Contract:
    """The same books under that name, which hand what the contract repairs to a DAG."""
    assert contract.compensation is not None
    document = contract.model_dump(mode="json", exclude_defaults=True) | {"contract": name}
    rules = document["compensation"]
    document["compensation"] = {
        "trigger": {"connection": "airflow", "dags": dict.fromkeys(rules["classes"], "by_hand")},
        "max_amount_minor": rules["max_amount_minor"],
        "four_eyes_above_minor": rules["four_eyes_above_minor"],
    }
    return Contract.model_validate(document)


def plan_of(world: World, contract: Contract) -> Plan:
    newest = run_functions.last_cut(world.store, contract.name)
    assert newest is not None
    connections: Any = world
    plan = draw_plan.draw_plan(world.store, contract, connections, cut_n=newest.n, dry_run=False)
    plan_functions.save_plan(world.store, plan, requested_by="asker")
    return plan


def start(world: World, contract: Contract, plan: Plan) -> list[tuple[str, str]]:
    """Fate and reason of each."""
    connections: Any = world
    done = execute_plan.execute_plan(
        world.store,
        contract,
        connections,
        plan,
        approved_hash=plan.plan_hash,
        approver="carol",
        environment="world",
    )
    return [(str(one.fate), one.reason) for one in done.outcomes]


@pytest.mark.parametrize("by_dag_first", [True, False])
@pytest.mark.parametrize(
    ("config", "steps"),
    [(PUBLISHING, LOST), (PUBLISHING, DOUBLED), (POSTING, NOT_BOOKED), (POSTING, BOOKED_TWICE)],
    ids=["an event is missing", "an event is too many", "a row is missing", "a row is too many"],
)
def test_what_one_contract_repairs_no_other_one_hands_to_a_dag_nor_the_other_way_round(
    config: Config, steps: tuple[Any, ...], by_dag_first: bool, airflow: AirflowOfDags
) -> None:
    play = Play(Schedule(config._replace(carrier_mode="at_most" if steps in (LOST, NOT_BOOKED) else "at_least"), ()))
    own = play.world.contracts[0]
    dag = handing_over(own, play.world.contracts[1].name)
    play.world.contracts = (own, dag)
    for step in steps_of(*steps):
        play.do(step)
    plans = [(one, plan_of(play.world, one)) for one in ((dag, own) if by_dag_first else (own, dag))]
    (item,) = plans[0][1].items
    assert [one.match_key for one in plans[1][1].items] == [item.match_key]
    ((fate, _),) = start(play.world, *plans[0])
    assert fate == ("done" if by_dag_first else "published")
    told = f"plan {plans[0][1].plan_id} of {plans[0][0].name} has done the same, or is doing it"
    assert start(play.world, *plans[1]) == [("refused", told)]
    assert [UUID(one) for one in airflow.started] == ([item.action_id] if by_dag_first else [])


@pytest.mark.parametrize(
    ("config", "steps", "known"),
    [(PUBLISHING, LOST, True), (PUBLISHING, DOUBLED, True), (POSTING, NOT_BOOKED, False)],
    ids=["an event is missing", "an event is too many", "a row is missing, of which no cut says where"],
)
def test_what_another_contract_has_just_done_to_the_topic_is_not_given_up_before_a_run_has_looked(
    config: Config, steps: tuple[Any, ...], known: bool
) -> None:
    """It was written off, and paid by hand beside that."""
    play = Play(Schedule(config._replace(carrier_mode="at_most" if steps in (LOST, NOT_BOOKED) else "at_least"), ()))
    own, other = play.world.contracts
    for step in steps_of(*steps):
        play.do(step)
    (found,) = [one.item_break for one in run_functions.outstanding_breaks(play.world.store, own.name)]
    plan = plan_of(play.world, other)
    play.world.clock.go(1)
    assert [fate for fate, _ in start(play.world, other, plan)] == ["published"]
    off = WriteOff(by="dan", reason="paid by hand", at_utc=play.world.clock.now)
    told = f"plan {plan.plan_id} of contract {other.name} repaired it at .*, and no cut made since has read"
    with pytest.raises(WriteOffRefused, match=told) if known else nullcontext():
        plan_functions.write_off_break(play.world.store, own.name, str(found.break_id), off)
    play.product.window()
    assert run_functions.outstanding_breaks(play.world.store, own.name) == ()


def test_what_another_contract_gave_to_a_dag_is_given_up_once_that_ones_break_is_over_and_a_cut_was_made_since(
    airflow: AirflowOfDags,
) -> None:
    play = Play(Schedule(PUBLISHING._replace(carrier_mode="at_most"), ()))
    own, store = play.world.contracts[0], play.world.store
    dag = handing_over(own, play.world.contracts[1].name)
    play.world.contracts = (own, dag)
    for step in steps_of(*LOST):
        play.do(step)
    (found,) = [one.item_break for one in run_functions.outstanding_breaks(store, own.name)]
    plan = plan_of(play.world, dag)
    play.world.clock.go(1)
    assert [fate for fate, _ in start(play.world, dag, plan)] == ["done"]

    def give_up() -> None:
        off = WriteOff(by="dan", reason="paid by hand", at_utc=play.world.clock.now)
        plan_functions.write_off_break(store, own.name, str(found.break_id), off)

    play.product.window()
    with pytest.raises(WriteOffRefused, match="nobody has seen its run"):
        give_up()
    (item,) = [one for one in store.of(dag.name).newest() if one.break_id == plan.items[0].break_id]
    newest = max(store.of(dag.name).verdicts)
    store.insert_items(dag.name, newest, 1, [replace(item, state=ItemState.CLEARED)])
    store.of(own.name).cuts[newest].cut = replace(store.of(own.name).cuts[newest].cut, marked_at_utc=item.due_utc)
    with pytest.raises(WriteOffRefused, match="when its own break was over, and no cut made since has read"):
        give_up()
    play.product.window()
    newest += 1
    read = store.of(own.name).cuts[newest].cut
    ledger = read.ledger_slice
    held = replace(ledger, mark=ledger.position_end + 1)
    for unread in (replace(read, by_time=True), replace(read, ledger_slice=held)):
        store.of(own.name).cuts[newest].cut = unread
        with pytest.raises(WriteOffRefused, match="no cut made since has read all of what that changes"):
            give_up()
    store.of(own.name).cuts[newest].cut = read
    give_up()


def test_what_another_contract_has_done_about_another_event_hinders_no_write_off() -> None:
    play = Play(Schedule(PUBLISHING._replace(carrier_mode="at_most"), ()))
    own, other = play.world.contracts
    assert other.compensation is not None
    one_only = other.model_copy(update={"compensation": other.compensation.model_copy(update={"max_items": 1})})
    play.world.contracts = (own, one_only)
    for step in steps_of("window", ("half_trade", 2, 7), ("half_trade", 1, 9), "window", "window"):
        play.do(step)
    plan = plan_of(play.world, one_only)
    (repaired,) = plan.items
    play.world.clock.go(1)
    assert [fate for fate, _ in start(play.world, one_only, plan)] == ["published"]
    outstanding = [one.item_break for one in run_functions.outstanding_breaks(play.world.store, own.name)]
    (another,) = [one for one in outstanding if one.match_key != repaired.match_key]
    off = WriteOff(by="dan", reason="paid by hand", at_utc=play.world.clock.now)
    plan_functions.write_off_break(play.world.store, own.name, str(another.break_id), off)
    left = [one.item_break.match_key for one in run_functions.outstanding_breaks(play.world.store, own.name)]
    assert left == [repaired.match_key]


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_equal_rows_of_which_each_contract_calls_another_one_too_many_one_is_taken_back(first: int) -> None:
    """One was updated after one contract had read it and before the other one did."""
    play = Play(Schedule(POSTING._replace(slice_by="xmin", partitions=2, carrier_mode="at_most"), ()))
    for step in steps_of(
        *("window", ("half_trade", 3, 1), "window", "window", ("trade", 0, 2), ("by_hand", 3, 6)),
        *(("touch", 4, 1, 15), ("cluster_down", 0, 0, 37), "window", "cluster_down", "window"),
    ):
        play.do(step)
    one, other = play.world.contracts[first], play.world.contracts[1 - first]
    plans = [plan_of(play.world, contract) for contract in (one, other)]
    places = [[item.reverses for item in plan.items if item.match_key == "ev-1-payout"] for plan in plans]
    assert sorted(places) == [["ledger:1"], ["ledger:2"]]
    play.world.clock.go(1)
    assert "published" in [fate for fate, _ in start(play.world, one, plans[0])]
    with pytest.raises(PlanStale):
        start(play.world, other, plans[1])
    for _ in range(2):
        assert "ev-1-payout" not in [item.match_key for item in plan_of(play.world, other).items]
        play.product.window()
    assert sum(row.nets for row in play.world.truth.rows_of("ev-1-payout")) == 1
    left = [found.item_break for found in run_functions.outstanding_breaks(play.world.store, other.name)]
    (stands,) = [found for found in left if found.match_key == "ev-1-payout"]
    off = WriteOff(by="dan", reason="taken back by the other contract", at_utc=play.world.clock.now)
    plan_functions.write_off_break(play.world.store, other.name, str(stands.break_id), off)
