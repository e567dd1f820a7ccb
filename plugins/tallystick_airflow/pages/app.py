"""The pages' HTTP side: routes, headers and what a failure looks like. Reads the verdict store; actions.py writes.

What stands on a page is decided in tallystick.pages, who may see it in auth.py. Every route has the door: there are
no open docs and no open assets.

One file, since the door, the headers and what a failure looks like are the same for all routes.
"""

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

from fastapi import Depends, FastAPI, Form, HTTPException, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tallystick.alerting.acknowledgement import AcknowledgementRefused
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.connections.connections import ConnectionNotGiven, filled_link, runbook_links
from tallystick.contract.contract import Contract
from tallystick.host.artifacts import (
    ArtifactMissing,
    ArtifactsRefused,
    ArtifactsUnreachable,
    Copies,
    Place,
    is_there,
    read_bytes,
)
from tallystick.matching.closed_cut import CloseRefused
from tallystick.model.break_history import HopState
from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tallystick.pages.break_page import STATE_WORDS, break_page
from tallystick.pages.contract_page import PLANS_LISTED, TREND_WINDOWS, VERSIONS_LISTED, canary_sentence, contract_page
from tallystick.pages.overview_page import WINDOWS_SHOWN, overview_page
from tallystick.pages.plan_page import plan_page
from tallystick.pages.render import ASSETS, render_page
from tallystick.pages.window_strip import legend
from tallystick.report.masking import Mask
from tallystick.report.page import config_check_of, page_of
from tallystick.report.write_report import report_path
from tallystick.store.alerts.incident_store import read_incidents
from tallystick.store.breaks.break_life_store import alerts_of_break, repairs_of_break
from tallystick.store.breaks.item_query_store import ItemOrder, ItemQuestion, list_items, read_breaks
from tallystick.store.clock import store_now
from tallystick.store.engine import StoreNotMigrated, StoreUnreachable, open_store_to_read
from tallystick.store.plans.plan_life_store import find_plan, list_plans, plan_of_scheduler_run
from tallystick.store.runs.close_store import attempts_at
from tallystick.store.runs.cut_store import CutAlreadyOpen
from tallystick.store.runs.prune_mark import read_mark
from tallystick.store.runs.run_store import AttemptFenced, read_run_head
from tallystick.store.views.overview_store import (
    contract_of_cut,
    cut_of_scheduler_run,
    list_contracts,
    list_versions,
    read_overview,
    stakes_of_run,
)
from tallystick.store.views.trend_store import read_trend
from tallystick.text.finding_guide import BREAK_TEXTS
from tallystick_airflow.connections import read_artifacts_place, read_store_dsn
from tallystick_airflow.hooks.refusal import ConnectionRefused
from tallystick_airflow.pages.action_auth import form_token, may_act, require_token
from tallystick_airflow.pages.actions import DONE, CannotAsk, router
from tallystick_airflow.pages.auth import (
    ContractName,
    GetUserDep,
    approval_address,
    base_of,
    get_user,
    may_read,
    readable_break,
    readable_contracts,
    readable_teams,
    require_read,
    told_base_of,
    top_of,
)
from tallystick_airflow.pages.encrypted_cursor import decrypt, encrypt
from tallystick_airflow.pages.teams import team, team_elsewhere
from tallystick_expectations.docs_pages import docs_place

_CONNECTIONS_MAX = 8
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
_POLICY_OF_FILES = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox"
)
"""For the report and Data Docs, which carry their styles inside; nothing in them may run or ask another host."""
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

app = FastAPI(
    title="Tallystick",
    dependencies=[Depends(get_user)],
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    default_response_class=HTMLResponse,
)

_NO_ZERO_BYTE = "^[^\x00]*$"
"""PostgreSQL has no text with one."""
PathText = Annotated[str, PathParameter(pattern=_NO_ZERO_BYTE)]
_TONES = {
    state: {HopState.MATCHED: "good", HopState.BROKEN: "bad", HopState.CLOSED: "none", HopState.NOT_SEEN: "none"}.get(
        state, "doubtful"
    )
    for state in HopState
}
CutNumber = Annotated[int, PathParameter(ge=0, le=2**31 - 1)]


