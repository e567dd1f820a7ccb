"""What a column costs that is compared besides money: the same window with it and without, one after the other.

    python -m bench.compared --events 1000000 --times 4

All contracts read the same topic and table in one session, by turns. One compares money, one also `payment_id`, a text
that is another one in each event, and one also `fee`, a number of which the ledger has zeros at the end that events do
not write. The ratio counts; it is of medians of warm runs. Writes build/bench_compared.json; ends with 1 when a window
did not match.
"""

import argparse
import json
import shutil
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bench.arms import FOLDER, run_ours
from bench.comparison import contract_document, environment
from bench.data_set import AGREES, DataSize, event, make_empty, write_ledger, write_topic
from bench.machine import machine
from bench.ours_app import take_cut
from lab.servers.postgres import STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.stack import start_stack
from lab.soak.long_run import LongRun
from tallystick.contract.contract import load_contract
from tallystick.store.engine import connect_store, migrate, open_store

FIGURES = REPOSITORY / "build" / "bench_compared.json"
_RULES: dict[str, dict[str, Any]] = {
    "money": {},
    "text": {"payment_id": "exact"},
    "number": {"fee": {"exact": "number"}},
}
_ADD_FEE = f"ALTER TABLE {AGREES} ADD COLUMN fee numeric(12, 2) GENERATED ALWAYS AS (amount_minor / 100.0) STORED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000, help="committed events (default 1000000)")
    parser.add_argument("--times", type=int, default=4, help="runs of each; the first is cold (default 4)")
    parser.add_argument("--seed", type=int, default=1, help="which events are made (default 1)")
    given = parser.parse_args()
    run, size = LongRun(), DataSize(events=given.events, seed=given.seed)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with start_stack(FOLDER / "lab") as stack, environment(stack):
        make_empty(stack, size)
        with psycopg.connect(stack.ledger_owner_dsn) as owner:
            owner.execute(_ADD_FEE)
        migrate(connect_store(stack.store_owner_dsn), grant_to=STORE_ROLE)
        engine = open_store(stack.store_dsn)
        contracts = [_contract(rule, number) for number in range(given.times) for rule in _RULES]
        for path in contracts:
            take_cut(engine, load_contract(path))
        run.say(f"writing {size.events:,} events, and as many rows")
        write_topic(stack, size, value_of=partial(_with_fee, size))
        write_ledger(stack, size, (AGREES,))
        told = run_ours(contracts)
    seconds = {rule: told["seconds"][place :: len(_RULES)] for place, rule in enumerate(_RULES)}
    warm = {rule: median(some[1:] or some) for rule, some in seconds.items()}
    ratios = {rule: round(warm[rule] / warm["money"], 3) for rule in _RULES if rule != "money"}
    figures = {"events": size.events, "seed": size.seed, "seconds": seconds, "ratios": ratios, "answer": told["answer"]}
    FIGURES.write_text(json.dumps({**figures, **machine()}, indent=2) + "\n")
    for rule, ratio in ratios.items():
        run.say(f"{rule}: {ratio:.2f} of money alone ({warm[rule]:.2f} s, {warm['money']:.2f} s)")
    sys.exit(0 if told["answer"]["verdict"] == "MATCHED" else 1)


def _with_fee(size: DataSize, number: int) -> bytes:
    event_id, payment_id, amount_minor = event(size, number)
    said = {"event_id": event_id, "payment_id": payment_id, "leg": "payment", "amount_minor": amount_minor}
    return json.dumps(said | {"currency": "EUR", "fee": amount_minor / 100}, separators=(",", ":")).encode()


def _contract(rule: str, number: int) -> Path:
    """Both keys are the event's own, so that the payment's is free to be compared."""
    document = contract_document(AGREES, f"{rule}_{number}")
    document["ledger"]["columns"] = {"transaction_key": "event_id"}
    document |= {"event": {"transaction_key": "event_id"}, "compare": _RULES[rule]}
    path = FOLDER / f"{rule}_{number}.yaml"
    path.write_text(json.dumps(document))
    return path


if __name__ == "__main__":
    main()
