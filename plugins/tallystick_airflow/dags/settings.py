"""The settings of the DAGs that are made from contracts, beside what the contract itself says."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tallystick_airflow.connections import SPARK_CONNECTION, STORE_CONNECTION

RECONCILE_TASKS = frozenset(
    {"finish", "settle", "cut", "reconcile", "report", "alert", "judge", "offer_compensation", "offered"}
)
COMPENSATE_TASKS = frozenset({"plan", "approve", "second_approval", "act", "verify"})

PREFIX = r"(?!.*(?:reconcile|compensate)_)[A-Za-z0-9._-]{0,60}"
"""Of ids of DAGs. With one of those words in it, one id could be that of two teams' contracts."""

OURS = frozenset({"contract_file", "cut_n", "store_conn_id", "spark_conn_id", "task_id", "trigger_rule", "deferrable"})
"""Arguments of a task that decide what it judges, or whether it is judged at all."""

Callback: TypeAlias = Callable[..., None]
"""A function of the context, or one of Airflow's notifiers."""


class SettingRefused(ValueError):
    """A setting would change what a run proves, or names a task that no DAG here has."""


@dataclass(frozen=True, kw_only=True)
class DagSettings:
    """The settings that a DAG file may ask for. Each is named as Airflow names it.

    dag_id_prefix: before the ids of all DAGs, such as `payments_`.
    store_conn_id, spark_conn_id: the connections of the verdict store and of Spark.
    pool, queue, executor_config: of every task. task_args lays others over a task's.
    tags: beside ours. access_control: as DAG takes it.
    default_args: laid over ours: owner, retries, retry_delay, retry_exponential_backoff, max_retry_delay and
    execution_timeout; also callbacks of each task.
    task_args: by task id, such as {"reconcile": {"pool": "spark", "queue": "large"}}.
    on_failure_callback, on_success_callback: of a run, once; one or a list of them.
    deferrable: False if `settle` is to wait in a worker's slot instead of the triggerer.

    Raises SettingRefused.
    """

    dag_id_prefix: str = ""
    store_conn_id: str = STORE_CONNECTION
    spark_conn_id: str = SPARK_CONNECTION
    pool: str | None = None
    queue: str | None = None
    executor_config: Mapping[str, Any] | None = None
    tags: Collection[str] = ()
    access_control: Mapping[str, Any] | None = None
    default_args: Mapping[str, Any] = field(default_factory=dict)
    task_args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    on_failure_callback: Callback | list[Callback] | None = None
    on_success_callback: Callback | list[Callback] | None = None
    deferrable: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(PREFIX, self.dag_id_prefix):
            raise SettingRefused(
                f"dag_id_prefix: got {self.dag_id_prefix!r}; expected letters, digits, '.', '_' and '-', "
                "and neither reconcile_ nor compensate_"
            )
        known = RECONCILE_TASKS | COMPENSATE_TASKS
        for task_id in sorted(set(self.task_args) - known):
            raise SettingRefused(f"task_args: there is no task {task_id!r}; expected one of {sorted(known)}")
        for place, arguments in (("default_args", self.default_args), *self.task_args.items()):
            for name in sorted(OURS & set(arguments)):
                raise SettingRefused(
                    f"{place}: {name} is Tallystick's own; expected {_INSTEAD.get(name, 'none of it')}"
                )

    def with_changes(self, changes: Mapping[str, Any]) -> "DagSettings":
        """Return the same with other values. Raises TypeError for an unknown name, and SettingRefused."""
        return replace(self, **changes)

    def for_all_tasks(self) -> dict[str, Any]:
        """Return the default_args that these settings ask for."""
        named = {"pool": self.pool, "queue": self.queue, "executor_config": self.executor_config}
        return {name: value for name, value in named.items() if value is not None} | dict(self.default_args)

    def for_task(self, task_id: str) -> dict[str, Any]:
        """Return the arguments of one task, laid over all others."""
        return dict(self.task_args.get(task_id, {}))


_INSTEAD = {name: f"it as the setting {name}" for name in ("store_conn_id", "spark_conn_id", "deferrable")}
