"""What is wrong with one key's money, as the truth has it at a moment. Knows nothing of the product."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.simulator.world.config import Config
from tests.simulator.world.truth import EventFact, Money, RowFact, Truth


@dataclass(frozen=True)
class KeyFacts:
    """One key's copies. events: visible ones that stood on the log once, reversals left out. lost: cut away since,
    or their marker was.

    hidden: aborted or still open. rows: that stand. gone: that stood once.
    """

    match_key: str
    events: tuple[EventFact, ...]
    lost: tuple[EventFact, ...]
    aborted: tuple[EventFact, ...]
    open: tuple[EventFact, ...]
    rows: tuple[RowFact, ...]
    gone: tuple[RowFact, ...]

    @property
    def copies(self) -> Sequence[EventFact | RowFact]:
        return (*self.events, *self.lost, *self.rows, *self.gone)

    def _pairs(self) -> list[tuple[Money, Money]]:
        """Each event beside each row, as it says now and as it said once."""
        rows = [*self.rows, *self.gone]
        said = [money for row in rows for money in (row.money, *(before for _, before in row.changed))]
        return [(event.money, money) for event in (*self.events, *self.lost) for money in said]

    @property
    def amounts_differ(self) -> bool:
        return any(event.amount_minor != row.amount_minor for event, row in self._pairs())

    @property
    def currencies_differ(self) -> bool:
        return any(event.currency != row.currency for event, row in self._pairs())

    @property
    def last_came(self) -> datetime:
        """When the newest of its copies came, whatever was done to it since."""
        return max(at for one in self.copies if (at := came(one)))

    @property
    def last_came_to_stand(self) -> datetime:
        """The same, of those alone that stand, or of which a row stood."""
        return max(at for one in (*self.events, *self.rows, *self.gone) if (at := came(one)))

    @property
    def last_change(self) -> datetime:
        """When the newest of it came, changed or went."""
        touched = [at for row in (*self.rows, *self.gone) for at in row.touched]
        return max([self.last_change_of_money, *touched])

    @property
    def last_change_of_money(self) -> datetime:
        """The same, without UPDATEs that left a row as it was."""
        moments = [at for one in (*self.events, *self.rows, *self.gone) if (at := came(one))]
        moments += [row.gone_at for row in self.gone if row.gone_at]
        moments += [at for row in (*self.rows, *self.gone) for at, _ in row.changed]
        return max(moments)


def came(copy: EventFact | RowFact) -> datetime | None:
    """When it came. An event whose marker was cut away, and came anew, lies where no run looks again."""
    if isinstance(copy, EventFact) and copy.reopened and copy.visible_at:
        return copy.written_at
    return copy.visible_at


def facts_of(truth: Truth, match_key: str, *, before: datetime | None = None) -> KeyFacts:
    """before: without what came at or after that moment; None: as it is now."""

    def there(at: datetime | None) -> bool:
        return at is not None and (before is None or at < before)

    events = [one for one in truth.events_of(match_key) if not one.negated and not there(one.taken_back_at)]
    rows = [one for one in truth.rows_of(match_key) if not one.nets and not there(one.taken_back_at)]
    return KeyFacts(
        match_key=match_key,
        events=tuple(one for one in events if one.visible and there(one.visible_at)),
        lost=tuple(one for one in events if one.once_visible and not one.visible),
        aborted=tuple(one for one in events if one.outcome == "aborted"),
        open=tuple(one for one in events if one.outcome == "open" or (one.visible and not there(one.visible_at))),
        rows=tuple(one for one in rows if there(one.visible_at) and (one.stands or not there(one.gone_at))),
        gone=tuple(one for one in rows if there(one.visible_at) and not one.stands and there(one.gone_at)),
    )


@dataclass(frozen=True)
class Wrong:
    """One thing that is wrong: what kind, how many copies, and by which classes it may be told."""

    kind: str
    copies: int
    classes: tuple[str, ...]
    absence: bool = False


MISSING_IN_TOPIC = (
    "missing_in_topic_never_produced",
    "missing_in_topic_aborted_only",
    "lost_acknowledged_write",
    "compensation_not_effective",
)
DUPLICATE_IN_TOPIC = ("duplicate_in_topic_", "compensated_twice", "bled_into_transaction", "phantom_in_topic")
DUPLICATE_IN_LEDGER = ("duplicate_in_ledger",)
PHANTOM_IN_LEDGER = ("phantom_in_ledger", "aborted_read_in_ledger", "open_read_in_ledger")


def wrongs_of(facts: KeyFacts, config: Config) -> list[Wrong]:
    """Everything that is wrong with a key, once all that was open has ended and all that was due was carried."""
    e, r, gone = len(facts.events), len(facts.rows), len(facts.gone)
    found = []
    if config.topic_first:
        if e and not r and not gone:
            found.append(Wrong("missing", 1, ("missing_in_ledger", "misrouted_in_topic", *DUPLICATE_IN_TOPIC), True))
        if r and not e and not facts.lost:
            found.append(Wrong("phantom", r, (*PHANTOM_IN_LEDGER, *DUPLICATE_IN_LEDGER), True))
    else:
        if r and not e:
            found.append(Wrong("missing", 1, (*MISSING_IN_TOPIC, *DUPLICATE_IN_LEDGER), True))
        if e and not r and not gone:
            found.append(Wrong("phantom", e, ("phantom_in_topic", *DUPLICATE_IN_TOPIC), True))
    origins, followers = (e, r) if config.topic_first else (r, e)
    once = origins if config.topic_first else r + gone  # a row that its owner has replaced had an event of its own
    doubled = (*DUPLICATE_IN_TOPIC, *DUPLICATE_IN_LEDGER)
    if origins > 1:
        absent = ("missing_in_ledger",) if config.topic_first else MISSING_IN_TOPIC
        found.append(Wrong("origin twice", origins - 1, (*doubled, *absent)))
    if followers > max(1, once):
        phantom = PHANTOM_IN_LEDGER if config.topic_first else ("phantom_in_topic",)
        found.append(Wrong("follower twice", followers - max(1, once), (*doubled, *phantom)))
    if e == 1 and r == 1 and not gone and not facts.rows[0].changed:
        event, row = facts.events[0].money, facts.rows[0].money  # what was lost of the log differs from nothing
        repeats = DUPLICATE_IN_TOPIC if facts.lost else ()  # of one that was read, and cut away since
        if event.amount_minor != row.amount_minor:
            found.append(Wrong("amount", 1, ("amount_mismatch", "currency_mismatch", *repeats)))
        elif event.currency != row.currency:
            found.append(Wrong("currency", 1, ("currency_mismatch", *repeats)))
    return found
