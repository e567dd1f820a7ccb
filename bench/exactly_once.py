"""What does exactly-once itself cost a producer?

    python -m bench.exactly_once --rounds 4 --mib 400

Kafka's own producer-perf-test writes as fast as it can to one topic of the lab's broker, under four promises, each in
a process of its own. A round runs all four; the order moves on by one each round, so that none is always first. A ratio
is taken within its round, for rounds drift; the table shows medians, lowest and highest. One run before the first round
warms the broker, and a fifth of each run's records the producer: neither is counted. Prints the ratios beside those
of Kafka's authors, and why they differ; writes build/bench_eos.json.
"""

import argparse
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from rich.table import Table

from bench.machine import machine
from lab.servers.broker import DEFAULT_JARS
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack, start_stack
from lab.soak.long_run import LongRun

FOLDER = REPOSITORY / "build" / "bench_eos"
FIGURES = REPOSITORY / "build" / "bench_eos.json"
TOPIC = "bench.exactly_once"
PARTITIONS = 2
COMMIT_EVERY_MS = 100
_PRODUCER_SECONDS_MAX = 1800
_RATE = re.compile(r"^\d+ steady state records sent, ([\d.]+) records/sec", re.MULTILINE)

MODES: Mapping[str, tuple[str, ...]] = {
    "acks=1": ("acks=1", "enable.idempotence=false", "max.in.flight.requests.per.connection=5"),
    "acks=all in order": ("acks=all", "enable.idempotence=false", "max.in.flight.requests.per.connection=1"),
    "idempotent": ("acks=all", "enable.idempotence=true", "max.in.flight.requests.per.connection=5"),
    "transactional": ("acks=all", "enable.idempotence=true", "max.in.flight.requests.per.connection=5"),
}
"""The producer's settings. Without idempotence only one request in flight keeps the order when one is sent again."""

DIFFERS_HERE = (
    "One broker and replication factor 1: acks=all waits for no other broker, and a transaction's markers and its log "
    "are written once instead of three times.",
    "Producer and broker share the machine's cores, and the broker's JVM is the lab's: the quick compiler, the small "
    "collector. What a promise costs in work is seen sooner, what it costs in waiting for a network later.",
    "On loopback a request's way is short: one in flight loses little by waiting, and much by sending many small ones.",
    "Theirs was Kafka 0.11 in 2017, where idempotence and transactions were new. Since then transactions were made "
    "safer, with an epoch for each, and a stock producer waits 5 ms for a fuller batch.",
    "Streams was not run here: its figure belongs to reading, processing and writing, and is shown for completeness.",
)


class NoRate(ValueError):
    """The producer's words hold no line on its steady state."""


@dataclass(frozen=True)
class Published:
    """One figure of Kafka's authors, with messages of 1 KB and a commit each 100 ms. mode None: Streams."""

    mode: str | None
    over: str
    below_percent: str


PUBLISHED = (
    Published("transactional", "acks=all in order", "3"),
    Published("transactional", "acks=1", "20"),
    Published(None, "at least once", "15 to 30"),
)
"""Confluent, "Exactly-once Semantics are Possible: Here's How Kafka Does it", 2017."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="each runs every mode once (default 4)")
    parser.add_argument("--mib", type=int, default=400, help="each run writes so much (default 400)")
    parser.add_argument("--record-bytes", type=int, action="append", help="of a message (default 1024, then 100)")
    given = parser.parse_args()
    run, rates = LongRun(), {}
    shutil.rmtree(FOLDER, ignore_errors=True)
    with start_stack(FOLDER / "lab") as stack:
        for record_bytes in given.record_bytes or (1024, 100):
            rates[record_bytes] = _all_rounds(run, stack, given.rounds, record_bytes, given.mib)
    by_size = {f"{size} B": {"records_per_second": of_size, **compare(of_size)} for size, of_size in rates.items()}
    figures = {"mib": given.mib, "messages": by_size, "seconds": round(run.seconds, 1), **machine()}
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    for record_bytes, of_size in rates.items():
        run.console.print(rates_table(record_bytes, of_size))
    run.console.print(published_table(rates))
    for sentence in DIFFERS_HERE:
        run.console.print(f"- {sentence}", highlight=False, soft_wrap=True)


def order_of(number: int, modes: Sequence[str]) -> list[str]:
    """The order of one round, counted from 0: each round begins with the next mode."""
    first = number % len(modes)
    return [*modes[first:], *modes[:first]]


def read_rate(words: str) -> float:
    """Records per second after the warm-up, as the producer said it at its end. Raises NoRate."""
    found = _RATE.search(words)
    if found is None:
        raise NoRate(f"producer-perf-test: expected a line on its steady state, got: {words[-500:]}")
    return float(found.group(1))


def below_percent(rates: Mapping[str, Sequence[float]], mode: str, over: str) -> float:
    """By so much a mode's throughput is below another's, by the median of the rounds' own ratios; above is negative."""
    return round(100 * (1 - median(one / other for one, other in zip(rates[mode], rates[over], strict=True))), 1)


