"""DAGs of a folder of contracts, and one contract as a task group: what people call from DAG files of their own.

    from tallystick_airflow import reconcile_dags

    globals().update(reconcile_dags("contracts"))

Decides which DAGs there are. A contract that is refused has none, and takes no other down: it is shown as a red DAG, or
as an import error of a file of its own. Its missed windows are caught up when the contract is good again.
"""

import logging
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, TaskGroup, get_parsing_context

from tallystick.contract.contract import ContractRefused, load_contract
from tallystick_airflow.contract_files import ContractFile, ContractFiles, read_contract_files
from tallystick_airflow.dags.compensate_dag import compensate_dag
from tallystick_airflow.dags.reconcile_dag import reconcile_dag
from tallystick_airflow.dags.refused_dag import refused_dag
from tallystick_airflow.dags.settings import DagSettings, SettingRefused
from tallystick_airflow.dags.window_tasks import PATIENCE, add_end_of_offer, add_window_tasks
from tallystick_airflow.internals.dag_parts import forget_dag

_log = logging.getLogger(__name__)

FOLDER_VARIABLE = "TALLYSTICK_CONTRACTS_DIR"


def reconcile_dags(
    folder: str | os.PathLike[str] | None = None,
    *,
    per_contract: Mapping[str, Mapping[str, Any]] | None = None,
    show_refused: bool = True,
    **settings: Any,
) -> dict[str, DAG]:
    """Return id to DAG: `reconcile_<contract>` for each contract, `compensate_<contract>` for each that allows repairs.

    folder: of contracts; a relative one lies beside the DAG file that calls. Without it TALLYSTICK_CONTRACTS_DIR, or
    `contracts` beside the file. settings: as `DagSettings` names them. per_contract: by name of a contract, settings
    that take the place of those. show_refused: False where `refuse_contract_dags` shows them; a DAG that could not be
    built is shown all the same.

    A task, which needs only its own DAG, gets only that one. Raises SettingRefused, and TypeError for a setting that
    there is not.
    """
    files = read_contract_files(_folder(folder, _calling_file()))
    common = DagSettings(**settings)
    _refuse_unknown(files, per_contract or {})
    return _build(files, common, per_contract or {}, makers=(reconcile_dag, compensate_dag), show_refused=show_refused)


def compensation_dags(
    folder: str | os.PathLike[str] | None = None, *, show_refused: bool = True, **settings: Any
) -> dict[str, DAG]:
    """Return the DAGs that repair alone, for contracts that `reconcile_task_group` reconciles. All arguments as in
    `reconcile_dags`, and what is refused or could not be built is shown as there.
    """
    files = read_contract_files(_folder(folder, _calling_file()))
    return _build(files, DagSettings(**settings), {}, makers=(compensate_dag,), show_refused=show_refused)


def refuse_contract_dags(folder: str | os.PathLike[str] | None = None) -> None:
    """Fail while a contract of the folder is refused, so that Airflow shows file and fault as an import error.

    Its name has "dag" in it, since Airflow skips a file in which the word does not stand.

    For a DAG file that holds nothing else, since Airflow takes every DAG of a file with an import error out of service.
    Seen under Import Errors on the start page, by `airflow dags list-import-errors` (exit 1, for the build) and at
    /api/v2/importErrors. Folder as in `reconcile_dags`. Raises ContractRefused.
    """
    refused = read_contract_files(_folder(folder, _calling_file())).refused
    if refused:
        raise ContractRefused("\n".join(refused))


def reconcile_task_group(
    contract: str | os.PathLike[str], *, group_id: str = "reconcile", dag: DAG | None = None, **settings: Any
) -> TaskGroup:
    """Return the tasks of one contract as a group, for a DAG of one's own.

    contract: its file; a relative one lies beside the DAG file that calls. settings: as `DagSettings` names them, less
    those of a DAG. The DAG's own default_args go before ours, and the settings before those.

    The windows are the DAG's, so it needs a timetable with data intervals, such as CronDataIntervalTimetable with the
    contract's schedule; and max_active_runs=1. What follows the group waits for the verdict and the alerts, and does
    not run after BROKEN or without a verdict. The DAG's deadline is its own: `verdict_deadline` makes ours.

    Raises ContractRefused, SettingRefused, and TypeError for a setting that there is not.
    """
    path = _beside(contract, _calling_file())
    file = ContractFile(path=path, contract=load_contract(path))
    asked = DagSettings(**settings)
    for name in sorted({"tags", "access_control", "on_failure_callback", "on_success_callback"} & set(settings)):
        raise SettingRefused(f"{name}: a group has none; expected it as an argument of the DAG, or in default_args")
    group = TaskGroup(group_id=group_id, dag=dag) if dag else TaskGroup(group_id=group_id)
    with group:
        group.default_args = {
            "owner": file.contract.owner,
            **PATIENCE,
            **group.dag.default_args,
            **group.default_args,
            **asked.for_all_tasks(),
        }
        tasks = add_window_tasks(file, asked)
        if tasks.offer is not None:
            add_end_of_offer(tasks.offer, asked)
    return group


def _build(
    files: ContractFiles,
    common: DagSettings,
    per_contract: Mapping[str, Mapping[str, Any]],
    *,
    makers: Collection[Callable[..., DAG]],
    show_refused: bool,
) -> dict[str, DAG]:
    dags, failed = {}, []
    for file in files.accepted:
        own = common.with_changes(per_contract.get(file.contract.name, {}))
        for dag_id, make in _makers_of(file, own):
            if make not in makers:
                continue
            try:
                dags[dag_id] = make(file, own)
            except Exception as error:  # whatever Airflow has against one contract, the others must be there
                _log.exception("%s: %s could not be built", file.path, dag_id)
                forget_dag(dag_id)
                failed.append(f"{file.path}: {dag_id} could not be built: {type(error).__name__}: {error}")
    if shown := (*(files.refused if show_refused else ()), *failed):
        red = refused_dag(shown, common)
        dags[red.dag_id] = red
    return dags


def _makers_of(file: ContractFile, settings: DagSettings) -> Iterator[tuple[str, Callable[..., DAG]]]:
    """Give the id of each DAG that is asked for, and what makes it."""
    wanted = get_parsing_context().dag_id
    name, prefix = file.contract.name, settings.dag_id_prefix
    if wanted in (None, f"{prefix}reconcile_{name}"):
        yield f"{prefix}reconcile_{name}", reconcile_dag
    if file.contract.compensation and wanted in (None, f"{prefix}compensate_{name}"):
        yield f"{prefix}compensate_{name}", compensate_dag


def _refuse_unknown(files: ContractFiles, per_contract: Mapping[str, Any]) -> None:
    """A contract that is refused at present may be the one that is named, and must not take others down."""
    unknown = sorted(set(per_contract) - {file.contract.name for file in files.accepted})
    if unknown and not files.refused:
        raise SettingRefused(f"per_contract: there is no contract {unknown[0]!r}")


def _calling_file() -> Path:
    """The DAG file whose code calls this module's function; in a session without a file, one in its folder."""
    return Path(sys._getframe(2).f_globals.get("__file__") or "dag.py")


def _beside(path: str | os.PathLike[str], file: Path) -> Path:
    return file.parent / path


def _folder(folder: str | os.PathLike[str] | None, file: Path) -> Path:
    return _beside(folder or os.environ.get(FOLDER_VARIABLE) or "contracts", file)
