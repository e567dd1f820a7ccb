"""Draws the log around a break: a box per batch, filled by what became of it, its words below. Pure, and by hand.

Text stands in the picture, so it has a size of its own and is scrolled, not shrunk, where the page is narrow. Fills are
the page's own variables and patterns.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tallystick.report.log_excerpt import LogStrip, StripBatch

_LABELS, _CELL, _HOLE, _EDGE = 54, 62, 38, 4
_BOX_TOP, _BOX_HEIGHT = 22, 26
_WORDS_TOP = _BOX_TOP + _BOX_HEIGHT + 13
_LINE = 13
_CHARACTER = 6
"""No narrower than a letter of the text, on average."""
_SPAN_TOP = _WORDS_TOP + 3 * _LINE - 2
_HEIGHT = _SPAN_TOP + 18

_FILLS = {
    "committed": "var(--committed)",
    "plain": "url(#plain)",
    "aborted": "url(#aborted)",
    "open": "var(--card)",
    "commit marker": "var(--markers)",
    "abort marker": "var(--markers)",
}
_GLYPHS = {"commit marker": "M-6 0l4 5l8-10", "abort marker": "M-5-5l10 10M5-5l-10 10"}


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """A batch with its place in the picture, in pixels."""

    batch: StripBatch
    x: int


@dataclass(frozen=True, kw_only=True)
class _Span:
    """The producer transaction of our batch, in pixels. end: None where its marker is not among the batches."""

    start: int
    end: int | None

    @property
    def words(self) -> str:
        return "its producer transaction" + (", which does not end here" if self.end is None else "")


def draw_strip(strip: LogStrip) -> Markup:
    """The picture, with all that it shows in words for who does not see it."""
    cells = list(_cells(strip.batches))
    edge = cells[-1].x + _CELL if cells else _LABELS - _EDGE
    span = _span_of(cells, strip.kafka_offset)
    width = max(edge, span.start + len(span.words) * _CHARACTER if span else 0) + _EDGE
    parts = [
        *_labels(),
        *(part for cell in cells for part in _cell(cell, ours=_holds(cell.batch, strip.kafka_offset))),
        *_holes(cells),
        *(_draw_span(span, edge) if span else ()),
    ]
    return Markup(
        f'<svg class="strip" role="img" aria-label="{escape(describe_strip(strip))}" width="{width}" '
        f'height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}">{"".join(parts)}</svg>'
    )


def describe_strip(strip: LogStrip) -> str:
    """The picture in words: "t[0] around offset 17: 15 to 16 committed by producer 7 epoch 0, ..."."""
    batches = "; ".join(_describe(batch) for batch in strip.batches)
    return f"{strip.topic_partition} around offset {strip.kafka_offset}: {batches}"


def _describe(batch: StripBatch) -> str:
    last = batch.kafka_offset_end - 1
    place = (
        f"{batch.kafka_offset_start}" if batch.kafka_offset_start == last else f"{batch.kafka_offset_start} to {last}"
    )
    by = f" by producer {batch.producer_id} epoch {batch.producer_epoch}" if batch.producer_id >= 0 else ""
    return f"{place} {batch.kind}{by}"


def _cells(batches: Sequence[StripBatch]) -> Iterator[_Cell]:
    x, position = _LABELS, batches[0].kafka_offset_start if batches else 0
    for batch in batches:
        x += _HOLE if batch.kafka_offset_start > position else 0
        yield _Cell(batch=batch, x=x)
        x, position = x + _CELL, batch.kafka_offset_end


def _holds(batch: StripBatch, kafka_offset: int) -> bool:
    return batch.kafka_offset_start <= kafka_offset < batch.kafka_offset_end


def _cell(cell: _Cell, *, ours: bool) -> Iterator[str]:
    batch, middle = cell.batch, cell.x + _CELL // 2
    yield _text(middle, _BOX_TOP - 7, str(batch.kafka_offset_start), "ours" if ours else "offset")
    edge = ' stroke="var(--muted)" stroke-dasharray="4 3"' if batch.kind == "open" else ""
    edge = ' stroke="var(--ink)" stroke-width="3"' if ours else edge
    yield (
        f'<rect x="{cell.x + 2}" y="{_BOX_TOP}" width="{_CELL - 4}" height="{_BOX_HEIGHT}" rx="3" '
        f'fill="{_FILLS.get(batch.kind, "var(--soft)")}"{edge}/>'
    )
    if batch.kind in _GLYPHS:
        yield (
            f'<path d="{_GLYPHS[batch.kind]}" transform="translate({middle} {_BOX_TOP + _BOX_HEIGHT // 2})" '
            'fill="none" stroke="var(--card)" stroke-width="2.5"/>'
        )
    elif (count := batch.kafka_offset_end - batch.kafka_offset_start) > 1:
        yield (
            f'<rect x="{middle - 13}" y="{_BOX_TOP + 6}" width="26" height="14" rx="7" fill="var(--card)"/>'
            + _text(middle, _BOX_TOP + 17, f"{count}", "kind")
        )
    yield _text(middle, _WORDS_TOP, batch.kind.removesuffix(" marker"), "kind")
    known = batch.producer_id >= 0
    yield _text(middle, _WORDS_TOP + _LINE, f"{batch.producer_id}" if known else "none", "")
    yield _text(middle, _WORDS_TOP + 2 * _LINE, f"{batch.producer_epoch}" if known else "", "")


def _labels() -> Iterator[str]:
    for y, words in ((_BOX_TOP - 7, "offset"), (_WORDS_TOP, "what"), (_WORDS_TOP + _LINE, "producer")):
        yield _text(0, y, words, "label")
    yield _text(0, _WORDS_TOP + 2 * _LINE, "epoch", "label")


def _holes(cells: Sequence[_Cell]) -> Iterator[str]:
    """A hole between two batches: so many offsets that hold nothing."""
    for before, after in itertools.pairwise(cells):
        missing = after.batch.kafka_offset_start - before.batch.kafka_offset_end
        if missing > 0:
            middle = (before.x + _CELL + after.x) // 2
            yield _text(middle, _BOX_TOP + 12, f"{missing}", "")
            yield _text(middle, _BOX_TOP + 24, "empty", "")


def _span_of(cells: Sequence[_Cell], kafka_offset: int) -> _Span | None:
    """From the transaction's first batch to its marker; None where our batch is in none."""
    at = next((n for n, cell in enumerate(cells) if _holds(cell.batch, kafka_offset)), None)
    if at is None or cells[at].batch.kind not in ("committed", "aborted", "open"):
        return None
    producer_id = cells[at].batch.producer_id
    mine = [n for n, cell in enumerate(cells) if cell.batch.producer_id == producer_id]
    ended = [n for n in mine if cells[n].batch.kind.endswith("marker")]
    last = next((n for n in ended if n > at), None)
    previous = max((n for n in ended if n < at), default=-1)
    first = min(n for n in mine if n > previous)
    middle = _CELL // 2
    return _Span(start=cells[first].x + middle, end=None if last is None else cells[last].x + middle)


def _draw_span(span: _Span, edge: int) -> Iterator[str]:
    """A line under it, to its marker, or to the edge."""
    end = edge if span.end is None else span.end
    tick = "" if span.end is None else f"v-5M{end} {_SPAN_TOP}"
    yield (
        f'<path d="M{span.start} {_SPAN_TOP - 5}v5H{end}{tick}" fill="none" stroke="var(--ink)" stroke-width="1.5"/>'
    )
    yield _text(span.start, _SPAN_TOP + 13, span.words, "span")


def _text(x: int, y: int, words: str, kind: str) -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{style}>{escape(words)}</text>'
