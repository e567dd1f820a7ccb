"""Q2: a key index that an earlier verdict names is gone, or is not what it was.

What that cut read cannot be looked up once the log has forgotten it, so a key that comes again may be a second copy,
and nobody can say. Not to be mistaken for one beyond the reach, which is deleted on purpose.
"""

from collections.abc import Iterator

from tallystick.matching.evidence import LookedUp
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.text.verdict_sentence import counted


def key_index_lost(looked_up: LookedUp) -> Iterator[DoubtFound]:
    """One for all of them, until the last is out of reach."""
    lost = looked_up.lost_indexes
    if lost:
        yield DoubtFound(
            doubt=Doubt.KEY_INDEX_LOST,
            sentence=f"The key index of {counted(len(lost), 'cut')} ({', '.join(map(str, lost))}) is not there or "
            "not what its verdict names: a key that was read then and comes again would not be known.",
            details={"cuts": list(lost)},
        )
