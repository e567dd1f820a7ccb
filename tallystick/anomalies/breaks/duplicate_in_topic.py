"""D1 to D4, D6, D7: the topic has the event more than once, told apart by who produced the copies.

- one of the two was published by a compensation: our own repair, and the original came after all (D7);
- no producer id on both, same session: a retry without idempotence (D1);
- no producer id on both, another session: the input was processed again (D4);
- no producer id on one or both, and sources that differ, whatever the sessions: sent again, from another input (D2);
- a producer id on one alone, the same source in two sessions: processed again (D4);
- one producer id, so one transactional.id, under two epochs: two generations of it, the old one a zombie (D3) - unless
  the epoch moves with every transaction (transaction.version 2) and no session says that there were two processes;
- producer ids, the same source coordinates in two sessions: processed again (D4);
- producer ids otherwise: a new producer, or the application, sent it again (D2) - the broker drops a retry of its own;
- what would tell is absent (a copy expired, no session header): the cause is unknown, and said so.
Whatever the cause, the break says whether the original stands in an earlier window (D6), and whether the copies differ.
Not to be mistaken for one compensation that stands twice, see compensated_twice.
Source of the producer-id rules: KIP-98, idempotent producer; KIP-890.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tallystick.anomalies.breaks.make_break import break_of, origin_json
from tallystick.contract.contract import Contract
from tallystick.kafka_log.batch_header import NO_PRODUCER_ID
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import Entry, MatchStatus, RecordLocation, UnmatchedItem
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.open_item import ItemSide

_STORIES = {
    BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE: (
        "the same producing process wrote it again, without idempotence: a retry after a lost acknowledgement"
    ),
    BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION: (
        "it was sent again by a new producer or by the application, which the broker cannot recognise"
    ),
    BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE: (
        "two generations of one transactional.id committed it: the old one worked on beside its successor"
    ),
    BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED: (
        "another process handled the same input again and wrote its output a second time"
    ),
    BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED: ("a compensation republished it, and the original came after all"),
    BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN: (
        "what would tell the cause (producer id, session header, the other copy) is not there"
    ),
    BreakClass.COMPENSATED_TWICE: "the same compensating action published it twice",
}


def duplicate_in_topic(
    contract: Contract, unmatched: UnmatchedItems, record_origins: Mapping[str, LogRecord]
) -> Iterator[Break]:
    """Yield a break per extra copy; the first copy of a key is the event itself."""
    twice = published_twice(unmatched, record_origins)
    for residue in unmatched.of(MatchStatus.EXTRA, ItemSide.TOPIC):
        if residue.copy.item_id not in twice:
            original = record_origins.get(original_item_id(residue))
            cause = tell_cause(record_origins.get(residue.copy.item_id), original)
            yield extra_copy(contract, record_origins, residue, cause)


def published_twice(unmatched: UnmatchedItems, record_origins: Mapping[str, LogRecord]) -> Mapping[str, UnmatchedItem]:
    """Return the copies whose compensating action published the same key before, by item id, as what they repeat: the
    action's first copy, which need not be the first of the key.
    """
    twice: dict[str, UnmatchedItem] = {}
    first: dict[tuple[str, str], Entry | None] = {}
    for residue in unmatched.of(MatchStatus.EXTRA, ItemSide.TOPIC):
        for item_id, copy in ((original_item_id(residue), residue.original), (residue.copy.item_id, residue.copy)):
            record = record_origins.get(item_id)
            action = (residue.copy.match_key, record.action_id) if record and record.action_id else None
            if action in first and item_id == residue.copy.item_id:
                twice[item_id] = replace(residue, original=first[action])
            elif action is not None:
                first.setdefault(action, copy)
    return twice


def extra_copy(
    contract: Contract, record_origins: Mapping[str, LogRecord], residue: UnmatchedItem, break_class: BreakClass
) -> Break:
    """Return the break about one surplus copy, whatever its cause."""
    extra, original_id = record_origins.get(residue.copy.item_id), original_item_id(residue)
    original = record_origins.get(original_id)
    across_windows = residue.original is None or residue.original.carried is not None
    differs = extra.value_digest != original.value_digest if extra and original else None
    followed = "and the ledger posted it too" if residue.partner else "and the ledger has no row of its own for it"
    repeats = f"{original_id or 'an earlier copy'}{', of an earlier window' if across_windows else ''}"
    payloads = "; the two are not equal, byte by byte" if differs else ""
    story = f"{residue.copy.item_id} repeats {repeats}: {_STORIES[break_class]}{payloads}; {followed}."
    return break_of(
        contract,
        residue,
        break_class,
        story,
        evidence={
            "original": original_id,
            "copy_identity": origin_json(extra),
            "original_identity": origin_json(original),
            "partner": residue.partner.item_id if residue.partner else None,
            "across_windows": across_windows,
            "payload_differs": differs,
            **({"money_differs": True} if _says_other_money(residue, original) else {}),
        },
    )


def _says_other_money(residue: UnmatchedItem, original: LogRecord | None) -> bool:
    """Is what the first copy says known, and other money? Then the extra one may be its correction."""
    first = residue.original or original
    if first is None or first.amount_minor is None:
        return False
    return (first.amount_minor, first.currency) != (residue.copy.amount_minor, residue.copy.currency)


def original_item_id(residue: UnmatchedItem) -> str:
    """Return the item id of the copy that an extra one doubles, of this cut or of a look-up; "" if it is not known."""
    if residue.original is not None:
        return residue.original.item_id
    seen = (
        hit.item_id
        for hit in residue.lookup_hits
        if hit.side is ItemSide.TOPIC and hit.place in (RecordLocation.EARLIER_SLICE, RecordLocation.BEFORE_BASELINE)
        if hit.item_id != residue.copy.item_id
    )
    return next(seen, "")


def tell_cause(extra: LogRecord | None, original: LogRecord | None) -> BreakClass:
    """Return the class of two copies of one event, by their producers."""
    if extra is None or original is None:
        return BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN
    if bool(extra.action_id) != bool(original.action_id):
        return BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED
    same_session = None
    if extra.session is not None and original.session is not None:
        same_session = extra.session == original.session
    if NO_PRODUCER_ID in (extra.producer_id, original.producer_id):
        return _without_producer_id(extra, original, same_session=same_session)
    if _are_two_generations(extra, original, same_session=same_session):
        return BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE
    if extra.source is not None and extra.source == original.source and same_session is False:
        return BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED
    return BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION


def _without_producer_id(extra: LogRecord, original: LogRecord, *, same_session: bool | None) -> BreakClass:
    """Return the class where one copy has none, or both: sessions and sources tell, or nothing does."""
    if same_session is None:
        return BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN
    if extra.source is not None and original.source is not None and extra.source != original.source:
        return BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION
    if extra.producer_id != original.producer_id and (same_session or extra.source is None or original.source is None):
        return BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN
    return BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE if same_session else BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED


def _are_two_generations(extra: LogRecord, original: LogRecord, *, same_session: bool | None) -> bool:
    """Return whether two copies are of two generations: one producer id is one transactional.id, and another epoch
    another generation.

    Except where the epoch moves by itself: then only two sessions tell.
    """
    if not (extra.is_transactional and original.is_transactional):
        return False
    if extra.producer_id != original.producer_id or extra.producer_epoch == original.producer_epoch:
        return False
    keeps_its_epoch = any(
        record.span is not None and record.span.protocol is MarkerProtocol.CONSTANT_EPOCH
        for record in (extra, original)
    )
    return same_session is False or keeps_its_epoch
