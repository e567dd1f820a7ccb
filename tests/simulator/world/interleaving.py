"""Where the world goes on while the product works: at each question that the product asks of what is outside of it.

A schedule says beforehand which step happens at the how-manieth question of a run, or that the run is killed there.
Deterministic: the product asks the same questions in the same order, whatever machine it runs on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Killed(BaseException):
    """The process that runs the product is gone. No handler of the product may see it."""


@dataclass
class Interleaving:
    """waiting: what happens at which question of this run. at: the newest question. lost_answers: of the store."""

    waiting: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    kill_at: int | None = None
    at: int = 0
    counted: dict[str, int] = field(default_factory=dict)

    def begin(self, waiting: list[tuple[int, Callable[[], None]]], kill_at: int | None) -> None:
        self.at, self.waiting, self.kill_at = 0, sorted(waiting, key=lambda one: one[0]), kill_at

    def reached(self, question: str) -> None:
        """The product asks this."""
        self.at += 1
        while self.waiting and self.waiting[0][0] <= self.at:
            self.waiting.pop(0)[1]()
        if self.kill_at is not None and self.at >= self.kill_at:
            self.kill_at = None
            raise Killed(question)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Questions that the world does not hear: nothing happens at them, and none counts."""
        kept = self.at, self.waiting, self.kill_at
        self.waiting, self.kill_at = [], None
        try:
            yield
        finally:
            self.at, self.waiting, self.kill_at = kept

    def end(self) -> None:
        """What was due to happen during the run and came too late happens now."""
        self.kill_at = None
        while self.waiting:
            self.waiting.pop(0)[1]()