def compare(rates: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Medians in records per second, and what each promise costs against the two weaker ones, in percent."""
    return {
        "medians": {mode: median(of_mode) for mode, of_mode in rates.items()},
        "below_percent": {
            f"{mode} below {over}": below_percent(rates, mode, over)
            for mode in ("idempotent", "transactional")
            for over in ("acks=all in order", "acks=1")
        },
    }


def rates_table(record_bytes: int, rates: Mapping[str, Sequence[float]]) -> Table:
    """The modes, a line each."""
    table = Table("producer", "records/s", "MiB/s", "lowest", "highest", "below acks=1, %", title=f"{record_bytes} B")
    for mode, of_mode in rates.items():
        middle = median(of_mode)
        table.add_row(
            mode,
            f"{middle:,.0f}",
            f"{middle * record_bytes / 2**20:,.1f}",
            f"{min(of_mode):,.0f}",
            f"{max(of_mode):,.0f}",
            f"{below_percent(rates, mode, 'acks=1'):.1f}",
        )
    return table


def published_table(rates: Mapping[int, Mapping[str, Sequence[float]]]) -> Table:
    """What Kafka's authors published, and the same here, by bytes of a message."""
    table = Table("throughput", "published, % below", *(f"here, {size} B" for size in rates))
    for one in PUBLISHED:
        here = [
            "not run" if one.mode is None else f"{below_percent(of_size, one.mode, one.over):.1f}"
            for of_size in rates.values()
        ]
        table.add_row(f"{one.mode or 'Streams'}, below {one.over}", one.below_percent, *here)
    return table


def _all_rounds(run: LongRun, stack: LabStack, rounds: int, record_bytes: int, mib: int) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {mode: [] for mode in MODES}
    _produce(stack, "acks=1", record_bytes, (mib << 20) // record_bytes)
    for number in range(rounds):
        for mode in order_of(number, list(MODES)):
            rates[mode].append(_produce(stack, mode, record_bytes, (mib << 20) // record_bytes))
        told = ", ".join(f"{mode} {of_mode[-1]:,.0f}" for mode, of_mode in rates.items())
        run.say(f"{record_bytes} B, round {number + 1} of {rounds}, records/s: {told}")
    return rates


def _produce(stack: LabStack, mode: str, record_bytes: int, records: int) -> float:
    """Records per second of one run, on a topic that is there for it alone."""
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS)])[TOPIC].result(60)
    argv = ["java", "-Xmx1g", "-cp", f"{DEFAULT_JARS}/*", "org.apache.kafka.tools.ProducerPerformance"]
    argv += ["--bootstrap-server", stack.bootstrap_servers, "--topic", TOPIC, "--throughput", "-1"]
    argv += ["--record-size", str(record_bytes), "--num-records", str(records), "--warmup-records", str(records // 5)]
    argv += ["--command-property", *MODES[mode]]
    argv += ["--transaction-duration-ms", str(COMMIT_EVERY_MS)] if mode == "transactional" else []
    try:
        ended = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=_PRODUCER_SECONDS_MAX)
    finally:
        admin.delete_topics([TOPIC])[TOPIC].result(60)
    return read_rate(ended.stdout)


if __name__ == "__main__":
    main()
