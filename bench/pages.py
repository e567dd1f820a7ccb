"""How long the pages take when the books are old: 8,760 windows, a million breaks, 200,000 open items, 20 readers.

    python -m bench.pages

Fills a verdict store by SQL, runs a real Airflow on it, and lets twenty readers open a page each every second or so, a
bounded number of times. Prints what the slowest of twenty answers took, page by page, and the api-server's memory
before and after; writes the same to build/bench_pages.json. Exits 1 where a page took more than MILLISECONDS_MAX at the
95th percentile.
"""

import json
import random
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import httpx
import psutil
import psycopg
from pydantic import TypeAdapter
from rich.table import Table

from lab.servers.airflow import WHAT_A_READER_NEEDS, AirflowStack, start_airflow
from lab.servers.airflow_environment import AirflowSettings
from lab.servers.postgres import AIRFLOW_DATABASE, STORE_DATABASE, STORE_OWNER, STORE_ROLE, PostgresServer, create_store
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabAddresses
from lab.soak.long_run import LongRun, measured_on
from tallystick.contract.contract import Contract, load_contract
from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import LedgerSlice, LedgerSnapshot, PartitionSnapshot, TopicSlice
from tallystick.model.offsets import OffsetRange
from tallystick.model.partner_lag import Grace, RunLag, lags_of_pairs
from tallystick.model.run_result import RunFigures
from tallystick.store.engine import connect_store, migrate

WINDOWS, BAD_DAY = 8_760, 8_700
BREAKS, OPEN_ITEMS, BROKEN_RUNS = 1_000_000, 200_000, 400
READERS, PAGES_EACH, SECONDS_BETWEEN = 20, 60, 1.0
MILLISECONDS_MAX = 300
_CONTRACTS = REPOSITORY / "dags" / "contracts"
_PARTITIONS = 6
_CONTRACT = "/contract/billing_payouts"
_PAGES_ON = 8
_FIGURES = REPOSITORY / "build" / "bench_pages.json"

_CLASSES = "(array['missing_in_topic_never_produced', 'amount_mismatch', 'duplicate_in_topic_reprocessed'])"
_OLD_BREAKS = f"""
insert into tallystick.item_break (break_id, contract, cut_n, break_class, match_key, transaction_key, leg,
    amount_minor, currency, copies, story, evidence)
select md5(n::text)::uuid, %(contract)s, 20 + 21 * (n %% {BROKEN_RUNS}), {_CLASSES}[1 + n %% 3], 'event-' || n,
    'order-' || n / 3, 'payout', 1 + n * 7919::bigint %% 500000, case n %% 4 when 0 then 'USD' else 'EUR' end, 1,
    'The row stands in the ledger and its event is nowhere on the log.', jsonb_build_object('at', 'ledger:' || n)
from generate_series(%(first)s::int, %(last)s::int) as n
"""
_NEW_BREAKS = _OLD_BREAKS.replace(f"20 + 21 * (n %% {BROKEN_RUNS})", f"{BAD_DAY}")
_ITEMS = """
insert into tallystick.open_item (contract, item_id, cut_n, side, match_key, transaction_key, leg, amount_minor,
    currency, first_seen_cut, first_seen_utc, due_utc, state, reason, pairable, break_id, cleared_by)
select b.contract, 'ledger:' || substr(b.match_key, 7), b.cut_n, 'ledger', b.match_key, b.transaction_key, b.leg,
    b.amount_minor, b.currency, b.cut_n, c.marked_at_utc, c.marked_at_utc, %(state)s, '', true, b.break_id, ''
from tallystick.item_break as b join tallystick.cut as c on c.contract = b.contract and c.n = b.cut_n
where b.contract = %(contract)s and (b.cut_n = %(bad_day)s) = (%(state)s = 'broken')
"""