app.include_router(router)


@app.middleware("http")
async def add_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Every answer, a refusal too, is closed to other origins and kept by no cache; a route may say otherwise."""
    response = await call_next(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def store() -> Engine:
    """The team's verdict store."""
    return store_at(team().store_conn_id)


STORES: dict[str, Future[Engine]] = {}
"""The stores that were opened, or are being opened, by their connections."""


def store_at(store_conn_id: str) -> Engine:
    """A verdict store, opened when it is first asked. Who asks meanwhile waits for that; a failure is not kept."""
    mine = Future[Engine]()
    opening = STORES.setdefault(store_conn_id, mine)
    if opening is mine:
        try:
            mine.set_result(open_store_to_read(lambda: read_store_dsn(store_conn_id), connections_max=_CONNECTIONS_MAX))
        except BaseException as error:
            STORES.pop(store_conn_id, None)
            mine.set_exception(error)
    return opening.result()


@app.get("/")
def show_overview(request: Request, user: GetUserDep) -> Response:
    """A row per contract that the user may read."""
    engine = store()
    now_utc = store_now(engine)
    readable = readable_contracts(user)
    books = [
        book
        for name in list_contracts(engine)
        if name in readable and (book := read_overview(engine, name, windows=WINDOWS_SHOWN))
    ]
    others = [
        (one.prefix or "without a prefix", f"{top_of(request)}{one.path}/")
        for one in readable_teams(user)
        if one != team()
    ]
    page = overview_page(books, now_utc=now_utc)
    return _page(request, "overview", page=page, others=others, signs=legend(), now_utc=now_utc)


@app.get("/trace")
def ask_for_trace(request: Request, user: GetUserDep) -> Response:
    """The form that takes a match key; a key stands in no address."""
    return _trace_page(request, user, asked=False)


@app.post("/trace")
def show_trace(
    request: Request,
    user: GetUserDep,
    key: Annotated[str, Form(min_length=1, max_length=1000, pattern=_NO_ZERO_BYTE)],
    token: Annotated[str, Form(max_length=400)],
) -> Response:
    """Show what the contracts that the user may read know of a key; those that hide their keys are not asked."""
    from tallystick.tracing.trace_key import newest_contracts, trace_key  # Arrow: for this page alone

    require_token(user, token)
    engine, place = store(), read_artifacts_place()
    readable = readable_contracts(user)
    contracts = newest_contracts(engine, (name for name in list_contracts(engine) if name in readable))
    hidden = [one.name for one in contracts if Mask(one).hides_events]
    traces = trace_key(
        engine,
        [one for one in contracts if one.name not in hidden],
        key,
        artifacts=Copies(origin=place, folder=place) if isinstance(place, Path) else None,
    )
    return _trace_page(request, user, asked=True, traces=traces, hidden=hidden)


def _trace_page(
    request: Request, user: GetUserDep, *, asked: bool, traces: Sequence[Any] = (), hidden: Sequence[str] = ()
) -> Response:
    from tallystick.tracing.hop import is_silent

    return _page(
        request,
        "trace",
        asked=asked,
        traces=traces,
        silent=[trace for trace in traces if is_silent(trace)],
        hidden=hidden,
        tones=_TONES,
        token=form_token(user),
        now_utc=store_now(store()),
    )


