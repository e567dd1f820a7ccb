"""Draws a schedule from a seed: what kind of books, which few kinds of faults, and what happens when.

Each schedule has few kinds of faults, and these often: with all of them at once each would hide the others.
"""

import random

from tests.simulator.schedule.file_steps import FILE_STEPS
from tests.simulator.schedule.ledger_steps import LEDGER_STEPS, NEWEST
from tests.simulator.schedule.log_steps import LOG_STEPS
from tests.simulator.schedule.people_steps import COMPENSATING, PEOPLE_STEPS
from tests.simulator.schedule.play import QUIET_WINDOWS, Do, Schedule
from tests.simulator.schedule.posting_steps import POSTING_STEPS
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
THEMES = (
    ("retain_all", "retain", "touch", "rewrite", "redeliver", "first_again", "both_again", "by_hand"),
    ("archive", "delete", "replace_row", "change", "touch", "redeliver", "both_again", "switch_over"),
    ("plan_and_act", "act", "write_off", "by_hand", "correct_by_hand", "retain_all", "carry", "redeliver"),
    ("come_back", "redeliver", "first_again"),
    ("compact", "redeliver", "first_again", "abort_first", "pay", "rewrite_tail"),
    ("back_up", "trade", "restore", "carry", "plan_and_act", "act"),
)
"""What befalls one payment after another: the log forgets it, its row changes, it is repaired, its producer starts
again, its topic compacts, a backup of its ledger is put back. Two or three of a theme's steps that come one after the
other, a window between them or none, find what none does alone.
"""
OF_REPAIRS = THEMES[2]
RUN_FAULTS = ("kill", "meanwhile", "relay", "cut_back")
CUT_BACK = ("truncate", "rewrite_tail")
"""What a log loses while a run reads it."""
QUESTIONS_OF_A_RUN = 45
"""Most ask some 35, those of two contracts and of runs that fail more."""
QUESTIONS_UNTIL_IT_READS = 20
QUESTIONS_OF_A_PERSON = 32
TABLES = ("xmin", "written_xid")
"""Kinds of a ledger that a contract may repair from and in."""
RELAYED = 12
"""So many questions of a run long a relay marks new rows as sent, one after the other."""


def draw(seed: int, *, windows: int = WINDOWS) -> Schedule:
    """The same seed gives the same schedule."""
    chance = random.Random(seed)
    config = _config(chance)
    mistakes = chance.sample(MISTAKES, chance.randint(0, 3))
    if "carry_unread" in mistakes:
        mistakes.append("abort_first")  # else hardly anything is read that was aborted
    faults = chance.sample(_faults(config), chance.choice((0, 1, 1, 2, 2, 3)))
    people = _people(chance, config)
    chains = _chains(chance, people)
    around = chance.sample(RUN_FAULTS, chance.choice((0, 1, 1, 2)))
    kinds = [*ORDINARY, *mistakes, *mistakes, *faults, *faults, *people, *people]
    steps = [_step(chance, "trade") for _ in range(chance.choice((0, 0, 1, 2)))]
    for _ in range(windows):
        steps += [_step(chance, chance.choice(kinds)) for _ in range(chance.choice((0, 1, 2, 3, 4, 6)))]
        if chains and chance.random() < 0.3:
            steps += _one_after_the_other(chance, *chance.choice(chains))
        steps += _around_a_run(chance, around, faults, people, kinds)
        steps.append(Do("window"))
    return Schedule(config, tuple(steps))


def _around_a_run(
    chance: random.Random, around: list[str], faults: list[str], people: list[str], kinds: list[str]
) -> list[Do]:
    """What befalls the next run while it is under way, and who is killed."""
    steps: list[Do] = []
    if "meanwhile" in around and chance.random() < 0.3:
        late = _step(chance, chance.choice(chance.choice((faults, faults, people, kinds)) or kinds))
        steps.append(late._replace(at=chance.randint(1, QUESTIONS_OF_A_RUN)))
    if "cut_back" in around and chance.random() < 0.4:
        late = _step(chance, chance.choice(CUT_BACK))
        steps.append(late._replace(at=chance.randint(1, QUESTIONS_OF_A_RUN)))
    if "relay" in around and chance.random() < 0.3:
        first = chance.randint(1, QUESTIONS_OF_A_RUN - RELAYED)
        steps += [Do("touch", NEWEST, chance.randrange(4), first + n) for n in range(RELAYED)]
    if "kill" in around and people and chance.random() < 0.3:
        steps += _killed_and_again(chance, people)
    if "kill" in around and chance.random() < 0.2:
        steps.append(Do("kill", chance.randint(1, QUESTIONS_OF_A_RUN)))
    at_an_open_cut = [one for one in people if one in ("close_cut", "write_off")]
    if at_an_open_cut and chance.random() < 0.15:  # only what nobody can judge is closed
        steps += [Do("cluster_down", at=chance.randint(15, 45)), Do("window")]
        steps += [_step(chance, chance.choice(at_an_open_cut)), Do("cluster_down")]
    if "close_cut" in people and chance.random() < 0.1:  # too early, or while somebody judges it
        steps.append(_step(chance, "close_cut")._replace(at=chance.randint(1, QUESTIONS_UNTIL_IT_READS)))
    return steps