_ALERTS = f"""
insert into tallystick.alert (contract, cut_n, topic, dedup_key, action, severity, body, sinks)
select %(contract)s, 20 + 21 * n + over, topic, 'tallystick/' || %(contract)s || '/' || topic,
    case over when 0 then 'trigger' else 'resolve' end, 'error', '{{"summary": "s", "details": {{}}}}', '["webhook"]'
from generate_series(0, {BROKEN_RUNS - 1}) as n, generate_series(0, 1) as over,
    unnest({_CLASSES}) as topic
where 20 + 21 * n + over < {BAD_DAY} order by 20 + 21 * n + over
"""
_PLAN = f"""
insert into tallystick.compensation_plan (plan_id, contract, cut_n, plan_hash, body, requested_by)
select %(plan)s, %(contract)s, {BAD_DAY}, 'h', jsonb_build_object('items', jsonb_agg(item) filter (where n <= 50),
    'left_out', jsonb_agg(jsonb_build_object('break_id', item -> 'break_id', 'match_key', item -> 'match_key',
    'reason', 'over the cap on the number of events')) filter (where n > 50)), 'op'
from (select row_number() over (order by break_id) as n, jsonb_build_object('row_id', '1', 'match_key', match_key,
    'transaction_key', transaction_key, 'leg', leg, 'amount_minor', amount_minor, 'currency', currency,
    'occurred_at', '', 'action_id', break_id, 'break_id', break_id, 'break_class', break_class, 'topic', 't') as item
    from tallystick.item_break where contract = %(contract)s and cut_n = {BAD_DAY}) as listed
"""
PLAN_ID = "00000000-0000-5000-8000-000000000001"


def main() -> int:
    """Fill, serve, read, and say how long it took."""
    parent = REPOSITORY / "build" / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pages-", dir=parent))
    server = PostgresServer(folder / "store", fsync=False)
    run = LongRun()
    run.say(f"filling a store: {WINDOWS:,} windows, {BREAKS:,} breaks, {OPEN_ITEMS:,} open items")
    try:
        server.initialise()
        server.start()
        create_store(server)
        fill(server.dsn(STORE_OWNER, STORE_DATABASE))
        run.say("filled; starting Airflow")
        with _serve(folder, server) as airflow:
            airflow.wait_dag("reconcile_billing_payouts", deadline_seconds=240)
            return measure(run, airflow)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def fill(store_owner_dsn: str) -> None:
    """A year of hourly windows that ends now; the bad day's breaks are all outstanding."""
    contract = load_contract(_CONTRACTS / "billing_payouts.yaml")
    migrate(connect_store(store_owner_dsn), grant_to=STORE_ROLE)
    with psycopg.connect(store_owner_dsn) as connection:
        _fill_windows(connection, contract)
        values = {"contract": contract.name, "bad_day": BAD_DAY}
        old = BREAKS - OPEN_ITEMS
        for first in range(1, old, 100_000):
            connection.execute(_OLD_BREAKS, values | {"first": first, "last": min(old, first + 99_999)})
        connection.execute(_NEW_BREAKS, values | {"first": old + 1, "last": BREAKS})
        for state in ("cleared", "broken"):
            connection.execute(_ITEMS, values | {"state": state})
        connection.execute(_ALERTS, {"contract": contract.name})
        connection.execute(_PLAN, {"contract": contract.name, "plan": PLAN_ID})
        connection.commit()
        connection.autocommit = True
        connection.execute("vacuum analyze")


def _fill_windows(connection: psycopg.Connection, contract: Contract) -> None:
    body = json.dumps(contract.model_dump(mode="json"))
    name, fingerprint = contract.name, contract.fingerprint
    connection.execute(
        "insert into tallystick.contract_version (contract, fingerprint, version, body) values (%s, %s, 1, %s)",
        (name, fingerprint, body),
    )
    end = datetime.now(UTC).replace(minute=15, second=0, microsecond=0) - timedelta(hours=1)
    cursor = connection.cursor()
    with cursor.copy(
        "copy tallystick.cut (contract, n, window_start_utc, window_end_utc, marked_at_utc, now_utc, "
        "contract_fingerprint, scheduler_run_id, open) from stdin"
    ) as copy:
        for n in range(WINDOWS):
            until = end - timedelta(hours=WINDOWS - 1 - n)
            times = (until - timedelta(hours=1), until, until, until)
            copy.write_row((name, n, *times, fingerprint, f"scheduled__{until.isoformat()}", False))
    with cursor.copy(
        "copy tallystick.cut_slice (contract, side, slice_n, cut_n, starts_at, ends_at, details) from stdin"
    ) as copy:
        for n in range(WINDOWS):
            for side, start, stop, details in _slices(contract, n):
                copy.write_row((name, side, n, n, start, stop, details))
    with cursor.copy(
        "copy tallystick.verdict (contract, cut_n, verdict, doubts, figures, digest, look_ups, attempt, lag) from stdin"
    ) as copy:
        broken = {20 + 21 * n for n in range(BROKEN_RUNS)} | {BAD_DAY}
        for n in range(WINDOWS):
            verdict = "BROKEN" if n in broken else "MATCHED"
            copy.write_row((name, n, verdict, "[]", _figures(contract, n), f"{n}", "{}", 1, _lag(contract, n)))


