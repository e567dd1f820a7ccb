"""The product's own store on PostgreSQL, brought to do what a step of the model does to the model's."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import Engine, text

from tallystick.compensation.kill_switch import SwitchSetting
from tallystick.compensation.plan import PlanStale
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.executor.effects.publish_events import transactional_id_of
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.item_reason import read_reason
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem, WriteOff
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.plans import claim_store, plan_store, reopen_store, switch_store
from tallystick.store.plans.plan_store import PROGRESS_END, PROGRESS_FROM, PROGRESS_TOPIC_ID, StoredAction
from tallystick.store.runs.cut_store import CutAlreadyOpen, claim_attempt, save_cut
from tallystick.store.runs.run_store import commit_run, list_runs
from tallystick.store.runs.unread_store import last_cuts_with_offsets_unread

from .calls import Call
from .scene import CONTRACT_NAME, FIRST_CUT, NOON, TOPIC, Scene, run_of
from .walls import ENVIRONMENT
from .world import Store, World


class RealStore:
    """words: of the start in each slot, by which the store knows its claims."""

    CALLS: Mapping[str, str] = MappingProxyType(
        {
            "open_actions": "_open_actions",
            "outstanding_breaks": "_outstanding",
            "outstanding_among": "_outstanding",
            "list_runs": "_list_runs",
            "last_cuts_with_offsets_unread": "_lost_at",
            "read_switch": "_read_switch",
            "judged_parts": "_judged_parts",
            "published_behind": "_published_behind",
            "held_among": "_held_among",
            "claim_actions": "_claim_actions",
            "record_done": "_record_done",
            "record_refusal": "_record_refusal",
            "record_waiting": "_record_waiting",
            "append_audit publishing": "_audit_publishing",
        }
    )
    """By the call's name; the others are no store's."""

    def __init__(self, engine: Engine, scene: Scene) -> None:
        self.engine, self.scene = engine, scene
        self.words: dict[int, str] = {}
        self._judged = 0
        for n in range(FIRST_CUT):
            self._commit(n, end=0)
        breaks = tuple(one.item_break for one in scene.breaks)
        items = tuple(self._item(n, ItemState.BROKEN) for n in range(scene.items))
        self._commit(FIRST_CUT, end=0, breaks=breaks, items=items)
        self._save_plan(FIRST_CUT)

    def begin(self, number: int) -> None:
        self.words[number] = str(uuid.uuid4())

    def call(self, number: int, call: Call) -> Any:
        """What the product's function gives, in the model's words; PlanStale by its name. None: it is no store's."""
        return getattr(self, self.CALLS[call.name])(number, *call.arguments) if call.name in self.CALLS else None

    def step_of_others(self, step: str, before: World, after: World) -> None:
        """What the step's name says."""
        ends = {
            "reconciliation: makes a cut": lambda: self._save_cut(after.store.newest + 1, end=after.store.open_cut),
            "reconciliation: commits its verdict": lambda: self._judge(before.store, after.store),
            "person: stops all compensations": lambda: self._turn(stopped=True),
            "person: lets compensations act": lambda: self._turn(stopped=False),
        }
        if step in ends:
            ends[step]()
        elif step.startswith("person: writes break"):
            assert self.write_off(int(step.split()[3]))
        elif step.startswith("person: reopens"):
            action_id = self.scene.action_ids[int(step.rsplit(maxsplit=1)[-1])]
            reopen_store.reopen_action(self.engine, CONTRACT_NAME, action_id, by="eve", reason="not done")

    def write_off(self, n: int) -> bool:
        """Whether the store lets a person give this break up."""
        break_id = self.scene.breaks[n].item_break.break_id
        try:
            write_off_break(self.engine, CONTRACT_NAME, str(break_id), WriteOff(by="eve", reason="lost", at_utc=NOON))
        except (WriteOffRefused, CutAlreadyOpen):
            return False
        return True

    def actions(self) -> dict[UUID, StoredAction]:
        with self.engine.connect() as connection:
            return claim_store._stored(connection, self.scene.action_ids)

    def broken(self) -> tuple[int, ...]:
        return self._outstanding(0, tuple(range(self.scene.items)))

    def held(self, number: int) -> tuple[int, ...]:
        return self._held_among(number, tuple(range(self.scene.items)))

    def _open_actions(self, _number: int) -> Any:
        return {
            one: (found.state, found.plan_id)
            for one, found in plan_store.open_actions(self.engine, CONTRACT_NAME).items()
        }

    def _outstanding(self, _number: int, asked: Iterable[int]) -> tuple[int, ...]:
        ids = {self.scene.breaks[n].item_break.break_id: n for n in asked}
        found = claim_store.outstanding_among(self.engine, CONTRACT_NAME, ids)
        return tuple(sorted(ids[one] for one in found))

    def _list_runs(self, _number: int) -> tuple[int, bool]:
        (newest,) = list_runs(self.engine, CONTRACT_NAME, limit=1)
        return newest.cut_n, any(one.doubt is Doubt.LOG_EXPIRED for one in newest.doubts)

    def _lost_at(self, _number: int) -> int:
        return last_cuts_with_offsets_unread(self.engine, CONTRACT_NAME, (TOPIC,)).at

    def _read_switch(self, _number: int) -> bool:
        return any(one is not None and one.stopped for one in switch_store.read_switch(self.engine, CONTRACT_NAME))

    def _judged_parts(self, _number: int) -> int:
        found = claim_store.judged_parts(self.engine, CONTRACT_NAME, planned_at=FIRST_CUT)
        return found[TopicPartition(topic=TOPIC, partition=0)].kafka_offset_end

    def _published_behind(self, _number: int, plans: tuple[int, ...]) -> Any:
        found = plan_store.published_behind(self.engine, [self.scene.plans[n].plan_id for n in plans])
        return tuple(sorted((self.scene.place_of_action[one], ends[TOPIC]["0"]) for one, ends in found.items()))

    def _held_among(self, number: int, asked: Iterable[int]) -> tuple[int, ...]:
        found = claim_store.held_among(self.engine, [self.scene.action_ids[n] for n in asked], self.words[number])
        return tuple(sorted(self.scene.place_of_action[one] for one in found))

    def _claim_actions(
        self, number: int, plan: int, asked: tuple[int, ...], made: int, starts_at: int, stopped: tuple[int, ...]
    ) -> Any:
        ids, named = self.scene.action_ids, transactional_id_of(CONTRACT_NAME, ENVIRONMENT)
        outcome = {PROGRESS_TOPIC_ID: str(made), PROGRESS_FROM: starts_at, "transactional_id": named}
        try:
            claims = claim_store.claim_actions(
                self.engine,
                self.scene.plans[plan],
                [self.scene.plans[plan].items[n] for n in asked],
                executor=self.words[number],
                outcome=outcome,
                allow=lambda *_: None,
                stopped=dict.fromkeys((ids[n] for n in stopped), "stopped"),
            )
        except PlanStale:
            return PlanStale.__name__
        gone = {one for one, why in claims.unclaimed.items() if why == claim_store.NOT_OUTSTANDING}
        return self._numbers(claims.begun), self._numbers(gone)

    def _record_done(self, _number: int, n: int, by_us: bool, reopened: int) -> None:
        action_id = self.scene.action_ids[n]
        plan_store.record_done(self.engine, action_id, outcome={"topic": TOPIC}, by_us=by_us, reopened=reopened)

    def _record_refusal(self, number: int, n: int, _by_its_word: bool) -> bool:
        action_id, word = self.scene.action_ids[n], self.words[number]
        return plan_store.record_refusal(self.engine, action_id, executor=word, outcome={"reason": "refused"})

    def _record_waiting(self, number: int, n: int, seen: tuple[int, int] | None) -> bool:
        kept = {PROGRESS_TOPIC_ID: str(seen[0]), PROGRESS_END: seen[1]} if seen else {}
        action_id, word = self.scene.action_ids[n], self.words[number]
        return plan_store.record_waiting(self.engine, action_id, executor=word, outcome={"reason": "look"} | kept)

    def _audit_publishing(self, _number: int, plan: int, about: tuple[int, ...], end: int) -> None:
        plan_store.append_audit(
            self.engine,
            CONTRACT_NAME,
            plan_id=self.scene.plans[plan].plan_id,
            actor="alice",
            event=plan_store.PUBLISHING,
            detail={"actions": [str(self.scene.action_ids[n]) for n in about], "ends": {TOPIC: {"0": end}}},
        )

    def _numbers(self, action_ids: Iterable[UUID]) -> tuple[int, ...]:
        return tuple(sorted(self.scene.place_of_action[one] for one in action_ids))

    def _turn(self, *, stopped: bool) -> None:
        setting = SwitchSetting(contract=None, stopped=stopped, by="eve", because="model", at_utc=NOON)
        switch_store.set_switch(self.engine, setting)

    def _judge(self, before: Store, after: Store) -> None:
        cleared = [n for n, was in enumerate(before.breaks) if was == "broken" and after.breaks[n] == "cleared"]
        doubts = (DoubtFound(doubt=Doubt.LOG_EXPIRED, sentence=""),) if after.lost_at == after.newest else ()
        items = tuple(self._item(n, ItemState.CLEARED) for n in cleared)
        result = replace(run_of(after.newest).result, items=items, doubts=doubts, digest=f"digest-{after.newest}")
        commit_run(self.engine, result, attempt=claim_attempt(self.engine, CONTRACT_NAME, after.newest), alerts=())
        self._save_plan(after.newest)

    def _save_plan(self, n: int) -> None:
        if plan := self.scene.plans.get(n):
            plan_store.save_plan(self.engine, plan, requested_by="bob")

    def _commit(self, n: int, *, end: int, breaks: tuple[Any, ...] = (), items: tuple[OpenItem, ...] = ()) -> None:
        self._save_cut(n, end=end)
        result = replace(run_of(n).result, breaks=breaks, items=items, digest=f"digest-{n}")
        commit_run(self.engine, result, attempt=claim_attempt(self.engine, CONTRACT_NAME, n), alerts=())

    def _save_cut(self, n: int, *, end: int) -> None:
        save_cut(self.engine, self.scene.contract, self._cut(n, end=end), scheduler_run_id=f"run-{n}")

    def _cut(self, n: int, *, end: int) -> Cut:
        start, self._judged = self._judged, end
        inside = OffsetRange(topic=TOPIC, partition=0, kafka_offset_start=start, kafka_offset_end=end)
        part = PartitionSnapshot(
            topic=TOPIC, partition=0, topic_id="0", leader_epoch=0, log_start=0, lso=end, high_watermark=end
        )
        return replace(
            run_of(n).cut,
            marked_at_utc=self._clock(),
            topic_slices=(TopicSlice(offsets=inside, snapshot=part, mark=end, expired=0),),
        )

    def _clock(self) -> datetime:
        """The store's, by which it holds what was done against what a cut has seen."""
        with self.engine.connect() as connection:
            now: datetime = connection.scalar(text("select clock_timestamp()"))
        return now

    def _item(self, n: int, state: ItemState) -> OpenItem:
        found = self.scene.breaks[n].item_break
        return OpenItem(
            item_id=f"ledger:row-{found.match_key}",
            side=ItemSide.LEDGER,
            match_key=found.match_key,
            transaction_key=found.transaction_key,
            leg=found.leg,
            amount_minor=found.amount_minor,
            currency=found.currency,
            first_seen_cut=FIRST_CUT,
            first_seen_utc=NOON,
            due_utc=NOON,
            state=state,
            reason=read_reason("no event"),
            break_id=found.break_id,
            found_as=found.break_class,
            cleared_by="the event came" if state is ItemState.CLEARED else "",
        )
