"""A plugin of pytest: where the tests would run, the mutants are tried with them."""

import time
from collections.abc import Callable, Generator, Mapping
from typing import Any

import pytest

from .mutant import Mutant
from .trial import ALIVE, Outcome, Suite, calls_of, freeze, try_mutant

_TOLD_SECONDS = 30


def _nowhere(found: Mapping[Mutant, Outcome]) -> None:
    pass


class Trials:
    """results: of the mutants that were tried, in order. failed: tests that fail without a mutant.

    keep: given all results now and then, so that a run which is ended has what it found.
    """

    def __init__(
        self,
        mutants: list[Mutant],
        *,
        seconds: float | None,
        at_import: frozenset[tuple[str, str]] = frozenset(),
        keep: Callable[[Mapping[Mutant, Outcome]], None] = _nowhere,
    ) -> None:
        self.mutants, self.seconds, self.at_import, self.keep = mutants, seconds, at_import, keep
        self.watched = frozenset(mutant.file for mutant in mutants)
        self.results: list[tuple[Mutant, Outcome]] = []
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        with calls_of(self.watched) as called:
            result = yield
        self.at_import |= called
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        suite = Suite(session.items, self.watched, self.at_import)
        suite.run_whole()
        self.failed = suite.failed
        if self.failed or session.testsfailed:
            return True
        print(f"{len(suite.items)} tests in {sum(suite.seconds.values()):.0f} s without a mutant", flush=True)
        freeze()
        self._try_all(suite)
        self.keep(dict(self.results))
        return True

    def _try_all(self, suite: Suite) -> None:
        began = told = time.monotonic()
        for n, mutant in enumerate(self.mutants):
            now = time.monotonic()
            if self.seconds is not None and now - began > self.seconds:
                print(f"time is over: {len(self.mutants) - n} mutants are not tried", flush=True)
                return
            if now - told > _TOLD_SECONDS:
                told = now
                print(f"  {n} of {len(self.mutants)}, {self._alive()} alive", flush=True)
                self.keep(dict(self.results))
            self.results.append((mutant, try_mutant(suite, mutant)))

    def _alive(self) -> int:
        return sum(outcome in ALIVE for _, outcome in self.results)
