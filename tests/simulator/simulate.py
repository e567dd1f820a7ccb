"""Plays many schedules: python -m tests.simulator.simulate --schedules 1000 --seed 1

Prints each failure as a story, shrunk to its fewest steps, with the seed and the commit that give it again. Writes
build/simulate.json. Exits 1 where an invariant was violated, or where something was reached too seldom.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulator import reached
from tests.simulator.known import known_as
from tests.simulator.schedule.draw import WINDOWS, draw
from tests.simulator.schedule.play import QUIET_WINDOWS, Play
from tests.simulator.schedule.shrink import Failure, shrink, story_of
from tests.simulator.standins.seams import stand_ins

ROOT = Path(__file__).parents[2]
PROCESSES = 2
STORIES_MAX = 5
REACHED_FROM = 5_000
"""With fewer schedules nobody can ask that all was reached: what is rarest comes once in 240."""


@dataclass
class Played:
    """What came of some schedules."""

    schedules: int = 0
    windows: int = 0
    reached: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: "Played") -> None:
        self.schedules += other.schedules
        self.windows += other.windows
        self.reached += other.reached
        self.known += other.known
        self.failures += other.failures


def play_some(first: int, step: int, count: int, until: float | None, until_first: bool = False) -> Played:
    """Every step-th seed from the first on. until: when to stop, whatever is left."""
    played = Played()
    gc.disable()
    with stand_ins():
        gc.freeze()  # what was loaded stays: to look through it takes longer than to look through fifty schedules
        for seed in range(first, first + count * step, step):
            if until is not None and time.monotonic() > until:
                break
            one = Play(draw(seed))
            violations = one.all()
            played.schedules += 1
            played.windows += one.windows
            played.reached += one.reached
            new = [violation for violation in violations if known_as(violation) is None]
            played.known.update({name for violation in violations if (name := known_as(violation)) is not None})
            if new:
                played.failures.append(Failure(seed, one.schedule, new[0], tuple(one.world.told)))
                if until_first:
                    break
            one.forget()
            if played.schedules % 50 == 0:
                gc.collect()
    return played


def simulate(schedules: int, seed: int, *, seconds: float | None, processes: int, until_first: bool = False) -> Played:
    """All of them, in some processes; with until_first none of a process's behind its first failure."""
    until = None if seconds is None else time.monotonic() + seconds
    shares = [(seed + n, processes, len(range(n, schedules, processes)), until, until_first) for n in range(processes)]
    played = Played()
    with ProcessPoolExecutor(processes) as pool:
        for some in pool.map(play_some, *zip(*shares, strict=True)):
            played.add(some)
    played.failures.sort(key=lambda one: one.seed)
    return played


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=None, help="stop after so long, whatever is left")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--until-first", action="store_true", help="stop at the first violation, and do not shrink it")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "simulate.json")
    arguments = parser.parse_args(argv)
    began = time.monotonic()
    first = arguments.until_first
    played = simulate(
        arguments.schedules, arguments.seed, seconds=arguments.seconds, processes=arguments.processes, until_first=first
    )
    taken = time.monotonic() - began
    missed = reached.missed(played.reached) if played.schedules >= REACHED_FROM and not first else {}
    figures = _figures(played, arguments.seed, taken, missed)
    arguments.to.parent.mkdir(parents=True, exist_ok=True)
    arguments.to.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    if not first:
        _print(played, figures, missed)
    return int(bool(played.failures or missed))


def _figures(played: Played, seed: int, taken: float, missed: dict[str, int]) -> dict[str, object]:
    return {
        "schedules": played.schedules,
        "windows": played.windows,
        "windows_per_schedule": WINDOWS + QUIET_WINDOWS,
        "seed": seed,
        "commit": commit(),
        "violations": [[one.seed, *one.violation] for one in played.failures],
        "known": dict(sorted(played.known.items())),
        "reached": dict(sorted(played.reached.items())),
        "reached_too_seldom": missed,
        "seconds": round(taken, 1),
    }


def _print(played: Played, figures: dict[str, object], missed: dict[str, int]) -> None:
    told: set[str] = set()
    with stand_ins():
        for failure in played.failures:
            if failure.name not in told and len(told) < STORIES_MAX:
                told.add(failure.name)
                print(f"\ncommit {figures['commit']}, {story_of(shrink(failure))}")
    for name, times in sorted(played.known.items()):
        print(f"known, and not mended yet: {name}: in {times} schedules")
    for name, times in missed.items():
        print(f"reached too seldom: {name}: {times}")
    for name in reached.reached_all_the_same(played.reached):
        print(f"said to be out of reach, and reached: {name}")
    per_window = 1000 * float(str(figures["seconds"])) / max(1, played.windows)
    print(
        f"{played.schedules} schedules, {played.windows} windows in {figures['seconds']} s ({per_window:.2f} ms a "
        f"window): {len(played.failures)} with a violation"
    )


def commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
