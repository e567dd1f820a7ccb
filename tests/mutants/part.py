"""Tries the mutants of one part: python -m tests.mutants.part NAME --seed 1 [--seconds N] [--go-on] [MODULE ...].

Writes build/mutants/NAME.json, every half a minute and at the end. What stands there of the part's other modules stays,
while their source is what it was. Exit 3: a test fails without any mutant, so nothing was tried.
"""

import argparse
import random
import sys
import time
from collections.abc import Mapping, Sequence

import pytest

from .kept import Kept, read_kept, source_of, write_kept
from .mutant import Mutant
from .mutations import mutants_of
from .parts import PARTS
from .trial import ALIVE, OPTIONS, ROOT, Outcome
from .trials import Trials

BROKEN = 3
QUICK_SHARE = 0.7
"""Of the time that is given: the rest is for the slow tests, on what the quick ones leave."""


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("part", choices=[*PARTS])
    asked.add_argument("modules", nargs="*")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--seconds", type=float)
    asked.add_argument("--unit-only", action="store_true", help="leave out the slow tests")
    asked.add_argument("--go-on", action="store_true", help="what a test has noticed before is not tried again")
    given = asked.parse_args()
    part, files = PARTS[given.part], given.modules or PARTS[given.part].modules()
    trying = Trying(given.part, files, seed=given.seed, go_on=given.go_on)
    print(f"{given.part}: {len(trying.mutants)} mutants", flush=True)
    share = 1 if given.unit_only else QUICK_SHARE
    quick = Trials(trying.mutants, seconds=given.seconds and given.seconds * share, keep=trying.keep)
    if not ran(quick, part.tests):
        return BROKEN
    alive = [mutant for mutant, outcome in quick.results if outcome in ALIVE]
    if alive and not given.unit_only:
        left = given.seconds and max(0, given.seconds - trying.seconds)
        slow = Trials(alive, seconds=left, at_import=quick.at_import, keep=trying.keep)
        if not ran(slow, part.slow):
            return BROKEN
    return 0


class Trying:
    """Which mutants of a part are tried now, and what is known of all of them."""

    def __init__(self, part: str, files: Sequence[str], *, seed: int, go_on: bool) -> None:
        self.part, self.seed, self.began = part, seed, time.monotonic()
        earlier = read_kept(part)
        self.others = [one for one in earlier.results if one[0].file not in files]
        self.others_untried = [one for one in earlier.untried if one.file not in files]
        made = [mutant for file in files for mutant in mutants_of(ROOT, file)]
        random.Random(seed).shuffle(made)
        before = {place_of(mutant): outcome for mutant, outcome in earlier.results} if go_on else {}
        self.spent = earlier.seconds if go_on else 0.0
        self.outcomes = {mutant: before[place_of(mutant)] for mutant in made if place_of(mutant) in before}
        noticed = {mutant for mutant, outcome in self.outcomes.items() if outcome not in ALIVE}
        self.made = made
        left = [mutant for mutant in made if mutant not in noticed]
        self.mutants = sorted(left, key=lambda mutant: mutant not in self.outcomes)  # first those that were alive

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def keep(self, found: Mapping[Mutant, Outcome]) -> None:
        """Write what is known by now. A slow test that calls a function no oftener says nothing new of it."""
        news = {mutant: outcome for mutant, outcome in found.items() if not self._says_less(mutant, outcome)}
        self.outcomes |= news
        untried = [mutant for mutant in self.made if mutant not in self.outcomes]
        files = {mutant.file for mutant in self.made} | {mutant.file for mutant, _ in self.others}
        write_kept(
            self.part,
            Kept(
                seed=self.seed,
                seconds=round(self.spent + self.seconds, 1),
                sources={file: source_of(file) for file in sorted(files)},
                results=[*self.others, *self.outcomes.items()],
                untried=[*self.others_untried, *untried],
            ),
        )

    def _says_less(self, mutant: Mutant, outcome: Outcome) -> bool:
        return outcome is Outcome.UNREACHED and mutant in self.outcomes


def place_of(mutant: Mutant) -> tuple[object, ...]:
    """As a source that has not changed since names it."""
    return *mutant.name, mutant.line


def ran(trials: Trials, tests: Sequence[str]) -> bool:
    """Whether all tests pass without a mutant, so that the mutants were tried."""
    ended = pytest.main([*OPTIONS, *tests], plugins=[trials])
    if trials.failed or ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        print("\n".join(["without a mutant these tests fail:", *trials.failed]), file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
