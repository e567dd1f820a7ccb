"""The overview of the contracts: whether the books agree, since when not, how much money, and who holds what. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from tallystick.contract.verdict_deadline import next_firing
from tallystick.model.finding_names import NOTHING_READ
from tallystick.model.findings import total_money
from tallystick.model.metric_figures import ClassTotal
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.pages.window_strip import NO_VERDICT, StripCell, draw_windows, strip_cells, window_cells
from tallystick.report.page_rows import DoubtRow, doubt_row
from tallystick.store.views.overview_store import ContractOverview
from tallystick.text.duration import span_text
from tallystick.text.money import format_minor
from tallystick.text.plain import escape_untrusted
from tallystick.text.verdict_sentence import counted

WINDOWS_SHOWN = 48
"""Two days of hourly windows."""


@dataclass(frozen=True, kw_only=True)
class HeldRow:
    """The holder of a side that cannot be read. holder: "" where it is not known."""

    title: str
    holder: str
    since: str


@dataclass(frozen=True, kw_only=True)
class OverviewRow:
    """One contract. newest: its newest judged window; last_broken: the newest broken one of those that were read.

    open_money: of the broken copies, each with its own amount, per currency, in words. oldest_utc: when the oldest open
    or broken item was first seen. without_verdict: windows that have ended and have none; are_all_without: there may be
    more than are shown. looked: has the newest run asked who holds what, and what expires? given_up, loose: as
    ContractOverview has them.
    """

    contract: str
    owner: str
    strip: Markup
    newest: StripCell | None
    last_broken: StripCell | None
    open_money: tuple[str, ...]
    broken: int
    waiting: int
    oldest_utc: datetime | None
    held: tuple[HeldRow, ...]
    judged_until_utc: datetime | None
    behind: str
    unread: int
    held_back: int
    without_verdict: int
    are_all_without: bool
    looked: bool
    expires_utc: datetime | None
    headroom: str
    next_run_utc: datetime
    given_up: int
    loose: int


@dataclass(frozen=True, kw_only=True)
class OverviewPage:
    """All contracts that the reader may see, those that need somebody first. open_money: two contracts that cover the
    same books both count it.
    """

    rows: tuple[OverviewRow, ...]
    sentence: str
    open_money: tuple[str, ...]


def overview_page(books: Iterable[ContractOverview], *, now_utc: datetime) -> OverviewPage:
    """Gather the page."""
    found = list(books)
    rows = sorted((overview_row(book, now_utc=now_utc) for book in found), key=_urgent_first)
    standing = [group for book in found for group in book.standing]
    return OverviewPage(rows=tuple(rows), sentence=_sentence(rows), open_money=open_money(standing))


def overview_row(book: ContractOverview, *, now_utc: datetime) -> OverviewRow:
    """One contract's line."""
    cells = strip_cells(book.windows, schedule=book.contract.schedule, now_utc=now_utc, count=WINDOWS_SHOWN)
    judged = [cell for cell in window_cells(book.windows) if cell.kind in Verdict.__members__]
    newest = judged[-1] if judged else None
    waiting = [group.items for group in book.standing if group.items.state is ItemState.OPEN]
    broken = [group.items for group in book.standing if group.items.state is ItemState.BROKEN]
    slices = book.cut.topic_slices
    return OverviewRow(
        contract=book.contract.name,
        owner=book.contract.owner,
        strip=draw_windows(cells),
        newest=newest,
        last_broken=next((cell for cell in reversed(judged) if cell.kind == Verdict.BROKEN.value), None),
        open_money=open_money(book.standing),
        broken=sum(group.count for group in broken),
        waiting=sum(group.count for group in waiting),
        oldest_utc=min((group.first_seen_utc for group in (*waiting, *broken)), default=None),
        held=tuple(
            _held(row)
            for row in (doubt_row(doubt, book.contract.direction) for doubt in book.doubts)
            if row.holder or row.since
        ),
        judged_until_utc=newest.window_end_utc if newest else None,
        behind=span_text(now_utc - newest.window_end_utc) if newest else "",
        unread=sum(max(0, part.snapshot.high_watermark - part.offsets.kafka_offset_end) for part in slices),
        held_back=sum(max(0, part.mark - part.offsets.kafka_offset_end) for part in slices),
        without_verdict=sum(cell.kind == NO_VERDICT for cell in cells),
        are_all_without=all(cell.kind == NO_VERDICT for cell in cells),
        looked=not any(found.doubt in NOTHING_READ for found in book.doubts),
        expires_utc=book.expires_utc,
        headroom=span_text(book.expires_utc - now_utc) if book.expires_utc else "",
        next_run_utc=next_firing(book.contract.schedule, now_utc),
        given_up=book.given_up,
        loose=book.loose,
    )


def open_money(standing: Iterable[ClassTotal]) -> tuple[str, ...]:
    """Amounts of the copies that are broken and that nobody has cleared or written off, per currency, in words."""
    money = total_money(
        (group.items.currency, group.items.amount_minor)
        for group in standing
        if group.items.state is ItemState.BROKEN and group.items.currency
    )
    return tuple(escape_untrusted(format_minor(amount, currency)) for currency, amount in money.items())


def _held(row: DoubtRow) -> HeldRow:
    return HeldRow(title=row.text.title, holder=row.holder, since=row.since)


def _sentence(rows: Sequence[OverviewRow]) -> str:
    if not rows:
        return "No contract that you may read has a run yet."
    broken = [row for row in rows if row.broken]
    doubtful = [row for row in rows if not row.broken and row.newest and row.newest.kind == Verdict.INCONCLUSIVE.value]
    if broken:
        items = sum(row.broken for row in broken)
        return f"{counted(items, 'broken item')} in {counted(len(broken), 'contract')} of {len(rows)}."
    loose = [row for row in rows if row.newest and row.newest.kind == Verdict.BROKEN.value]
    if loose:
        return f"{counted(len(loose), 'contract')} of {len(rows)} broke in the newest window{_end_of(loose)}."
    if doubtful:
        return f"Nothing is broken; {counted(len(doubtful), 'contract')} of {len(rows)} could not be read completely."
    if any(row.newest is None or row.without_verdict for row in rows):
        return "Nothing is broken; some windows have ended without a verdict."
    return "The newest windows agree."


def _end_of(broke: Sequence[OverviewRow]) -> str:
    """Say why nothing stands broken of what broke."""
    if not any(row.given_up for row in broke):
        return ", and no item follows that"
    if any(row.loose or not row.given_up for row in broke):
        return "; the breaks were written off, or no item follows them"
    return "; the breaks were written off"


def _urgent_first(row: OverviewRow) -> tuple[bool, bool, str]:
    kind = row.newest.kind if row.newest else Verdict.INCONCLUSIVE.value
    is_broken = row.broken or kind == Verdict.BROKEN.value
    return not is_broken, kind != Verdict.INCONCLUSIVE.value, row.contract
