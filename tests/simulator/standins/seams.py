"""The one place where stand-ins take the place of what is outside of the rules.

SIMULATED are the modules whose functions run for real. In each of them, every name that is bound to a function of the
store is bound to the stand-in of that name; what reaches a cluster, a ledger or Spark is named here module by module.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from types import FunctionType, ModuleType
from typing import Any

from tenacity import Retrying

from tallystick.contract.change import refuse_other_books
from tallystick.contract.contract import Contract
from tallystick.judging import canaries
from tallystick.ledger.key_index import index_folder
from tallystick.matching.scan_result import CanaryScan
from tallystick.pipeline.sources import Sources
from tests.simulator.standins import (
    alert_functions,
    cluster,
    executor,
    key_index,
    plan_functions,
    poster,
    run_functions,
    scan,
)
from tests.simulator.standins.frame import Inline
from tests.simulator.standins.kept_state import KeptClusterState
from tests.simulator.standins.quick_values import quick_values
from tests.simulator.standins.same import Same
from tests.simulator.world.broker import read_batches

STORE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for module in (run_functions, alert_functions, plan_functions)
    for name, function in vars(module).items()
    if isinstance(function, FunctionType) and function.__module__ == module.__name__ and not name.startswith("_")
}
"""By the name that both the real function and its stand-in have."""

SIMULATED = (
    "tallystick.pipeline.make_cut",
    "tallystick.pipeline.sources",
    "tallystick.pipeline.lookups",
    "tallystick.anomalies.notices.retention_overtakes",
    "tallystick.pipeline.investigate",
    "tallystick.pipeline.run_history",
    "tallystick.pipeline.read_cluster_state",
    "tallystick.pipeline.deliver_alerts",
    "tallystick.store.clock",
    "tallystick.store.runs.close_store",
    "tallystick.executor.draw_plan",
    "tallystick.executor.execute_plan",
    "tallystick.executor.publish_repairs",
    "tallystick.executor.post_repairs",
    "tallystick.executor.prove_handed_over",
    "tallystick.executor.prove_repairs",
    "tallystick.executor.progress_proof",
    "tallystick.executor.progress_topic",
    "tallystick.executor.verify_plan",
    "tallystick.executor.effects.action_log",
    "tallystick.executor.effects.publish_events",
    "tallystick.executor.effects.trigger_dags",
    "tallystick.kafka_log.committed_records",
    "tallystick.kafka_log.log_walk",
    "tallystick.kafka_cluster.snapshot",
    "tallystick_spark.matching.hash_scan",
    "tallystick_spark.readers.log_reader",
    "tallystick_spark.reconcile_app",
)


class CurrentWorld:
    """The world whose schedule is played. One at a time in a process. drawn: what the product draws at random in it."""

    it: Any = None
    drawn = Random()
    runs: int = 0

    @classmethod
    def begins(cls, world: Any) -> None:
        """Draws from the beginning: two plays of a schedule agree in everything."""
        cls.it, cls.drawn = world, Random(0)


EACH_RULE_IN = 2_000
"""Planted cases of each rule take ten times as long as all else of a run, and know nothing of the world."""


def _connections(*names: str, **ids: str) -> Any:
    return CurrentWorld.it


def _open_both_sides(engine: Any, contract: Any, connections: Any) -> AbstractContextManager[Sources]:
    world = CurrentWorld.it
    with world.open_ledger(engine, contract) as ledger:
        return nullcontext(Sources(contract=contract, admin=world.admin, ledger=ledger, server_proofs=()))


def _nothing(*arguments: Any, **named: Any) -> None:
    pass


def _made_under(engine: Any, contract: Any, cut_n: int) -> Any:
    return contract


def _next_firing(schedule: str, after: datetime) -> datetime:
    """Of the simulator's own schedule, which is hourly: croniter takes longer than all the rest of a cut."""
    return after + timedelta(hours=1)


def _refuse_other_books(before: Any, after: Any, **named: Any) -> None:
    """What is one object differs in no field."""
    if before is not after:
        refuse_other_books(before, after, **named)


def _missed_canaries(evidence: Any, scan: Any) -> tuple[str, ...]:
    """What the scan must tell of planted copies, in each run; what the rules must, in one of EACH_RULE_IN runs."""
    CurrentWorld.runs += 1
    if CurrentWorld.runs % EACH_RULE_IN == 1:
        return canaries.missed_canaries(evidence, scan)
    return _missed_by_the_scan(Same(evidence.contract), Same(scan))


@lru_cache(maxsize=64)
def _missed_by_the_scan(contract: Same[Contract], scan: Same[CanaryScan]) -> tuple[str, ...]:
    """Of a contract's one scan of planted copies it is always the same."""
    return tuple(canaries._missed_by_the_scan(contract.it, scan.it))


_ARTIFACTS = Path("/artifacts")


def _artifacts_folder() -> Path:
    return _ARTIFACTS


def _reads_log(contract: Contract) -> bool:
    """Whatever the environment says: all but a contract that is matched pair by pair."""
    return not contract.input_topics


def _no_file(*arguments: Any) -> Any:
    return nullcontext()