@app.get("/contract/{contract_name}")
def show_contract(
    request: Request,
    user: GetUserDep,
    contract_name: ContractName,
    *,
    kind: str = "",
    search: Annotated[str, Query(max_length=200, pattern=_NO_ZERO_BYTE)] = "",
    order: ItemOrder = ItemOrder.OLDEST,
    after: Annotated[str, Query(max_length=1000, pattern=_NO_ZERO_BYTE)] = "",
    done: str = "",
) -> Response:
    """Trends, what stands, incidents, plans, config check and versions of one contract."""
    require_read(request, user, contract_name)
    engine = store()
    now_utc = store_now(engine)
    book = read_overview(engine, contract_name, windows=WINDOWS_SHOWN)
    if book is None:
        raise HTTPException(404, f"{contract_name}: no cut is stored")
    searched = "" if Mask(book.contract).hides_events else search
    question = ItemQuestion(kind=_kind(kind), search=searched, order=order, after=decrypt(after))
    trend = read_trend(engine, contract_name, windows=TREND_WINDOWS)
    newest = None if book.read_cut_n is None else read_run_head(engine, contract_name, book.read_cut_n)
    page = contract_page(
        book,
        trend=trend,
        question=question,
        items=list_items(engine, contract_name, question),
        incidents=read_incidents(engine, contract_name),
        plans=list_plans(engine, contract_name, limit=PLANS_LISTED),
        versions=list_versions(engine, contract_name, limit=VERSIONS_LISTED),
        config_check=config_check_of(newest, book.contract) if newest else (),
        now_utc=now_utc,
    )
    return _page(
        request,
        "contract",
        page=page,
        next_after=encrypt(page.items.next_after),
        signs=legend(),
        titles=_titles(book.contract),
        states=STATE_WORDS,
        done=DONE.get(done, ""),
        token=form_token(user) if may_act(request, user, contract_name) else "",
        now_utc=now_utc,
    )


