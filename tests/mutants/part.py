"""Tries the mutants of one part: python -m tests.mutants.part NAME --seed 1 [--seconds N] [MODULE ...].

Writes build/mutants/NAME.json. Exit 3: a test fails without any mutant, so nothing was tried.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

import pytest

from .mutant import Mutant
from .mutations import mutants_of
from .parts import PARTS
from .trial import ALIVE, OPTIONS, ROOT, Outcome
from .trials import Trials

BROKEN = 3


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("part", choices=[*PARTS])
    asked.add_argument("modules", nargs="*")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--seconds", type=float)
    asked.add_argument("--unit-only", action="store_true", help="leave out the slow tests")
    given = asked.parse_args()
    part = PARTS[given.part]
    mutants = [mutant for file in given.modules or part.modules() for mutant in mutants_of(ROOT, file)]
    random.Random(given.seed).shuffle(mutants)
    print(f"{given.part}: {len(mutants)} mutants", flush=True)
    began = time.monotonic()
    quick = Trials(mutants, seconds=given.seconds)
    if not ran(quick, part.tests):
        return BROKEN
    outcomes = dict(quick.results)
    alive = [mutant for mutant, outcome in quick.results if outcome in ALIVE]
    if alive and not given.unit_only:
        left = None if given.seconds is None else given.seconds - (time.monotonic() - began)
        slow = Trials(alive, seconds=left, at_import=quick.at_import)
        if not ran(slow, part.slow):
            return BROKEN
        outcomes |= {mutant: outcome for mutant, outcome in slow.results if outcome is not Outcome.UNREACHED}
    write(given.part, outcomes, mutants[len(outcomes) :], seconds=time.monotonic() - began)
    return 0


def ran(trials: Trials, tests: Sequence[str]) -> bool:
    """Whether all tests pass without a mutant, so that the mutants were tried."""
    ended = pytest.main([*OPTIONS, *tests], plugins=[trials])
    if trials.failed or ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        print("\n".join(["without a mutant these tests fail:", *trials.failed]), file=sys.stderr)
        return False
    return True


def write(name: str, outcomes: dict[Mutant, Outcome], untried: Sequence[Mutant], *, seconds: float) -> None:
    document = {
        "seconds": round(seconds, 1),
        "results": [[asdict(mutant) | {"source": ""}, outcome] for mutant, outcome in outcomes.items()],
        "untried": [asdict(mutant) | {"source": ""} for mutant in untried],
    }
    (ROOT / "build" / "mutants" / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
