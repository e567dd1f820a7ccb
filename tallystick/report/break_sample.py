"""The breaks that a report shows, and their money per class. Counts are always whole; only the rows are a sample."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.anomalies.registry import RULES
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, Money, Stake, largest_first, money_at_stake, sort_stakes
from tallystick.text.finding_guide import BREAK_TEXTS, ClassText

BREAKS_SHOWN_MAX = 500
"""What a person can read, and what keeps the page small."""


@dataclass(frozen=True, kw_only=True)
class BreakGroup:
    """The breaks of one class. shown: all of them, or those with the most money, largest first."""

    break_class: BreakClass
    text: ClassText
    letters: str
    count: int
    money: Money
    shown: tuple[Break, ...]

    @property
    def not_shown(self) -> int:
        return self.count - len(self.shown)


def group_breaks(
    breaks: Sequence[Break], direction: Direction, *, shown_max: int = BREAKS_SHOWN_MAX
) -> tuple[BreakGroup, ...]:
    """One group per class that has breaks, in the order of the catalogue."""
    chosen = {item_break.break_id for item_break in choose_breaks(breaks, shown_max=shown_max)}
    return tuple(
        BreakGroup(
            break_class=break_class,
            text=BREAK_TEXTS[break_class].for_direction(direction),
            letters=_LETTERS.get(break_class, ""),
            count=len(members),
            money=money_at_stake(members),
            shown=tuple(member for member in sorted(members, key=largest_first) if member.break_id in chosen),
        )
        for break_class in BreakClass
        if (members := [item_break for item_break in breaks if item_break.break_class is break_class])
    )


def choose_breaks(breaks: Sequence[Break], *, shown_max: int) -> tuple[Break, ...]:
    """Choose at most shown_max breaks. Money of two currencies cannot be compared, and a class without money still
    counts: each class and currency gives its largest in turn.
    """
    if len(breaks) <= shown_max:
        return tuple(breaks)
    queues: dict[tuple[str, str], list[Break]] = {}
    for item_break in sorted(breaks, key=largest_first):
        queues.setdefault((item_break.break_class, item_break.currency), []).append(item_break)
    waiting = deque(deque(queues[key]) for key in sorted(queues))
    chosen: list[Break] = []
    while len(chosen) < shown_max:
        queue = waiting.popleft()
        chosen.append(queue.popleft())
        if queue:
            waiting.append(queue)
    return tuple(chosen)


def stakes(breaks: Sequence[Break]) -> tuple[Stake, ...]:
    """Money per class and currency, sorted."""
    money, counts = Counter[tuple[str, BreakClass]](), Counter[tuple[str, BreakClass]]()
    for item_break in breaks:
        money[item_break.currency, item_break.break_class] += abs(item_break.amount_minor)
        counts[item_break.currency, item_break.break_class] += 1
    found = [
        Stake(break_class=break_class, currency=currency, amount_minor=money[currency, break_class], count=count)
        for (currency, break_class), count in counts.items()
    ]
    return sort_stakes(found)


_LETTERS = {name: rule.letters for rule in RULES for name in rule.names if isinstance(name, BreakClass)}
