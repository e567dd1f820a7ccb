"""No repair of ours makes a key's money worse: how far its two sides lie apart, before an executor and after it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.simulator.world.config import Config
from tests.simulator.world.truth import EventFact, RowFact, Truth


class Apart(NamedTuple):
    """One key's money. minor_units: by currency, the topic's sum less the ledger's. by_others: copies that are no
    repair of ours.
    """

    minor_units: Mapping[str, int]
    by_others: int

    @property
    def distance(self) -> int:
        return sum(map(abs, self.minor_units.values()))


def apart(truth: Truth, match_keys: Iterable[str], config: Config) -> dict[str, Apart]:
    """How far the sides lie apart, by key. Without keys of which a copy is gone or open, a row takes back nothing, or
    the origin was written twice: of those nobody can say by sums what is right.
    """
    return {key: found for key in match_keys if (found := _apart(truth, key, config)) is not None}


def _apart(truth: Truth, key: str, config: Config) -> Apart | None:
    events = [one for one in truth.events_of(key) if one.outcome != "aborted"]
    rows = truth.rows_of(key)
    if any(not one.visible for one in events) or any(not row.stands or row.by == "idle reversal" for row in rows):
        return None
    first_side = [one for one in (events if config.topic_first else rows) if not _takes_back(one)]
    amounts = [one.money.amount_minor for one in first_side]
    if sum(one.by == "service" for one in first_side) > 1 or amounts.count(next(iter(amounts), 0)) > 1:
        return None
    sums: Counter[str] = Counter()
    for event in events:
        sums[event.money.currency] += event.money.amount_minor
    for row in rows:
        by_column = _takes_back(row) and config.posts == "column"
        sums[row.money.currency] -= -row.money.amount_minor if by_column else row.money.amount_minor
    return Apart(minor_units=sums, by_others=sum(one.by != "repair" for one in (*events, *rows)))


def _takes_back(copy: EventFact | RowFact) -> bool:
    return copy.negated if isinstance(copy, EventFact) else copy.reverses is not None


class MadeWorse(NamedTuple):
    """A key whose sides lie further apart since a plan was acted on."""

    match_key: str
    sentence: str


def made_worse(before: Mapping[str, Apart], after: Mapping[str, Apart]) -> Iterator[MadeWorse]:
    """Keys to which nobody but the executor has written meanwhile, and whose sides lie further apart than before."""
    for key in before.keys() & after.keys():
        then, now = before[key], after[key]
        if then.by_others == now.by_others and now.distance > then.distance:
            told = f"{key} lay {then.distance} apart, and lies {now.distance} apart once a plan was acted on"
            yield MadeWorse(key, told)
