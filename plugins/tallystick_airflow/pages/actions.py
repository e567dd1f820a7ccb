"""The actions on the pages: take an incident on, write a break off, ask for a plan, close a cut unread.

Each leaves an audit row. What may be done is decided in tallystick; who may, in action_auth.py. Approving a plan is
Airflow's own page.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import RedirectResponse
from sqlalchemy import Engine

from tallystick.compensation.write_off import write_off_of
from tallystick.contract.contract import Contract
from tallystick.matching.closed_cut import closing_of
from tallystick.store.alerts.acknowledgement_store import acknowledge
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.clock import store_now
from tallystick.store.engine import open_store
from tallystick.store.plans.plan_store import append_audit
from tallystick.store.runs.close_store import close_cut
from tallystick.store.views.overview_store import read_overview
from tallystick_airflow.connections import read_store_dsn
from tallystick_airflow.internals.runs import RunNotStarted, find_dag, start_run
from tallystick_airflow.pages.action_auth import require_action_permission, require_token
from tallystick_airflow.pages.auth import ContractName, GetUserDep, base_of, readable_break
from tallystick_airflow.pages.teams import team

DONE = {
    "taken-on": "You acknowledged the incident. It does not escalate, and pages again only when it is worse.",
    "written-off": "The break is written off. A partner that comes late still clears it.",
    "plan-asked": "A plan was asked for. It is listed under Plans once it is drawn up, if anything may be repaired.",
}
"""What the page says after an act, by the word in its address."""

router = APIRouter()
Token = Annotated[str, Form(max_length=400)]


class CannotAsk(RuntimeError):
    """Airflow cannot start the compensation. The message says why and what to do."""


@router.post("/contract/{contract_name}/acknowledge")
def take_on(
    request: Request,
    user: GetUserDep,
    contract_name: ContractName,
    alert: Annotated[str, Form(max_length=200)],
    token: Token,
) -> Response:
    """A person is at it: the incident of this alert does not escalate."""
    _let_in(request, user, contract_name, token)
    with _store() as engine:
        acknowledge(engine, contract_name, alert, by=user.get_name())
    return _back(request, f"/contract/{contract_name}?done=taken-on")


@router.post("/contract/{contract_name}/plan")
def ask_for_plan(request: Request, user: GetUserDep, contract_name: ContractName, token: Token) -> Response:
    """Start the compensation DAG for all that stands up to the newest judged cut; it asks a person before it acts."""
    _let_in(request, user, contract_name, token)
    with _store() as engine:
        book = read_overview(engine, contract_name, windows=2)
        judged = [window for window in book.windows if window.verdict] if book else []
        if book is None or not judged:
            raise CannotAsk(f"{contract_name}: no cut has a verdict yet; expected one; ask again after its first run")
        _ask(engine, book.contract, judged[-1].cut_n, by=user.get_name())
    return _back(request, f"/contract/{contract_name}?done=plan-asked#plans")


@router.post("/break/{break_id}/write-off")
def write_off(
    request: Request, user: GetUserDep, break_id: UUID, reason: Annotated[str, Form(max_length=1000)], token: Token
) -> Response:
    """A person gives the break up, and says why."""
    with _store() as engine:
        told = readable_break(engine, request, user, break_id)
        _let_in(request, user, told.contract, token)
        given_up = write_off_of(by=user.get_name(), reason=reason, at_utc=store_now(engine))
        write_off_break(engine, told.contract, str(break_id), given_up)
    return _back(request, f"/break/{break_id}?done=written-off")


@router.post("/run/{contract_name}/{cut_n}/close")
def close_unread(
    request: Request,
    user: GetUserDep,
    contract_name: ContractName,
    cut_n: Annotated[int, PathParameter(ge=0, le=2**31 - 1)],
    reason: Annotated[str, Form(max_length=1000)],
    token: Token,
) -> Response:
    """A person ends a cut that no attempt can judge, so that the books go on, and says why."""
    _let_in(request, user, contract_name, token)
    with _store() as engine:
        closing = closing_of(by=user.get_name(), reason=reason, at_utc=store_now(engine))
        close_cut(engine, contract_name, cut_n, closing)
    return _back(request, f"/run/{contract_name}/{cut_n}")


def _let_in(request: Request, user: GetUserDep, contract_name: str, token: str) -> None:
    require_action_permission(request, user, contract_name)
    require_token(user, token)


def _ask(engine: Engine, contract: Contract, cut_n: int, *, by: str) -> None:
    """The trail first: a run that nobody is on record for must not start. Raises CannotAsk."""
    dag_id = team().compensation_of(contract.name)
    dag = find_dag(dag_id)
    if contract.compensation is None or dag is None or dag.is_stale:
        raise CannotAsk(
            f"{contract.name}: it allows no repair, or Airflow does not know {dag_id}; expected a compensation "
            "section in the contract, and its file beside the DAGs"
        )
    if dag.is_paused:
        raise CannotAsk(
            f"{dag_id} is paused, so the plan would wait for ever; expected it active; unpause it in Airflow"
        )
    run_id = f"manual__{datetime.now(UTC).isoformat()}"
    append_audit(
        engine,
        contract.name,
        plan_id=None,
        actor=by,
        event="plan_asked_for",
        detail={"cut_n": cut_n, "scheduler_run_id": run_id},
    )
    try:
        start_run(dag_id, run_id=run_id, by=by, conf={"cut_n": cut_n})
    except RunNotStarted as error:
        raise CannotAsk(f"{dag_id}: Airflow does not start it: {error}") from None


def _back(request: Request, address: str) -> Response:
    """To the page that shows what was done, by GET: loading it again does nothing twice."""
    return RedirectResponse(f"{base_of(request)}{address}", status_code=303)


@contextmanager
def _store() -> Iterator[Engine]:
    engine = open_store(read_store_dsn(team().store_conn_id))
    try:
        yield engine
    finally:
        engine.dispose()
