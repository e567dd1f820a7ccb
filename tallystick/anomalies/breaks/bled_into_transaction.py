"""T6: a record of an earlier, unfinished producer transaction was committed by a later one's marker.

Evidence: between two markers of one producer id stand data batches of two epochs, and a COMMIT ended them; those of the
earlier epoch belong to a transaction that never ended. Source: KIP-890. Not to be mistaken for an epoch that moves from
one transaction to the next (transaction.version 2), across a marker; nor for stray records that an ABORT took along.
Such a record is reported as this and as no phantom, missing row or duplicate beside it, as far as its batch is named;
a later copy of the same event is still a duplicate. The census names the first few batches, of each the first records;
where there are more, each story says how many.
"""

from collections.abc import Iterator, Mapping

from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import BLED_RECORDS, bled_item_ids_of
from tallystick.model.census_values import BledBatch, PartitionCensus
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, break_id


def bled_into_transaction(
    contract: Contract, census: tuple[PartitionCensus, ...], bled_records: Mapping[str, LogRecord]
) -> Iterator[Break]:
    """Yield a break per record, for the first few batches of a partition; each says how many batches bled there."""
    for part in census:
        for batch in part.bled:
            for item_id in bled_item_ids_of(part, batch):
                if item_id in bled_records:
                    yield _bled(contract, part, batch, bled_records[item_id])


def _bled(contract: Contract, part: PartitionCensus, batch: BledBatch, record: LogRecord) -> Break:
    ended = f"the COMMIT at {batch.marker_offset}" if batch.marker_offset is not None else "a COMMIT"
    story = (
        f"{record.item_id} was written by producer {batch.producer_id} under epoch {batch.producer_epoch}, in a "
        f"transaction that never ended; {ended} of its next one, under epoch {batch.span_epoch}, committed it too."
        f"{_not_named(part)}"
    )
    return Break(
        break_id=break_id(
            contract=contract.name,
            break_class=BreakClass.BLED_INTO_TRANSACTION,
            match_key=record.match_key,
            position=record.item_id,
        ),
        break_class=BreakClass.BLED_INTO_TRANSACTION,
        match_key=record.match_key,
        transaction_key=record.transaction_key,
        leg=record.leg,
        amount_minor=record.amount_minor or 0,
        currency=record.currency if record.amount_minor is not None else "",
        copies=1,
        story=story,
        evidence={
            "at": record.item_id,
            "span_epoch": batch.span_epoch,
            "marker_offset": batch.marker_offset,
            "bled_batches": part.bled_batches,
        },
    )


def _not_named(part: PartitionCensus) -> str:
    """Say that more bled than the breaks name, and how many batches did; "" where they name all."""
    cut_short = sum(batch.kafka_offset_end - batch.kafka_offset_start > BLED_RECORDS for batch in part.bled)
    if part.bled_batches == len(part.bled) and not cut_short:
        return ""
    return (
        f" Not all that bled here is named: {part.bled_batches:,} batches did; named are the first {len(part.bled)}, "
        f"with their first {BLED_RECORDS} offsets each."
    )
