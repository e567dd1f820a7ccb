"""Shrinks a schedule that fails to the fewest steps, and tells it as a story."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulator.known import known_as
from tests.simulator.oracle.clauses import Violation
from tests.simulator.schedule.play import Do, Play, Schedule

TRIES_MAX = 3_000


@dataclass(frozen=True)
class Failure:
    """A schedule, what it violated first, and the story of it."""

    seed: int
    schedule: Schedule
    violation: Violation
    story: tuple[str, ...]

    @property
    def name(self) -> str:
        """What stays the same while it is shrunk: the clause, and what kind of thing was or was not said."""
        return name_of_violation(self.violation)


def name_of_violation(violation: Violation) -> str:
    """The clause, and the sentence without the names of this schedule."""
    about = violation.sentence.partition("the truth has")[0]
    words = [word for word in about.replace(",", "").split() if not any(letter.isdigit() for letter in word)]
    return f"{violation.clause}: {' '.join(words[:14])}"


def play(schedule: Schedule, seed: int = -1) -> Failure | None:
    """None where nothing is violated but what is known."""
    played = Play(schedule)
    violations = [one for one in played.all() if known_as(one) is None]
    if not violations:
        return None
    return Failure(seed, schedule, violations[0], tuple(played.world.told))


def shrink(failure: Failure) -> Failure:
    """Leave out every run of steps without which the same thing fails still: longer ones first, then each by itself."""
    best, tries = failure, 0
    size = max(1, len(best.schedule.steps) // 2)
    while size:
        shrunk = None
        for steps in _without(best.schedule.steps, size):
            tries += 1
            found = play(best.schedule._replace(steps=steps), failure.seed)
            if found is not None and found.name == failure.name:
                shrunk = found
                break
            if tries >= TRIES_MAX:
                return best
        if shrunk is None:
            size = size // 2
        else:
            best = shrunk
    return best


def _without(steps: tuple[Do, ...], size: int) -> Iterator[tuple[Do, ...]]:
    """From the end on, since what comes late is most often not needed."""
    for end in range(len(steps), 0, -size):
        yield steps[: max(0, end - size)] + steps[end:]


def story_of(failure: Failure) -> str:
    """What happened, what was said, and what is true."""
    steps = "\n".join(f"    {tuple(step)!r}," for step in failure.schedule.steps)
    told = "\n".join(f"  {line}" for line in failure.story)
    return (
        f"seed {failure.seed}, {len(failure.schedule.steps)} steps: {failure.violation.clause}\n"
        f"  {failure.violation.sentence}\n"
        f"the story\n{told}\n"
        f"to play it again\n  {failure.schedule.config!r}\n{steps}"
    )
