"""The product's own executor over the model's walls: what a start calls next, once it has got these answers.

Nothing of the protocol is written here. execute_plan runs as it is; each call that leaves the process is answered from
what the model has told this start so far, and the first one that has no answer yet is the start's next step. A start is
a function of its answers, so it can be put back to any state by running it again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import tenacity
from confluent_kafka import KafkaException
from sqlalchemy.exc import OperationalError

from tallystick.compensation.plan import Plan
from tallystick.executor import draw_plan, execute_plan, progress_proof, progress_topic, prove_repairs, publish_repairs
from tallystick.executor.effects import action_log, publish_events
from tallystick.executor.effects.step import no_progress
from tallystick.kafka_log import committed_records

from . import start, walls
from .calls import Call
from .frames import Constants
from .scene import NOON, Scene
from .start import Asks, Start
from .walls import CONNECTIONS, ENVIRONMENT, KEY, STORE, Walls

_WALLS = frozenset({walls.__file__, start.__file__})


def noon() -> Any:
    return NOON


class End(NamedTuple):
    """How a start ended. fates: what it told of each item, and whether a person has to look; raised: or its error."""

    fates: tuple[tuple[str, bool], ...] = ()
    raised: str = ""


@dataclass(frozen=True)
class Node:
    """Where a start stands. answers: one way in which it may have got there."""

    plan: int
    answers: tuple[tuple[Any, str], ...]
    call: Call | None
    end: End | None


class Product:
    """All starts of one scene, and where each stands. whole_history: tell two apart that stand alike, by how they came
    there.
    """

    def __init__(self, scene: Scene, *, whole_history: bool = False) -> None:
        self.scene, self.whole_history = scene, whole_history
        self.nodes: list[Node] = []
        self._numbers: dict[Any, int] = {}
        self._after: dict[tuple[int, Any, str], int] = {}
        self._first: dict[int, int] = {}
        named = {"contract": scene.contract, "store": STORE, "connections": CONNECTIONS, "now": noon, "key": KEY}
        named |= {"kafka": CONNECTIONS.kafka, "no_progress": no_progress}
        named |= {f"plan {n}": plan for n, plan in scene.plans.items()}
        self.constants, self.walls = Constants(named), Walls(scene)

    def first(self, plan: int) -> int:
        """A start that has called nothing yet."""
        if plan not in self._first:
            self._first[plan] = self._run(plan, ())
        return self._first[plan]

    def after(self, node: int, told: Any, raises: str) -> int:
        """Where it stands once it has got this answer."""
        known = self._after.get((node, told, raises))
        if known is None:
            before = self.nodes[node]
            known = self._run(before.plan, (*before.answers, (told, raises)))
            self._after[node, told, raises] = known
        return known

    @contextmanager
    def over_walls(self) -> Iterator[None]:
        """The product's names for what is outside of it, each in the module that calls it, are the walls'."""
        with ExitStack() as stack:
            for module, names in _OUTSIDE.items():
                for name in names:
                    stack.enter_context(patch.object(module, name, getattr(self.walls, name)))
            stack.enter_context(patch.object(publish_repairs, "_TOGETHER", self.scene.together))
            yield

    def _run(self, plan: int, answers: tuple[tuple[Any, str], ...]) -> int:
        start = self.walls.start = Start(answers, self.constants, self.whole_history, _WALLS)
        call, end, stands = None, None, None
        try:
            end = self._execute(self.scene.plans[plan])
        except Asks as asks:
            call, stands = asks.call, asks.stands
        assert start.asked == len(answers), "it did not call what it had called before"
        key = (plan, call, stands, end)
        if key not in self._numbers:
            self._numbers[key] = len(self.nodes)
            self.nodes.append(Node(plan, answers, call, end))
        return self._numbers[key]

    def _execute(self, plan: Plan) -> End:
        try:
            done = execute_plan.execute_plan(
                STORE,  # type: ignore[arg-type]
                self.scene.contract,
                CONNECTIONS,
                plan,
                approved_hash=plan.plan_hash,
                approver="alice",
                environment=ENVIRONMENT,
                now=noon,
            )
        except (RuntimeError, ConnectionError, KafkaException, OperationalError) as error:
            return End(raised=type(error).__name__)
        return End(fates=tuple((str(one.fate), one.waits) for one in done.outcomes))


_OUTSIDE: Mapping[Any, Sequence[str]] = {
    execute_plan: (
        "require_same_books",
        "read_plan",
        "requesters",
        "last_voided",
        "agreements",
        "open_actions",
        "spent_today",
        "keep_contract",
    ),
    draw_plan: (
        *("require_same_books", "open_actions", "spent_today", "read_run", "list_runs", "outstanding_breaks"),
        *("cluster_state_document", "last_cuts_with_offsets_unread", "last_cut_with_rows_unread"),
        *("open_ledger", "read_source_rows", "keys_whose_copies_differ", "last_cuts_read_whole"),
        "transactions_with_lonely_copies",
    ),
    publish_repairs: ("ensure_progress_topic", "read_executor_key", "uuid"),
    prove_repairs: (
        *("read_committed", "open_ledger", "read_source_rows", "judged_parts", "cleaned_partitions"),
        "last_cuts_with_offsets_unread",
    ),
    progress_proof: ("read_executor_key", "read_plan", "published_behind"),
    progress_topic: ("read_committed",),
    committed_records: ("open_admin", "read_topic_snapshot", "time"),
    action_log: (
        *("claim_actions", "held_among", "outstanding_among", "append_audit", "read_switch", "uuid"),
        *("record_done", "record_refusal", "record_waiting"),
    ),
    publish_events: ("Producer",),
    tenacity.nap: ("time",),
}
