"""D1, D2, D4: the topic has the event more than once, told apart by who produced the copies.

- no producer id on both, same session: a retry without idempotence (D1);
- no producer id, another session: the input was processed again (D4);
- producer ids, the same source coordinates in two sessions: processed again (D4);
- producer ids otherwise: a new producer, or the application, sent it again (D2) - the broker drops a retry of its own;
- what would tell is absent (a copy expired, no session header): the cause is unknown, and said so.
Source of the producer-id rules: KIP-98, idempotent producer.
"""

from collections.abc import Iterator
from typing import Any

from tallystick.batch_header import NO_PRODUCER_ID
from tallystick.break_class import BreakClass
from tallystick.classes.breaks import break_of
from tallystick.evidence import Evidence
from tallystick.log_record import LogRecord
from tallystick.pairing import Fate, Place, Residue
from tallystick.run_result import Break, ItemSide

_STORIES = {
    BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE: (
        "the same producing process wrote it again, without idempotence: a retry after a lost acknowledgement"
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION: (
        "it was sent again by a new producer or by the application, which the broker cannot recognise"
    ),
    BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED: (
        "another process handled the same input again and wrote its output a second time"
    ),
    BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: (
        "what would tell the cause (producer id, session header, the other copy) is not there"
    ),
}


def duplicate_in_topic(evidence: Evidence) -> Iterator[Break]:
    """One break per extra copy; the first copy of a key is the event itself."""
    for residue in evidence.residues(Fate.EXTRA, ItemSide.TOPIC):
        extra = evidence.identities.get(residue.copy.item_id)
        original_id = original_item_id(residue)
        original = evidence.identities.get(original_id)
        break_class = tell_cause(extra, original)
        followed = "and the ledger posted it too" if residue.partner else "and the ledger has no row for it"
        story = (
            f"{residue.copy.item_id} repeats {original_id or 'an earlier copy'}: {_STORIES[break_class]}; {followed}."
        )
        yield break_of(
            evidence.contract,
            residue,
            break_class,
            story,
            evidence={
                "original": original_id,
                "copy_identity": _identity(extra),
                "original_identity": _identity(original),
                "partner": residue.partner.item_id if residue.partner else None,
            },
        )


def original_item_id(residue: Residue) -> str:
    """Where the copy that an extra one doubles stands: in this cut, or where a look-up saw it; "" if nobody knows."""
    if residue.original is not None:
        return residue.original.item_id
    seen = (
        sighting.item_id
        for sighting in residue.sightings
        if sighting.side is ItemSide.TOPIC and sighting.place in (Place.EARLIER_SLICE, Place.BEFORE_BASELINE)
    )
    return next(seen, "")


def tell_cause(extra: LogRecord | None, original: LogRecord | None) -> BreakClass:
    """Which class two copies of one event are, by their producers."""
    if extra is None or original is None:
        return BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN
    same_session = None
    if extra.session is not None and original.session is not None:
        same_session = extra.session == original.session
    if NO_PRODUCER_ID in (extra.producer_id, original.producer_id):
        if same_session is None:
            return BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN
        if same_session:
            return BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE
        return BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED
    if extra.source is not None and extra.source == original.source and same_session is False:
        return BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED
    return BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION


def _identity(record: LogRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {
        "producer_id": record.producer_id,
        "producer_epoch": record.producer_epoch,
        "sequence": record.sequence,
        "transactional": record.is_transactional,
        "outcome": str(record.outcome),
        "session": record.session,
        "source": record.source,
    }
