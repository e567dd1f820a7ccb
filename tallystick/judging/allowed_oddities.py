"""Oddities that Kafka or a batch reconciliation allows: each run counts them, and none of them is a finding.

A closed, versioned list, so that a page can say by which one it was written. What is not on it is a doubt or a break.
"""

from dataclasses import dataclass

from tallystick.model.finding_names import Notice
from tallystick.model.run_result import RunResult

LEGAL_ODDITIES_VERSION = 1
"""Raised with each change of what stands on the list."""


@dataclass(frozen=True, kw_only=True)
class Oddity:
    """One line: how often this run saw it, and why it is legal, with the source."""

    name: str
    count: int
    why: str


def count_oddities(result: RunResult) -> tuple[Oddity, ...]:
    """Return every line of the list with its count, also the lines that this run did not see."""
    census = result.figures.census
    noticed = {
        notice: sum(found.count for found in result.notices if found.notice is notice)
        for notice in (Notice.LATE_PARTNER, Notice.PAIRED_ACROSS_WINDOWS, Notice.REPRESENTATION_DIFFERS)
    }
    return (
        Oddity(
            name="aborted records",
            count=sum(part.aborted for part in census),
            why="An aborted transaction's records stay on the log; read_committed consumers skip them. KIP-98.",
        ),
        Oddity(
            name="transaction markers",
            count=sum(part.commit_markers + part.abort_markers for part in census),
            why="A transaction's end takes an offset of its own on each of its partitions. KIP-98.",
        ),
        Oddity(
            name="empty transactions",
            count=sum(part.empty_transactions for part in census),
            why="A transaction may end on a partition on which it wrote nothing. KIP-98.",
        ),
        Oddity(
            name="records outside a transaction",
            count=sum(part.plain for part in census),
            why="A topic may hold both kinds; read_committed consumers see them below the LSO.",
        ),
        Oddity(
            name="fenced transactions",
            count=sum(part.fencings for part in census),
            why="A successor ends what its predecessor left open, under an epoch that is one higher. KIP-98, KIP-360.",
        ),
        Oddity(
            name="compacted offsets",
            count=sum(part.compacted for part in census),
            why="A compacting topic forgets all but the last record of a record key. What went unread is doubted.",
        ),
        Oddity(
            name="pairs across windows",
            count=noticed[Notice.PAIRED_ACROSS_WINDOWS],
            why="An event and its row may fall into two cuts; the open item carries the first over.",
        ),
        Oddity(
            name="late partners",
            count=noticed[Notice.LATE_PARTNER],
            why="A partner may come after its deadline: the books are whole again. It was slow, or our own repair.",
        ),
        Oddity(
            name="values written differently",
            count=noticed[Notice.REPRESENTATION_DIFFERS],
            why="The same amount or currency, written by a rule that the contract declares.",
        ),
    )
