"""Draws a schedule from a seed: what kind of books, which few kinds of faults, and what happens when.

Each schedule has few kinds of faults, and these often: with all of them at once each would hide the others.
"""

import random

from tests.simulator.schedule.ledger_steps import LEDGER_STEPS
from tests.simulator.schedule.log_steps import LOG_STEPS
from tests.simulator.schedule.people_steps import COMPENSATING, PEOPLE_STEPS
from tests.simulator.schedule.play import QUIET_WINDOWS, Do, Schedule
from tests.simulator.world.config import Config

WINDOWS = 20 - QUIET_WINDOWS
"""With those that are judged when all is over a schedule has twenty."""
ORDINARY = ("trade", "trade", "half_trade", "pay", "commit_first", "carry", "commit_second", "wait")
MISTAKES = (
    "redeliver",
    "lose",
    "carry_wrong",
    "carry_unread",
    "phantom",
    "first_again",
    "both_again",
    "abort_first",
    "abort_second",
    "carry_out_of_turn",
    "commit_first_slowly",
    "pay_one_leg",
    "canary_key",
    "keyless_legs",
)
SELDOM = ("end_on_one_partition",)
"""What needs books of one kind only, so that it is drawn twice as often."""
FAULTS = (*sorted(LEDGER_STEPS), *sorted(LOG_STEPS), *SELDOM)
RUN_FAULTS = ("kill", "meanwhile")
QUESTIONS_OF_A_RUN = 70


def draw(seed: int, *, windows: int = WINDOWS) -> Schedule:
    """The same seed gives the same schedule."""
    chance = random.Random(seed)
    config = _config(chance)
    mistakes = chance.sample(MISTAKES, chance.randint(0, 3))
    faults = chance.sample(FAULTS, chance.choice((0, 1, 1, 2, 2, 3)))
    people = _people(chance, config)
    around = chance.sample(RUN_FAULTS, chance.choice((0, 0, 1, 2)))
    kinds = [*ORDINARY, *mistakes, *mistakes, *faults, *faults, *people, *people]
    steps = [_step(chance, "trade") for _ in range(chance.choice((0, 0, 1, 2)))]
    for _ in range(windows):
        steps += [_step(chance, chance.choice(kinds)) for _ in range(chance.choice((0, 1, 2, 3, 4, 6)))]
        if "meanwhile" in around and chance.random() < 0.3:
            late = _step(chance, chance.choice(faults if faults and chance.random() < 0.5 else kinds))
            steps.append(late._replace(at=chance.randint(1, QUESTIONS_OF_A_RUN)))
        if "kill" in around and people and chance.random() < 0.2:
            steps += [Do("kill", chance.randint(1, 40)), _step(chance, chance.choice(people))]
        if "kill" in around and chance.random() < 0.2:
            steps.append(Do("kill", chance.randint(1, QUESTIONS_OF_A_RUN)))
        if "close_cut" in people and chance.random() < 0.15:  # only what nobody can judge is closed
            steps += [Do("cluster_down", at=chance.randint(15, 45)), Do("window"), _step(chance, "close_cut")]
            steps.append(Do("cluster_down"))
        steps.append(Do("window"))
    return Schedule(config, tuple(steps))


def _people(chance: random.Random, config: Config) -> list[str]:
    """Who does what; where a contract compensates, half of the time somebody lets it."""
    compensates = not config.topic_first and config.slice_by != "jdbc"
    known = PEOPLE_STEPS if compensates else [one for one in PEOPLE_STEPS if one not in COMPENSATING]
    people = chance.sample(known, chance.choice((0, 0, 1, 2, 3)))
    return [*people, "plan_and_act"] if compensates and chance.random() < 0.5 else people


def _config(chance: random.Random) -> Config:
    return Config(
        direction=chance.choice(("topic_to_ledger", "ledger_to_topic")),
        slice_by=chance.choice(("xmin", "xmin", "written_xid", "written_xid", "jdbc")),
        legs=chance.choice((1, 1, 2)),
        key_is_unique=chance.random() < 0.2,
        producer_mode=chance.choice(("transactional", "transactional", "plain")),
        carrier_mode=chance.choice(("exactly", "at_least", "at_most")),
        contracts=chance.choice((1, 1, 1, 1, 2)),
    )


def _step(chance: random.Random, name: str) -> Do:
    return Do(name, chance.randrange(6), chance.randrange(12))
