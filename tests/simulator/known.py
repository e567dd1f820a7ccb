"""Violations that are known and not mended yet: each with what is wrong, and how it is told from any other.

A run counts them by themselves and names them; it does not fail by them. A line is struck off with its mend.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulator.oracle.clauses import Violation


class Known(NamedTuple):
    """name: in a few words. why: what the product would have to know."""

    name: str
    why: str
    fits: Callable[[Violation], bool]


_NO_ROW_SAYS_SO = (
    "and a row of it was archived or written anew",
    "and what came again has a row of since",
    "and no row of it has come into sight",
)
_UNDECIDABLE = "a row of it is undecidable"

KNOWN: tuple[Known, ...] = (
    Known(
        "by xmin missing, or published again, where its event expired unread and its row was updated while two runs "
        "read the ledger",
        "An UPDATE between a cut and its scan leaves a row to the next cut, as often as it happens, and no run can "
        "tell it from a new one. That it may have happened once counts (LedgerStarts.first_write_of): to let it have "
        "happened always would let no row be missing once a log has ever lost anything.",
        lambda found: "its row was updated while several runs read the ledger" in found.sentence,
    ),
    Known(
        "an event that one contract has written off and another one takes back: its reversal is a duplicate",
        "Surplus copies that were written off are read by no later run (open_item_store.surplus_items_as_of), though "
        "reversals.may_be_taken_back would let them be taken back. To read them each run would ask for all that was "
        "ever written off. A row is found all the same, by its key (reversals.taken_back_elsewhere).",
        lambda found: "an event was written off and is taken back" in found.sentence,
    ),
    Known(
        "an event that comes again, read with its row, which was touched, and its first event is older than the books",
        "No key index has what the books never read, and by xmin nobody tells a touched row from a new one: all "
        "rows of one would have to be looked for in all of the log. The run that finds that rows have moved says so "
        "(ledger_rewritten); the one after it, which reads them behind the horizon, pairs them with what it reads.",
        lambda found: "twice, and nobody" in found.sentence and "its row was touched" in found.sentence,
    ),
    Known(
        "one of two rows is a surplus, where their event came once both were given up",
        "Rows whose event may have expired unread are undecidable, and one that comes late is still their partner "
        "(pairing.MatchStatus.PARTNER_EXPIRED). It pairs with one of them; the other stays what it was. A run has said "
        "so of both in words, and to judge it anew would need an item that is closed to be opened again.",
        lambda found: "a run said that partners may be lost" in found.sentence and "follower twice" in found.sentence,
    ),
    Known(
        "published again, where the first is older than the books and has expired, and its row was archived",
        "A new row of an old key is an origin that nobody has answered, for all that the books know: no index has what "
        "they never read, the log has forgotten it, and no row of the key is older.",
        lambda found: "older than the books, and expired" in found.sentence,
    ),
    Known(
        "torn, where the whole transaction is older than the books and has expired, and no row says so",
        "What was whole before the baseline nobody has judged, so that one leg that comes again looks like a torn one "
        "once the log has forgotten the others, where the row that would say so was archived or written anew, where "
        "the leg that comes again has a new row to pair with, or none yet: over JDBC nobody sees how long what writes "
        "it stays open. To call none torn that may be one of these would be to call none torn: retention has taken "
        "something of every topic.",
        lambda found: any(one in found.sentence for one in _NO_ROW_SAYS_SO) and _UNDECIDABLE not in found.sentence,
    ),
    Known(
        "torn, where one leg and its row are older than the books, the leg has expired, and the other one came late",
        "The leg that comes is new, and so is its row: nothing that a run sees is older than the books. The row of the "
        "leg that has expired lies before the baseline, where no slice reaches, under a key that nobody asks for.",
        lambda found: (
            "and a leg of it came late for the first time" in found.sentence and _UNDECIDABLE not in found.sentence
        ),
    ),
    Known(
        "missing, torn or a phantom, where a log was cut back and grew again, and that expired before the next run",
        "Of a log that ends below what was read, and of one whose batches differ, a run tells; where retention has "
        "taken all that was read and all that came in its place, nothing is left to compare, and a broker keeps no "
        "leader epochs of what has expired. A later leader alone says nothing: each restart of a broker brings one, so "
        "that a doubt by it would leave quiet topics with retention undecided at each rolling upgrade. A repair leaves "
        "such a break to people.",
        lambda found: (
            found.clause not in ("no effect twice", "no repair makes it worse")
            and "and expired before a run looked there" in found.sentence
        ),
    ),
    Known(
        "by xmin a duplicate, where a compensation's row was updated and the row beside the two had been deleted",
        "What an earlier run has netted is closed, and a row that is touched is read anew. Beside a row that stands "
        "the two are known for what they are (reversals.taken_back_elsewhere); where none stands, the row that is "
        "taken back may be the only one that its event ever had. A run would have to read the items it has closed.",
        lambda found: "was touched, and no other row of it stands" in found.sentence,
    ),
    Known(
        "a duplicate, or wrong money untold, whose input stands where an unclean election had cut the inputs back",
        "Nobody has read that input, and its place says that an earlier cut did (record_location.locate_input). The "
        "run that found the log cut back has said so (log_rewritten). To tell the two apart a look-up would have to "
        "hold the leader epoch of what it finds against that of each cut over its offset.",
        lambda found: "its input stands where others had been read" in found.sentence,
    ),
    Known(
        "a row stays a duplicate, where another contract called another row of its key one too many and took it back",
        "Which row of a key comes first each contract says by what its own cuts have read. The row that is taken back "
        "has its event in these books, and its reversal may be a row that was netted before and is written anew: to "
        "clear the row that is left by it could hide one that is paid twice beside an archived row. No plan takes the "
        "row back that is left; a person writes the break off.",
        lambda found: (
            found.clause == "what stands is wrong" and "another contract took another row of it back" in found.sentence
        ),
    ),
)


def known_as(violation: Violation) -> str | None:
    """The name of the known one that it is; None: it is new."""
    return next((one.name for one in KNOWN if one.fits(violation)), None)