@app.get("/run/{contract_name}/{cut_n}")
def show_run(
    request: Request,
    user: GetUserDep,
    contract_name: ContractName,
    cut_n: CutNumber,
    break_class: Annotated[str, Query(alias="class")] = "",
    after: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """One run: verdict and reasons, breaks, census, cut and guarantees."""
    require_read(request, user, contract_name)
    engine = store()
    run = read_run_head(engine, contract_name, cut_n)
    contract = contract_of_cut(engine, contract_name, cut_n)
    if contract is None:
        raise HTTPException(404, f"{contract_name}/{cut_n}: no verdict is stored")
    if run is None:
        return _page(
            request,
            "open_cut",
            contract=contract_name,
            run_name=f"{contract_name}/{cut_n}",
            attempts=attempts_at(engine, contract_name, cut_n) or 0,
            token=form_token(user) if may_act(request, user, contract_name) else "",
            now_utc=store_now(engine),
        )
    stakes = stakes_of_run(engine, contract_name, cut_n)
    chosen = _break_class(break_class)
    found = read_breaks(engine, contract_name, cut_n, break_class=chosen, after=after)
    has_report, has_data_docs = _links_of(contract_name, cut_n)
    mark = read_mark(engine, contract_name)
    return _page(
        request,
        "run",
        page=page_of(run, contract, stakes),
        breaks=replace(found, breaks=tuple(map(Mask(contract).item_break, found.breaks))),
        stakes=list(dict.fromkeys(stake.break_class for stake in stakes)),
        chosen=chosen or "",
        pruned=mark if mark and cut_n < mark.kept_from_cut_n else None,
        canaries=canary_sentence(run),
        titles=_titles(contract),
        has_report=has_report,
        has_data_docs=has_data_docs,
        now_utc=store_now(engine),
    )


@app.get("/break/{break_id}")
def show_break(request: Request, user: GetUserDep, break_id: UUID, done: str = "") -> Response:
    """One break."""
    engine = store()
    told = readable_break(engine, request, user, break_id)
    contract = contract_of_cut(engine, told.contract, told.cut_n)
    assert contract is not None  # a cut refers to its contract by a foreign key
    page = break_page(
        told,
        contract,
        alerts=alerts_of_break(engine, told.contract, told.cut_n, told.item_break.break_class),
        repairs=repairs_of_break(engine, break_id),
    )
    return _page(
        request,
        "break",
        page=page,
        runbook=filled_link(runbook_links()["runbook"], alert=page.break_class),
        done=DONE.get(done, ""),
        token=form_token(user) if may_act(request, user, told.contract) else "",
        address=f"{told_base_of(request)}/break/{break_id}",
        now_utc=store_now(engine),
    )


@app.get("/plan/{plan_id}")
def show_plan(request: Request, user: GetUserDep, plan_id: UUID) -> Response:
    """One plan. Whoever may not read its contract learns no more than of one that does not exist."""
    engine = store()
    told = find_plan(engine, plan_id)
    book = read_overview(engine, told.contract, windows=1) if told and may_read(request, user, told.contract) else None
    if told is None or book is None:
        raise HTTPException(404, f"{plan_id}: no such plan is stored")
    page = plan_page(told, book.contract)
    return _page(
        request,
        "plan",
        page=page,
        approval=approval_address(request, page.contract, page.approve_run),
        now_utc=store_now(engine),
    )


@app.get("/dag/{dag_id}")
def show_dag(request: Request, user: GetUserDep, dag_id: PathText) -> Response:
    """The tab on a DAG: its contract's page; of one that repairs, the plans on it."""
    if (theirs := team_elsewhere(dag_id)) is not None:
        return RedirectResponse(f"{top_of(request)}{theirs.path}/dag/{quote(dag_id, safe='')}")
    repaired, reconciled = team().repaired_by(dag_id), team().contracts_of(dag_id)
    if repaired is None and len(reconciled) > 1:
        return RedirectResponse(f"{base_of(request)}/")
    contract_name = repaired or next(iter(reconciled), None)
    if contract_name is None:
        return _none_of_ours(request, dag_id)
    require_read(request, user, contract_name)
    return RedirectResponse(f"{base_of(request)}/contract/{contract_name}{'#plans' if repaired else ''}")


@app.get("/dag-run/{dag_id}/{run_id:path}")
def show_dag_run(request: Request, user: GetUserDep, dag_id: PathText, run_id: PathText) -> Response:
    """The tab on a DAG run: the page of the cut that it made, or of the plan that it asks about."""
    if (theirs := team_elsewhere(dag_id)) is not None:
        return RedirectResponse(
            f"{top_of(request)}{theirs.path}/dag-run/{quote(dag_id, safe='')}/{quote(run_id, safe='')}"
        )
    repaired = team().repaired_by(dag_id)
    if repaired is not None:
        require_read(request, user, repaired)
        plan_id = plan_of_scheduler_run(store(), repaired, run_id)
        if plan_id is None:
            return _note(request, "No plan", f"{run_id} of {dag_id} has asked for no plan: nothing is to be repaired.")
        return RedirectResponse(f"{base_of(request)}/plan/{plan_id}")
    reconciled = team().contracts_of(dag_id)
    if len(reconciled) > 1:
        return RedirectResponse(f"{base_of(request)}/")
    contract_name = next(iter(reconciled), None)
    if contract_name is None:
        return _none_of_ours(request, dag_id)
    require_read(request, user, contract_name)
    cut_n = cut_of_scheduler_run(store(), contract_name, run_id)
    if cut_n is None:
        return _note(request, "No verdict yet", f"{run_id} of {dag_id} has stored no verdict: nothing is proven yet.")
    return RedirectResponse(f"{base_of(request)}/run/{contract_name}/{cut_n}")


@app.get("/report/{contract_name}/{cut_n}")
def show_report(request: Request, user: GetUserDep, contract_name: ContractName, cut_n: CutNumber) -> Response:
    """The self-contained report, as the run's report task wrote it."""
    require_read(request, user, contract_name)
    return _file(read_artifacts_place() / "reports" / contract_name, f"{cut_n}.html")


@app.get("/data-docs/{contract_name}/{path:path}")
def show_data_docs(request: Request, user: GetUserDep, contract_name: ContractName, path: PathText) -> Response:
    """Great Expectations' pages about the contract's runs."""
    require_read(request, user, contract_name)
    return _file(docs_place(read_artifacts_place(), contract_name), path)


@app.get("/assets/{name}")
def show_asset(name: str) -> Response:
    """Style sheets, script and icons. Their address changes when they do."""
    if name not in ASSETS:
        raise HTTPException(404, f"{name}: no such file")
    path, media_type = ASSETS[name]
    return FileResponse(path, media_type=media_type, headers={"Cache-Control": "private, max-age=31536000, immutable"})


@app.exception_handler(AcknowledgementRefused)
@app.exception_handler(WriteOffRefused)
@app.exception_handler(CloseRefused)
@app.exception_handler(AttemptFenced)
@app.exception_handler(CutAlreadyOpen)
@app.exception_handler(CannotAsk)
def show_refusal(request: Request, error: Exception) -> Response:
    """Show that the action was not done; the sentence says why, and what to do."""
    return _note(request, "Nothing was changed", str(error), status=409)


@app.exception_handler(StoreUnreachable)
@app.exception_handler(StoreNotMigrated)
@app.exception_handler(ConnectionNotGiven)
@app.exception_handler(ConnectionRefused)
@app.exception_handler(OperationalError)
@app.exception_handler(PoolTimeout)
def show_no_store(request: Request, error: Exception) -> Response:
    """The store cannot be asked. Named causes say theirs; a driver's words may hold an address and are not shown."""
    named = isinstance(error, StoreUnreachable | StoreNotMigrated | ConnectionNotGiven | ConnectionRefused)
    sentence = str(error) if named else "It did not answer in time, or broke off. Try again; the verdicts are safe."
    return _note(request, "The verdict store does not answer", sentence, status=503)


@app.exception_handler(ArtifactsUnreachable)
@app.exception_handler(ArtifactsRefused)
def show_no_artifacts(request: Request, error: Exception) -> Response:
    """The store of reports and Data Docs cannot be asked. Its address is for the log of the run alone."""
    if isinstance(error, ArtifactsRefused):
        sentence = str(error)
    else:
        sentence = "It did not answer, or did not let us in. Try again; the verdicts are safe in the verdict store."
    return _note(request, "The store of reports does not answer", sentence, status=503)


def _page(request: Request, name: str, *, now_utc: datetime, status: int = 200, **values: Any) -> Response:
    return HTMLResponse(render_page(name, base=base_of(request), now_utc=now_utc, **values), status_code=status)


def _note(request: Request, title: str, sentence: str, *, status: int = 200) -> Response:
    return _page(request, "note", now_utc=datetime.now(UTC), status=status, title=title, sentence=sentence)


def _none_of_ours(request: Request, dag_id: str) -> Response:
    return _note(request, "None of Tallystick's DAGs", f"{dag_id} reconciles and repairs no contract.")


def _kind(text: str) -> ItemState | BreakClass | None:
    """A state, or a class; everything for a word that is neither."""
    with suppress(ValueError):
        return ItemState(text)
    return _break_class(text)


def _break_class(text: str) -> BreakClass | None:
    with suppress(ValueError):
        return BreakClass(text)
    return None


def _titles(contract: Contract) -> dict[BreakClass, str]:
    return {name: text.for_direction(contract.direction).title for name, text in BREAK_TEXTS.items()}


def _links_of(contract_name: str, cut_n: int) -> tuple[bool, bool]:
    """Return whether links to the report and to the Data Docs make sense. Where nobody answers, they lead to words."""
    try:
        artifacts = read_artifacts_place()
        return (
            is_there(report_path(artifacts, contract_name, cut_n)),
            is_there(docs_place(artifacts, contract_name) / "index.html"),
        )
    except (ArtifactsUnreachable, ArtifactsRefused):
        return True, True


def _file(folder: Place, name: str) -> Response:
    """A file that a run wrote. Raises HTTPException 404, also for a name that leads out of the folder."""
    headers = {"Content-Security-Policy": _POLICY_OF_FILES}
    if isinstance(folder, Path):
        path = _file_below(folder, name)
        if path is None:
            raise HTTPException(404, "No such file lies among the artifacts of this machine.")
        return FileResponse(path, headers=headers)
    try:
        content = read_bytes(folder / name)
    except (ArtifactMissing, ValueError):
        raise HTTPException(404, "No such file lies in the store of artifacts.") from None
    return Response(content, media_type=guess_type(name)[0] or "application/octet-stream", headers=headers)


def _file_below(folder: Path, name: str) -> Path | None:
    """Return a file that lies below the folder; None for any other name, one that no disk can have among them."""
    with suppress(OSError):
        path = (folder / name).resolve()
        return path if path.is_relative_to(folder.resolve()) and path.is_file() else None
    return None