def _killed_and_again(chance: random.Random, people: list[str]) -> list[Do]:
    """A person's process is killed, or the next run's. Half of the time the person's is started again, once what it was
    about has gone on: whoever has acted goes on with the same plan.
    """
    killed, kill = chance.choice(people), Do("kill", chance.randint(1, QUESTIONS_OF_A_PERSON))
    if chance.random() < 0.5:
        return [kill, _step(chance, killed)]
    known = [one for one in OF_REPAIRS if one not in COMPENSATING]
    between = chance.sample(known, chance.choice((0, 1, 2, 3)))
    again = Do("act") if killed in COMPENSATING else _step(chance, killed)
    return [kill, *_one_after_the_other(chance, killed, *between, a=chance.choice((1, 3, 5))), again]


def _chains(chance: random.Random, people: list[str]) -> list[list[str]]:
    """In half of the schedules: what comes after what. Nobody acts where nobody is let."""
    theme = [one for one in chance.choice(THEMES) if one not in COMPENSATING or "plan_and_act" in people]
    return [chance.sample(theme, chance.choice((2, 2, 3))) for _ in range(chance.choice((0, 0, 1, 2)))]


def _one_after_the_other(chance: random.Random, *names: str, a: int | None = None) -> list[Do]:
    """With the same numbers, so that all mostly befall the same payment."""
    a, b = chance.randrange(6) if a is None else a, chance.randrange(12)
    steps: list[Do] = []
    for name in names:
        between = [Do("window")] if steps and chance.random() < 0.7 else []
        steps += [*between, Do(name, a, b)]
    return steps


def _people(chance: random.Random, config: Config) -> list[str]:
    """Who does what; where a contract compensates, half of the time somebody lets it."""
    compensates = bool(config.posts) or (config.direction == "ledger_to_topic" and config.slice_by in TABLES)
    known = PEOPLE_STEPS if compensates else [one for one in PEOPLE_STEPS if one not in COMPENSATING]
    people = chance.sample(known, chance.choice((0, 0, 1, 2, 3)))
    return [*people, "plan_and_act"] if compensates and chance.random() < 0.5 else people


def _faults(config: Config) -> tuple[str, ...]:
    """What may befall books of this kind; what only files know twice, since they are drawn seldom."""
    if config.slice_by == "topic":
        return (*sorted(LOG_STEPS), *SELDOM)
    if config.posts:
        return (*FAULTS, *POSTING_STEPS, *POSTING_STEPS, *POSTING_STEPS)
    if config.slice_by != "parquet":
        return FAULTS
    return (*(one for one in FAULTS if one not in ("prepare", "odd_id")), *FILE_STEPS, *FILE_STEPS)


def _config(chance: random.Random) -> Config:
    slice_by = chance.choice((*3 * TABLES, "jdbc", "parquet", "topic"))
    direction = chance.choice(("topic_to_ledger", "ledger_to_topic"))
    return Config(
        direction="topic_to_topic" if slice_by == "topic" else direction,
        slice_by=slice_by,
        legs=chance.choice((1, 1, 2)),
        key_is_unique=chance.random() < 0.2 and slice_by not in ("parquet", "topic"),
        producer_mode=chance.choice(("transactional", "transactional", "plain")),
        carrier_mode=chance.choice(("exactly", "at_least", "at_most")),
        contracts=chance.choice((1, 1, 1, 1, 2)),
        posts=chance.choice(("", "negated", "column")) if direction == "topic_to_ledger" and slice_by in TABLES else "",
    )


def _step(chance: random.Random, name: str) -> Do:
    return Do(name, chance.randrange(6), chance.randrange(12))