def _slices(contract: Contract, n: int) -> list[tuple[str, int, int, str]]:
    (topic,) = contract.topics
    start, end = 1_000 * max(0, n - 1), 1_000 * n
    topics, ledgers = TypeAdapter(TopicSlice), TypeAdapter(LedgerSlice)
    found = []
    for partition in range(_PARTITIONS):
        offsets = OffsetRange(topic=topic, partition=partition, kafka_offset_start=start, kafka_offset_end=end)
        snapshot = PartitionSnapshot(
            topic=topic, partition=partition, topic_id="t", leader_epoch=1, log_start=0, lso=end, high_watermark=end
        )
        details = topics.dump_json(TopicSlice(offsets=offsets, snapshot=snapshot, mark=end)).decode()
        found.append((f"topic:{topic}:{partition}", start, end, details))
    snapshot_of_ledger = LedgerSnapshot(low_mark=end, high_mark=end, system_identifier="1", timeline=1, lsn="0/1")
    ledger = LedgerSlice(
        position_start=start, position_end=end, snapshot=snapshot_of_ledger, mark=end, baseline_position=0
    )
    return [*found, ("ledger", start, end, ledgers.dump_json(ledger, by_alias=True).decode())]


def _figures(contract: Contract, n: int) -> str:
    census = tuple(
        PartitionCensus(
            topic=contract.topics[0],
            partition=partition,
            kafka_offset_start=1_000 * max(0, n - 1),
            kafka_offset_end=1_000 * n,
            committed=900,
            aborted=90,
            plain=0,
            commit_markers=9,
            abort_markers=1,
            unexplained=0,
            without_producer_id=0,
            log_start=0,
            lso=1_000 * n,
            high_watermark=1_000 * n,
            spark_rows=900,
        )
        for partition in range(_PARTITIONS)
    )
    figures = RunFigures(
        topic_rows=5_400 + n % 700,
        ledger_rows=5_400 + n % 700,
        matched_rows=5_400 + n % 700,
        matched_money={"EUR": 10**9 + n},
        in_flight_items=0,
        in_flight_money={},
        carried_items=0,
        undecidable_items=0,
        unreadable_records=0,
        ledger_older_rows=None,
        census=census,
    )
    return TypeAdapter(RunFigures).dump_json(figures).decode()


def _lag(contract: Contract, n: int) -> str:
    pairs = lags_of_pairs((contract.topics[0], 10 * k) for k in range(1, 20 + n % 50))
    return TypeAdapter(RunLag).dump_json(RunLag(topics=pairs, grace=Grace(seconds=30))).decode()


