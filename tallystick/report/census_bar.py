"""The census for the eye: a bar per partition, the law with its numbers, and all partitions as one."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from tallystick.model.census_values import PartitionCensus
from tallystick.report.share_bar import share_bar
from tallystick.text.verdict_sentence import counted

CENSUS_PARTS: Mapping[str, str] = {
    "committed": "var(--committed)",
    "plain": "url(#plain)",
    "aborted": "url(#aborted)",
    "markers": "var(--markers)",
    "compacted": "url(#compacted)",
    "unexplained": "url(#unexplained)",
}
"""What an offset can be, with its fill; solid or patterned, so that it needs no eye for colour."""

BARS_MAX = 40
"""More are no picture any more; the table has every partition."""


@dataclass(frozen=True, kw_only=True)
class CensusBar:
    """One partition's bar with its words."""

    name: str
    total: str
    bar: Markup
    tone: str


def add_census(census: tuple[PartitionCensus, ...]) -> PartitionCensus | None:
    """All partitions as one, from offset 0 to their lengths' sum; None where nothing was counted."""
    if not census:
        return None

    def total(name: str) -> int:
        return sum(getattr(part, name) for part in census)

    known = [part.spark_rows for part in census if part.spark_rows is not None]
    return PartitionCensus(
        topic="all",
        partition=-1,
        kafka_offset_start=0,
        kafka_offset_end=total("kafka_offset_end") - total("kafka_offset_start"),
        committed=total("committed"),
        aborted=total("aborted"),
        plain=total("plain"),
        commit_markers=total("commit_markers"),
        abort_markers=total("abort_markers"),
        unexplained=total("unexplained"),
        without_producer_id=total("without_producer_id"),
        log_start=0,
        lso=0,
        high_watermark=0,
        spark_rows=sum(known) if len(known) == len(census) else None,
        compacted=total("compacted"),
        empty_transactions=total("empty_transactions"),
    )


def adds_up(part: PartitionCensus) -> bool:
    """Return whether every offset is named."""
    named = part.committed + part.aborted + part.plain + part.commit_markers + part.abort_markers + part.compacted
    return part.unexplained == 0 and named == part.kafka_offset_end - part.kafka_offset_start


def law(total: PartitionCensus) -> str:
    """The census' law with its numbers; compacted offsets only where there are any."""
    markers = total.commit_markers + total.abort_markers
    compacted = f"{total.compacted:,} compacted + " if total.compacted else ""
    return (
        f"{total.kafka_offset_end:,} offsets = {total.committed:,} committed + {total.plain:,} plain + "
        f"{total.aborted:,} aborted + {counted(markers, 'marker')} + {compacted}{total.unexplained:,} unexplained"
    )


def census_bars(census: tuple[PartitionCensus, ...]) -> tuple[CensusBar, ...]:
    """Return at most BARS_MAX: those that do not add up or where the readers disagree first, then by name."""

    def order(part: PartitionCensus) -> tuple[bool, str, int]:
        return is_sound(part), part.topic, part.partition

    return tuple(_census_bar(part) for part in sorted(census, key=order)[:BARS_MAX])


def is_sound(part: PartitionCensus) -> bool:
    """Return whether it adds up, and both readers counted the same."""
    return adds_up(part) and part.spark_rows == part.readable_records


def _census_bar(part: PartitionCensus) -> CensusBar:
    length = part.kafka_offset_end - part.kafka_offset_start
    parts = {
        "committed": part.committed,
        "plain": part.plain,
        "aborted": part.aborted,
        "markers": part.commit_markers + part.abort_markers,
        "compacted": part.compacted,
        "unexplained": part.unexplained,
    }
    name = f"{part.topic}[{part.partition}]"
    words = ", ".join(f"{number:,} {what}" for what, number in parts.items() if number) or "empty slice"
    return CensusBar(
        name=name,
        total=f"{length:,}",
        bar=share_bar(parts, whole=length, fills=CENSUS_PARTS, label=f"{name}: {words}"),
        tone="" if is_sound(part) else "doubtful",
    )
