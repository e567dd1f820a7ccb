"""The shared parts of a contract's operators: the file, the cut's number, and the verdict store."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tallystick.contract.contract import Contract, load_contract
from tallystick_airflow.connections import STORE_CONNECTION, read_store_dsn

if TYPE_CHECKING:
    from sqlalchemy import Engine

CUT_N = "{{ ti.xcom_pull(task_ids='cut') }}"
"""Template for the number that the cut task returned; renders to None where no cut was made."""


class NoCut(AirflowFailException):
    """The run made no cut, so there is nothing to work on."""


class ContractOperator(BaseOperator):
    """Base of the operators that work on one contract, most of them on one of its cuts.

    Opens nothing while the DAG is parsed. Does nothing itself.
    store_conn_id: the connection of the verdict store, one for all operators of a contract.
    """

    template_fields: Sequence[str] = ("cut_n",)

    def __init__(
        self, *, contract_file: str, cut_n: str = CUT_N, store_conn_id: str = STORE_CONNECTION, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.contract_file = contract_file
        self.cut_n = cut_n
        self.store_conn_id = store_conn_id

    def read_contract(self) -> Contract:
        return read_contract_file(self.contract_file)

    def require_cut_n(self) -> int:
        """The rendered number. Raises NoCut."""
        return require_cut_n(self.cut_n)


def read_contract_file(contract_file: str) -> Contract:
    """Read the contract again when a task runs: it is judged as it stands now. Raises ContractRefused."""
    return load_contract(Path(contract_file))


def require_cut_n(cut_n: str) -> int:
    """Read a rendered cut number. Raises NoCut."""
    if not cut_n.isdigit():
        raise NoCut("no cut was made for this run: the tasks before this one say why")
    return int(cut_n)


@contextmanager
def open_verdict_store(store_conn_id: str) -> Iterator["Engine"]:
    """Open a verdict store for the length of a task."""
    from tallystick.store.engine import open_store  # SQLAlchemy: not while parsing

    engine = open_store(read_store_dsn(store_conn_id))
    try:
        yield engine
    finally:
        engine.dispose()
