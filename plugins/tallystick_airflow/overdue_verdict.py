"""Tells on-call that a window has no verdict by its deadline. Airflow's triggerer calls this, so no worker is needed:
a hanging run, or workers that are all busy, hold it up as little as a run that is still queued.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from tallystick.contract.contract import Contract
from tallystick.text.plain import printed_text
from tallystick_airflow.alert_sinks import alert_links, read_sinks
from tallystick_airflow.connections import STORE_CONNECTION
from tallystick_airflow.operators.contract_operator import open_verdict_store

if TYPE_CHECKING:
    from tallystick.alerting.alert import Alert

_SECONDS_BETWEEN_TRIES = (15, 30, 60, 120, 300, 600)
"""As patient as the alert task and its retries: nobody sees what a callback fails to do."""

_SECONDS_ONCE_TOLD, _TRIES_ONCE_TOLD = 600, 144
"""Of a page that stands in no store yet: for a day, so that it is recorded, and ends, once the store answers."""

_log = logging.getLogger(__name__)


async def page_if_overdue(
    *, contract_json: str, context: Mapping[str, Any], store_conn_id: str = STORE_CONNECTION
) -> str:
    """Page for the run's window unless it is judged. Gives what was done, for Airflow's list of callbacks.

    Airflow finds a deadline missed also where the run ended in time with a BROKEN verdict, and from the start where the
    window lies before the books: so this asks the store, and waits where the verdict is not due yet. A store that does
    not answer may be why there is no verdict, so then on-call is told without it, and the page is recorded later; or it
    ends, where the window turns out to be judged.
    Takes the contract itself, not its file: the triggerer may run where the DAGs do not lie. store_conn_id: the default
    is for a deadline that was stored before an upgrade. Raises what the last try raised.
    """
    from tallystick.store.engine import StoreUnreachable  # SQLAlchemy: not while parsing

    contract, run = Contract.model_validate_json(contract_json), context["dag_run"]
    tries: Iterator[int] = iter(_SECONDS_BETWEEN_TRIES)
    told = False
    while True:
        try:
            left = await asyncio.to_thread(_page_when_due, contract, run, store_conn_id)
            if left is None and told:
                await asyncio.to_thread(_take_back, contract, store_conn_id)
        except Exception as error:  # a page that comes late is better than one that does not
            _log.warning("%s: what is overdue could not be looked up or told", contract.name, exc_info=True)
            if isinstance(error, StoreUnreachable) and not told:
                told = await asyncio.to_thread(_page_without_store, contract, run)
                tries = chain(tries, repeat(_SECONDS_ONCE_TOLD, _TRIES_ONCE_TOLD)) if told else tries
            if (seconds := next(tries, None)) is None:
                raise
            left = timedelta(seconds=seconds)
        if not left:
            return "on-call was told, unless the window is judged"
        await asyncio.sleep(left.total_seconds())


def _page_when_due(contract: Contract, run: Mapping[str, Any], store_conn_id: str) -> timedelta | None:
    """Page and deliver where it is time; else say how long it is until then. None: the window is judged."""
    from tallystick.pipeline.deliver_alerts import deliver_pending  # SQLAlchemy, httpx: not while parsing
    from tallystick.pipeline.missing_verdict_alert import due_utc, page_overdue_verdict
    from tallystick.store.clock import store_now

    window_end_utc, queued_utc = _moment(run["data_interval_end"]), _moment(run["queued_at"])
    with open_verdict_store(store_conn_id) as engine:
        due = due_utc(engine, contract, window_end_utc=window_end_utc, queued_utc=queued_utc)
        left = due - store_now(engine)
        if left > timedelta(0):
            return left
        if not page_overdue_verdict(engine, contract, _overdue(contract, run, due), window_end_utc=window_end_utc):
            return None
        deliver_pending(engine, contract.name, read_sinks(contract), links=alert_links(run["dag_id"]))
    return timedelta(0)


def _page_without_store(contract: Contract, run: Mapping[str, Any]) -> bool:
    """Did every sink take it?"""
    return _send(contract, _overdue(contract, run, _moment(run["data_interval_end"]) + contract.verdict_timeout))


def _take_back(contract: Contract, store_conn_id: str) -> None:
    """End at every sink what was told without the store, where a verdict was there all the time. Not while a later
    window is overdue: that is the same incident, and its own end follows.
    """
    from tallystick.alerting.alert import VERDICT_OVERDUE
    from tallystick.pipeline.missing_verdict_alert import none_is_overdue  # SQLAlchemy: not while parsing
    from tallystick.store.alerts.alert_store import firing_names, one_deliverer

    with open_verdict_store(store_conn_id) as engine, one_deliverer(engine, contract.name):
        if VERDICT_OVERDUE not in firing_names(engine, contract.name):
            _send(contract, none_is_overdue(contract))


def _send(contract: Contract, told: "Alert") -> bool:
    from tallystick.pipeline.deliver_alerts import send_unrecorded  # SQLAlchemy, httpx: not while parsing

    attempts = send_unrecorded(told, read_sinks(contract))
    for name, attempt in attempts:
        if not attempt.delivered:
            _log.warning("%s: %s: %s", contract.name, name, printed_text(attempt.detail))
    return all(attempt.delivered for _, attempt in attempts)


def _overdue(contract: Contract, run: Mapping[str, Any], due: datetime) -> "Alert":
    from tallystick.pipeline.missing_verdict_alert import overdue_alert  # SQLAlchemy: not while parsing

    window = _moment(run["data_interval_start"]), _moment(run["data_interval_end"])
    return overdue_alert(contract, scheduler_run_id=run["dag_run_id"], window=window, due_utc=due)


def _moment(text: str) -> datetime:
    """A time as Airflow's REST documents write it."""
    return datetime.fromisoformat(text).astimezone(UTC)