OUTSIDE: dict[str, dict[str, Any]] = {
    "tallystick.pipeline.make_cut": {
        "CLUSTER_STATE": KeptClusterState,
        "open_both_sides": _open_both_sides,
        "read_topic_snapshot": cluster.read_topic_snapshot,
        "read_offsets_at": cluster.read_offsets_at,
        "next_firing": _next_firing,
    },
    "tallystick.pipeline.sources": {
        "open_both_sides": _open_both_sides,
        "read_topic_snapshot": cluster.read_topic_snapshot,
        "fetchers": cluster.fetchers,
        "open_admin": cluster.open_admin,
    },
    "tallystick.ledger.input_topics": {"read_topic_snapshot": cluster.read_topic_snapshot},
    "tallystick.anomalies.notices.retention_overtakes": {"next_firing": _next_firing},
    "tallystick.pipeline.read_cluster_state": {"CLUSTER_STATE": KeptClusterState},
    "tallystick.pipeline.lookups": {
        "CLUSTER_STATE": KeptClusterState,
        "read_topic_snapshot": cluster.read_topic_snapshot,
        "read_open_transactions": cluster.read_open_transactions,
    },
    "tallystick.store.runs.close_store": {"CLUSTER_STATE": KeptClusterState},
    "tallystick.executor.draw_plan": {
        "CLUSTER_STATE": KeptClusterState,
        "open_ledger": executor.open_ledger,
        "read_source_rows": executor.read_source_rows,
    },
    "tallystick.executor.publish_repairs": {
        "ensure_progress_topic": executor.ensure_progress_topic,
        "Retrying": partial(Retrying, sleep=_nothing),
        "uuid": executor.WorldUuids(CurrentWorld),
    },
    "tallystick.executor.effects.action_log": {"uuid": executor.WorldUuids(CurrentWorld)},
    "tallystick.executor.prove_repairs": {
        "open_ledger": executor.open_ledger,
        "read_source_rows": executor.read_source_rows,
        "writers_end": executor.writers_end,
    },
    "tallystick.executor.effects.trigger_dags": {"read_database_identity": poster.read_database_identity},
    "tallystick.executor.post_repairs": {"read_database_identity": poster.read_database_identity},
    "tallystick.executor.effects.post_to_ledger": {
        "open_ledger": poster.open_ledger,
        "read_source_rows": poster.read_source_rows,
    },
    "tallystick.executor.effects.publish_events": {"Producer": executor.WorldProducer},
    "tallystick.kafka_log.committed_records": {
        "open_admin": cluster.open_admin,
        "read_topic_snapshot": cluster.read_topic_snapshot,
        "fetchers": cluster.fetchers,
        "time": executor.WorldTime(CurrentWorld),
    },
    "tallystick.kafka_log.log_walk": {"read_batches": read_batches},
    "tallystick.pipeline.run_history": {"readable_indexes": key_index.readable_indexes},
    "tallystick.kafka_cluster.snapshot": {
        "read_topic_snapshot": cluster.read_topic_snapshot,
        "read_open_transactions": cluster.read_open_transactions,
        "read_topic_settings": cluster.read_topic_settings,
        "read_broker_settings": cluster.read_broker_settings,
        "fetchers": cluster.fetchers,
    },
    "tallystick.store.clock": {"store_now": lambda _: CurrentWorld.it.clock.now},
    "tallystick_spark.matching.hash_scan": {
        "ThreadPoolExecutor": Inline,
        "new_secret": lambda: scan.SECRET,
    },
    "tallystick_spark.readers.log_reader": {"IndexWriter": key_index.IndexWriter},
    "tallystick_spark.reconcile_app": {
        "open_store": _connections,
        "open_both_sides": _open_both_sides,
        "connections_from_environment": _connections,
        "open_admin": cluster.open_admin,
        "fetcher": cluster.fetcher,
        "artifacts_place": _artifacts_folder,
        "index_folder": lru_cache(maxsize=10_000)(index_folder),
        "private_folder": _nothing,
        "delete_folder": key_index.forget,
        "commit_index": key_index.commit_index,
        "delete_expired": key_index.delete_expired,
        "new_seed": lambda: 1,
        "breaks_file": _no_file,
        "announce": _nothing,
        "ThreadPoolExecutor": Inline,
        "reads_log": _reads_log,
        "scan_cut": scan.scan_cut,
        "missed_canaries": _missed_canaries,
        "refuse_other_books": _refuse_other_books,
    },
}
"""Module, name, stand-in."""


def simulated_modules() -> list[ModuleType]:
    return [importlib.import_module(name) for name in SIMULATED]


def real_store_functions(module: ModuleType) -> dict[str, Any]:
    """Names of a module that are bound to functions of the store."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType)
        and value.__module__.startswith("tallystick.store.")
        and value.__module__ != module.__name__
    }


def substitutes() -> list[tuple[ModuleType, str, Any]]:
    """All that is bound anew: module, name, stand-in. Raises KeyError where a function of the store has none."""
    bound: list[tuple[ModuleType, str, Any]] = []
    for module in simulated_modules():
        named = real_store_functions(module).keys() - OUTSIDE.get(module.__name__, {}).keys()
        bound += [(module, name, STORE_FUNCTIONS[name]) for name in sorted(named)]
    for module_name, names in OUTSIDE.items():
        module = importlib.import_module(module_name)
        bound += [(module, name, stand_in) for name, stand_in in names.items()]
    close_store = importlib.import_module("tallystick.store.runs.close_store")
    bound.append((close_store, "attempts_at", run_functions.attempts_at))
    return bound


@contextmanager
def stand_ins() -> Iterator[None]:
    """For the length of a block the product asks the world."""
    before = []
    for module, name, stand_in in substitutes():
        before.append((module, name, getattr(module, name)))
        setattr(module, name, stand_in)
    try:
        with quick_values():
            yield
    finally:
        for module, name, real in reversed(before):
            setattr(module, name, real)
