"""P1: the follower has what the origin never had.

Evidence: the copy's deadline has passed, the origin's side has settled past it, and a look-up over all that is retained
finds no committed and no open copy of the key there. An event whose record was only aborted is still a phantom row, and
the aborted offsets are its evidence.
"""

from collections.abc import Iterator

from tallystick.break_class import BreakClass
from tallystick.classes.breaks import break_of
from tallystick.evidence import Evidence
from tallystick.pairing import Fate, Place
from tallystick.run_result import Break, ItemSide


def phantom_in_topic(evidence: Evidence) -> Iterator[Break]:
    """An event that no ledger row stands behind."""
    for residue in evidence.residues(Fate.ORIGIN_ABSENT, ItemSide.TOPIC):
        story = f"The event at {residue.copy.item_id} is committed, and the ledger never had a row for it."
        yield break_of(evidence.contract, residue, BreakClass.PHANTOM_IN_TOPIC, story)


def phantom_in_ledger(evidence: Evidence) -> Iterator[Break]:
    """A ledger row that no committed event stands behind."""
    for residue in evidence.residues(Fate.ORIGIN_ABSENT, ItemSide.LEDGER):
        aborted = [seen.item_id for seen in residue.sightings if seen.place is Place.ABORTED]
        known = f"only aborted records at {', '.join(aborted)}" if aborted else "no record of it"
        story = f"The ledger has {residue.copy.item_id}, and the retained log holds {known}."
        yield break_of(evidence.contract, residue, BreakClass.PHANTOM_IN_LEDGER, story)
