"""Plays a sample of simulated schedules again on real servers: python -m tests.simulator.replay.replay --schedules 20

One broker, PostgreSQL for ledger and store, Spark in this process. Prints a line a schedule, a difference as a story,
and writes build/replay.json. Exits 1 where the real servers said something else than the simulated world.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from lab.servers.process import REPOSITORY
from lab.servers.stack import start_stack
from tests.simulator.replay.compare import Difference, Replayed, Servers, replay
from tests.simulator.replay.record import NotReplayable, RecordedPlay, left_out_at_once
from tests.simulator.replay.store_clock import make_template
from tests.simulator.schedule.draw import WINDOWS, draw
from tests.simulator.schedule.play import Schedule
from tests.simulator.simulate import commit
from tests.simulator.standins.seams import stand_ins
from tests.stack.live import SPARK_SETTINGS

STORY_LINES = 40


@dataclass
class Sample:
    """What was drawn. left_out: schedules that cannot be replayed, by why."""

    replayed: dict[int, Replayed] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)

    @property
    def differences(self) -> dict[int, Difference]:
        return {seed: one.difference for seed, one in self.replayed.items() if one.difference is not None}


def record(seed: int, *, windows: int = WINDOWS) -> RecordedPlay:
    """The schedule of a seed, played in the simulated world. Raises NotReplayable."""
    return recorded(draw(seed, windows=windows))


def recorded(schedule: Schedule) -> RecordedPlay:
    """Raises NotReplayable."""
    if why := left_out_at_once(schedule):
        raise NotReplayable(why)
    with stand_ins():
        played = RecordedPlay(schedule)
        played.all()
    return played


def sample(servers: Servers, schedules: int, seed: int, *, windows: int, until: float | None) -> Sample:
    """Seeds from the first on, until so many could be replayed."""
    drawn = Sample()
    while len(drawn.replayed) < schedules and (until is None or time.monotonic() < until):
        try:
            played = record(seed, windows=windows)
        except NotReplayable as why:
            drawn.left_out[str(why)] += 1
        else:
            drawn.replayed[seed] = replay(played, servers, f"s{seed}")
            drawn.steps.update(step.name for step in played.schedule.steps)
            _print(seed, played, drawn.replayed[seed])
        seed += 1
    return drawn


def _print(seed: int, played: RecordedPlay, done: Replayed) -> None:
    config = played.schedule.config
    books = f"{config.direction} by {config.slice_by}, {config.legs} legs, {config.contracts} contracts"
    said = f"{seed:6}  {books:58} {done.windows:3} windows {done.runs:3} runs {done.seconds:6.1f} s"
    difference = done.difference
    print(f"{said}  {'the same' if difference is None else 'DIFFERS'}", flush=True)
    if difference is not None:
        print(f"\n{story_of(seed, difference)}", flush=True)


def story_of(seed: int, difference: Difference) -> str:
    """The steps, what the simulated run said, what the real one said."""
    story = "\n".join(f"  {line}" for line in difference.story[-STORY_LINES:])
    real = "\n".join(f"  {line}" for line in difference.real_story[-STORY_LINES // 4 :])
    return (
        f"seed {seed}: {difference.what}\nthe story\n{story}\nof which the real servers said\n{real}\n"
        f"the simulated run said\n  {difference.simulated}\nthe real one said\n  {difference.real}\n"
    )


@contextmanager
def open_servers() -> Iterator[Servers]:
    """Broker, PostgreSQL twice, and a Spark session in this process."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # a broker that starts again is no news
    parent = REPOSITORY / "build" / "replay"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder, start_stack(Path(folder)) as stack:
        Path(folder).chmod(0o755)
        builder = SparkSession.builder.master("local[2]").appName("replay")
        for name, value in SPARK_SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield Servers.of(stack, make_template(stack.store_server), Path(folder) / "artifacts")
        finally:
            spark.stop()


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--windows", type=int, default=WINDOWS)
    parser.add_argument("--seconds", type=float, default=None, help="begin no further schedule after so long")
    parser.add_argument("--to", type=Path, default=REPOSITORY / "build" / "replay.json")
    given = parser.parse_args(argv)
    began = time.monotonic()
    with open_servers() as servers:
        ready = time.monotonic()
        until = None if given.seconds is None else ready + given.seconds
        drawn = sample(servers, given.schedules, given.seed, windows=given.windows, until=until)
        versions = _versions(servers)
    figures = _figures(drawn, given.seed, given.windows) | {"versions": versions, "commit": commit()}
    figures |= {"seconds": round(time.monotonic() - began, 1), "seconds_to_start": round(ready - began, 1)}
    given.to.parent.mkdir(parents=True, exist_ok=True)
    given.to.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    for why, times in sorted(drawn.left_out.items()):
        print(f"left out: {why}: {times}")
    print(
        f"{len(drawn.replayed)} schedules, {figures['windows']} windows, {figures['runs']} runs in "
        f"{figures['seconds']} s: {len(drawn.differences)} with a difference"
    )
    return int(bool(drawn.differences))


def _figures(drawn: Sample, seed: int, windows: int) -> dict[str, Any]:
    replayed = drawn.replayed
    return {
        "schedules": len(replayed),
        "seed": seed,
        "seeds": sorted(replayed),
        "windows_drawn_per_schedule": windows,
        "windows": sum(one.windows for one in replayed.values()),
        "runs": sum(one.runs for one in replayed.values()),
        "steps": dict(sorted(drawn.steps.items())),
        "left_out": dict(sorted(drawn.left_out.items())),
        "differences": [[n, one.what, one.simulated, one.real] for n, one in drawn.differences.items()],
    }


def _versions(servers: Servers) -> dict[str, str]:
    with closing(servers.ledger.connect()) as connection:
        postgres = connection.info.parameter_status("server_version") or ""
    jars = (REPOSITORY / ".jars" / "broker").glob("kafka_*.jar")
    return {"kafka": min(jar.stem for jar in jars), "postgresql": postgres, "spark": pyspark.__version__}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
