"""What a soak does in each of its windows, drawn by its seed: faults, late partners, and who is killed when. Pure.

Twenty windows in a row have every disturbance, and the faults of each book come round in turn.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeVar

from lab.faults.event_faults import PAYMENT_FAULTS, PAYOUT_FAULTS, KeyFault
from lab.product.spark_app import STEPS
from lab.services.workload import Workload
from lab.soak.late_partners import (
    Straddle,
    leg_straddles,
    payment_straddles,
    payout_late,
    payout_straddles,
    posted_late,
    posting_straddles,
)

Card = TypeVar("Card")

_FAULTY, _STRADDLED, _REREAD, _CLEARED = 0.8, 0.5, 0.3, 0.3  # of all windows

BOOKS = ("payments", "payouts")

_FAULTS = {
    "payments": (*(fault for fault in PAYMENT_FAULTS if not fault.slow), KeyFault(posted_late)),
    "payouts": (*(fault for fault in PAYOUT_FAULTS if not fault.slow), KeyFault(payout_late)),
}
_STRADDLES: dict[str, tuple[Callable[[Workload], Straddle], ...]] = {
    "payments": (payment_straddles, leg_straddles, posting_straddles),
    "payouts": (payout_straddles,),
}


class Disturbance(StrEnum):
    """What happens to a window's runs; a server that is killed or stopped comes back at once."""

    NONE = "none"
    RUN_KILLED = "run killed"  # a process of its own, at an announced step
    TWO_RUNS = "two runs of one cut"
    TWO_CUTS = "two cuts at once"
    BROKER_KILLED = "broker killed"
    BROKER_RESTARTED = "broker restarted"
    LEDGER_KILLED = "ledger killed"
    LEDGER_RESTARTED = "ledger restarted"
    STORE_KILLED = "store killed"
    STORE_RESTARTED = "store restarted"

    @property
    def server(self) -> str:
        """The server that goes away; "" where none does."""
        name, _, how = self.partition(" ")
        return name if how in ("killed", "restarted") and name != "run" else ""

    @property
    def kills(self) -> bool:
        return self.endswith("killed")

    def may_fail(self, error: str) -> bool:
        """May a run end with this error because of it? The other one of two runs is fenced, by its attempt's number, or
        finds its key index deleted with what other attempts than the winner's have written.
        """
        if self.server:
            return error not in ("VerdictDiffers", "DigestChanged")
        return self is Disturbance.TWO_RUNS and error in ("AttemptFenced", "IndexIncomplete")

    @property
    def needs_process(self) -> bool:
        """Does a Spark app of its own take part?"""
        return self in (Disturbance.RUN_KILLED, Disturbance.TWO_RUNS)


_DECK = (*Disturbance, Disturbance.RUN_KILLED, *(Disturbance.NONE,) * 9)


@dataclass(frozen=True, kw_only=True)
class Window:
    """One window of one book, with the number of its cut. at: the step at which its run is disturbed.

    at is "cut" where a server goes away while the window is cut.
    """

    number: int
    book: str
    cut_n: int
    fault: KeyFault | None
    straddle: Callable[[Workload], Straddle] | None
    disturbance: Disturbance
    at: str
    part: Literal["driver", "jvm"]  # of the run that is killed
    reread: bool
    clear: bool


def plan_soak(seed: int, windows: int) -> tuple[Window, ...]:
    """Draw all windows, numbered from 1; the books take turns. More windows of one seed begin with the same ones."""
    decks = _Decks(random.Random(f"soak:{seed}"))
    return tuple(_window(decks, number) for number in range(1, windows + 1))


class _Decks:
    """What comes round in turn. Each deck is dealt to its end, then shuffled again."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.disturbances = _dealt(dice, _DECK)
        self.faults = {book: _dealt(dice, _FAULTS[book]) for book in BOOKS}
        self.steps_of_runs = _dealt(dice, STEPS)
        self.steps_of_servers = _dealt(dice, ("cut", *STEPS))

    def at(self, disturbance: Disturbance) -> str:
        """Two runs meet where the first of them has begun; a server may go away while the window is cut, too."""
        if disturbance.server:
            return next(self.steps_of_servers)
        return next(self.steps_of_runs) if disturbance is Disturbance.RUN_KILLED else STEPS[0]


def _window(decks: _Decks, number: int) -> Window:
    dice, disturbance = decks.dice, next(decks.disturbances)
    turn, place = divmod(number - 1, len(BOOKS))
    book = BOOKS[place]
    return Window(
        number=number,
        book=book,
        cut_n=turn + 1,
        fault=next(decks.faults[book]) if dice.random() < _FAULTY else None,
        straddle=dice.choice(_STRADDLES[book]) if dice.random() < _STRADDLED else None,
        disturbance=disturbance,
        at=decks.at(disturbance),
        part=dice.choice(("driver", "jvm")),
        reread=dice.random() < _REREAD,
        clear=dice.random() < _CLEARED,
    )


def _dealt(dice: random.Random, cards: Sequence[Card]) -> Iterator[Card]:
    """Deal for ever; each time all cards are dealt, in another order."""
    while True:
        yield from dice.sample(cards, len(cards))