def measure(run: LongRun, airflow: AirflowStack) -> int:
    """Let the readers read; print the figures."""
    token = airflow.token("viewer")
    addresses = _addresses_to_read() | {_late_page(airflow, token): "contract, a late page of items"}
    for address in addresses:  # what is loaded once is not what a reader waits for
        _open(airflow, token, address)
    run.say(f"{READERS} readers, {PAGES_EACH} pages each")
    before = _resident_mb()
    took: dict[str, list[float]] = defaultdict(list)
    readers = [threading.Thread(target=_read, args=(airflow, token, addresses, seed, took)) for seed in range(READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return _tell(run, took, before, _resident_mb())


def _read(
    airflow: AirflowStack, token: str, addresses: dict[str, str], seed: int, took: dict[str, list[float]]
) -> None:
    rng, choices = random.Random(seed), list(addresses.items())
    for _ in range(PAGES_EACH):
        time.sleep(rng.uniform(0.5, 1.5) * SECONDS_BETWEEN)
        address, name = rng.choice(choices)
        started = time.perf_counter()
        _open(airflow, token, address)
        took[name].append((time.perf_counter() - started) * 1_000)


def _late_page(airflow: AirflowStack, token: str) -> str:
    """Some pages on, as a reader gets there: what a page begins after is sealed."""
    address = f"{_CONTRACT}?order=largest"
    for _ in range(_PAGES_ON):
        links = re.findall(r'href="[^"]*(\?[^"]*after=[^"]+)"', _open(airflow, token, address))
        address = _CONTRACT + unescape(links[0])
    return address


def _open(airflow: AirflowStack, token: str, address: str) -> str:
    """The whole page."""
    url = f"{airflow.settings.base_url}/tallystick{address}"
    answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    answer.raise_for_status()
    return answer.text


def _addresses_to_read() -> dict[str, str]:
    """Address to what it is."""
    with_break = "c4ca4238-a0b9-2382-0dcc-509a6f75849b"  # the id of the first break that the SQL makes
    return {
        "/": "overview",
        _CONTRACT: "contract",
        f"{_CONTRACT}?search=event-99999": "contract, a search",
        f"{_CONTRACT}?kind=amount_mismatch&order=largest": "contract, one class",
        "/run/billing_payouts/8759": "run",
        f"/run/billing_payouts/{BAD_DAY}": "run with 200,000 breaks",
        f"/run/billing_payouts/{BAD_DAY}?class=amount_mismatch": "run with 200,000 breaks, one class",
        f"/break/{with_break}": "break",
        f"/plan/{PLAN_ID}": "plan that leaves 199,950 breaks out",
    }


def _tell(run: LongRun, took: dict[str, list[float]], before: float, after: float) -> int:
    pages = {name: _figures_of(values) for name, values in sorted(took.items())}
    pages["all pages"] = _figures_of([value for values in took.values() for value in values])
    table = Table("page", "answers", "median ms", "p95 ms", "worst ms")
    for name, figures in pages.items():
        table.add_row(name, *(f"{value:.0f}" for value in figures.values()))
    run.console.print(table)
    run.say(f"the api-server held {before:.0f} MiB before, {after:.0f} after")
    size = {"windows": WINDOWS, "breaks": BREAKS, "open_items": OPEN_ITEMS, "readers": READERS}
    memory = {"api_server_mib_before": round(before), "api_server_mib_after": round(after)}
    _FIGURES.write_text(json.dumps({"size": size, "pages": pages, **memory, **measured_on()}, indent=2) + "\n")
    return 1 if any(figures["p95_ms"] > MILLISECONDS_MAX for figures in pages.values()) else 0


def _figures_of(milliseconds: list[float]) -> dict[str, float]:
    p95 = statistics.quantiles(milliseconds, n=20)[-1] if len(milliseconds) > 1 else milliseconds[0]
    return {
        "answers": len(milliseconds),
        "median_ms": round(statistics.median(milliseconds), 1),
        "p95_ms": round(p95, 1),
        "worst_ms": round(max(milliseconds), 1),
    }


def _resident_mb() -> float:
    """Of the api-server with all its processes."""
    ours = psutil.Process().children(recursive=True)
    return sum(one.memory_info().rss for one in ours if "api_server" in " ".join(one.cmdline())) / 2**20


def _serve(folder: Path, server: PostgresServer) -> AbstractContextManager[AirflowStack]:
    (folder / "airflow").mkdir()
    settings = AirflowSettings(home=folder / "airflow", contracts=_CONTRACTS, artifacts=folder / "artifacts")
    return start_airflow(settings, _addresses(folder, server), components=WHAT_A_READER_NEEDS, deadline_seconds=240)


def _addresses(folder: Path, server: PostgresServer) -> LabAddresses:
    nowhere = "127.0.0.1:9"  # the discard port
    return LabAddresses(
        folder=str(folder),
        bootstrap_servers=nowhere,
        proxied_bootstrap_servers=nowhere,
        ledger_owner_dsn=f"postgresql://nobody:none@{nowhere}/none",
        ledger_reader_dsn=f"postgresql://nobody:none@{nowhere}/none",
        ledger_admin_dsn=f"postgresql://nobody:none@{nowhere}/none",
        store_dsn=server.dsn(STORE_ROLE, STORE_DATABASE),
        store_owner_dsn=server.dsn(STORE_OWNER, STORE_DATABASE),
        airflow_dsn=server.dsn(AIRFLOW_DATABASE, AIRFLOW_DATABASE),
        proxy_control_port=9,
    )


if __name__ == "__main__":
    sys.exit(main())
