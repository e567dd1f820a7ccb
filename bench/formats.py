"""What a format of events costs: the same window in Avro and in Protobuf as in JSON, one after the other.

    python -m bench.formats --events 3000000 --times 4

Three topics hold the same events, as the lab's services write them, and one table their rows; the schemas are in a real
registry. All contracts run in one session, by turns. The ratio counts; it is of medians of warm runs. Writes
build/bench_formats.json; ends with 1 when a window did not match.
"""

import argparse
import json
import os
import shutil
import sys
from functools import partial
from pathlib import Path
from statistics import median

from bench.arms import FOLDER, run_ours
from bench.comparison import contract_document, environment
from bench.data_set import AGREES, DataSize, event, make_empty, write_ledger, write_topic
from bench.machine import machine
from bench.ours_app import take_cut
from lab.rounds.written_events import REGISTRY
from lab.servers.postgres import STORE_ROLE
from lab.servers.process import REPOSITORY
from lab.servers.schema_registry import SchemaRegistry
from lab.servers.stack import start_stack
from lab.services.event_format import AVRO_SCHEMA, PROTOBUF_SCHEMA, EventFormat, WrittenAs
from lab.soak.long_run import LongRun
from tallystick.connections.connections import environment_variable
from tallystick.contract.contract import load_contract
from tallystick.model.verdict import Verdict
from tallystick.store.engine import connect_store, migrate, open_store
from tallystick.store.runs.run_store import read_run

FIGURES = REPOSITORY / "build" / "bench_formats.json"
_FORMATS = (EventFormat.JSON, EventFormat.AVRO, EventFormat.PROTOBUF)
_AT = "2026-01-01T00:00:00+00:00"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=3_000_000, help="committed events (default 3000000)")
    parser.add_argument("--times", type=int, default=4, help="runs of each; the first is cold (default 4)")
    parser.add_argument("--seed", type=int, default=1, help="which events are made (default 1)")
    given = parser.parse_args()
    run, size = LongRun(), DataSize(events=given.events, seed=given.seed)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    registry = SchemaRegistry(FOLDER / "registry")
    try:
        registry.start()
        written = {
            EventFormat.JSON: WrittenAs(),
            EventFormat.AVRO: WrittenAs(
                EventFormat.AVRO, registry.register("avro", json.dumps(AVRO_SCHEMA), kind="AVRO")
            ),
            EventFormat.PROTOBUF: WrittenAs(
                EventFormat.PROTOBUF, registry.register("protobuf", PROTOBUF_SCHEMA, kind="PROTOBUF")
            ),
        }
        with start_stack(FOLDER / "lab") as stack, environment(stack):
            os.environ[environment_variable(REGISTRY)] = json.dumps({"url": registry.url})
            make_empty(stack, size, [_topic(one) for one in _FORMATS])
            migrate(connect_store(stack.store_owner_dsn), grant_to=STORE_ROLE)
            engine = open_store(stack.store_dsn)
            contracts = [_contract(one, number) for number in range(given.times) for one in _FORMATS]
            for path in contracts:
                take_cut(engine, load_contract(path))
            for one in _FORMATS:
                run.say(f"writing {size.events:,} events in {one}")
                write_topic(stack, size, _topic(one), partial(_value, written[one], size))
            run.say("writing as many rows")
            write_ledger(stack, size, (AGREES,))
            told = run_ours(contracts)
            runs = [read_run(engine, path.stem, 1) for path in contracts]
    finally:
        registry.stop()
    seconds = {str(one): told["seconds"][place :: len(_FORMATS)] for place, one in enumerate(_FORMATS)}
    warm = {name: median(some[1:] or some) for name, some in seconds.items()}
    ratios = {f"{name}_over_json": round(warm[name] / warm["json"], 3) for name in warm if name != "json"}
    figures = {"events": size.events, "seed": size.seed, "seconds": seconds, "ratios": ratios, "answer": told["answer"]}
    FIGURES.write_text(json.dumps({**figures, **machine()}, indent=2) + "\n")
    for name, ratio in ratios.items():
        run.say(f"{name}: {ratio:.2f}")
    sys.exit(0 if all(one and one.result.verdict is Verdict.MATCHED for one in runs) else 1)


def _topic(one: EventFormat) -> str:
    return f"bench.{one}"


def _value(written: WrittenAs, size: DataSize, number: int) -> bytes:
    event_id, payment_id, amount_minor = event(size, number)
    fields = {"event_id": event_id, "payment_id": payment_id, "leg": "payment", "currency": "EUR", "occurred_at": _AT}
    return written.write({**fields, "amount_minor": amount_minor})


def _contract(one: EventFormat, number: int) -> Path:
    document = contract_document(AGREES, f"{one}_{number}")
    document["legs"] = {"payment": _topic(one)}
    if one is not EventFormat.JSON:
        document["event"] = {"format": str(one)}
        document["kafka"]["schema_registry"] = REGISTRY
    path = FOLDER / f"{one}_{number}.yaml"
    path.write_text(json.dumps(document))
    return path


if __name__ == "__main__":
    main()
