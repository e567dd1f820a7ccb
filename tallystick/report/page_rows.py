"""The rows of the report, and of pages that show the same."""

from dataclasses import dataclass

from markupsafe import Markup

from tallystick.contract.contract import Contract
from tallystick.model.break_history import ToldBreak
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.findings import DoubtFound, NoticeFound, Stake
from tallystick.model.open_item import ItemState, OpenItem
from tallystick.report.ageing import AgeBucket, AgeTotals
from tallystick.report.break_sample import BreakGroup
from tallystick.report.break_story import Paragraph, amount_of, own_paragraphs
from tallystick.report.evidence_lines import evidence_lines
from tallystick.report.leg_marks import LegMark, leg_marks
from tallystick.report.log_excerpt import EVIDENCE_KEY as STRIP_KEY
from tallystick.report.log_excerpt import strip_of
from tallystick.report.share_bar import share_bar
from tallystick.report.strip_drawing import draw_strip
from tallystick.text.finding_guide import BREAK_TEXTS, DOUBT_TEXTS, NOTICE_TEXTS, ClassText
from tallystick.text.money import format_minor, format_money
from tallystick.text.plain import escape_untrusted, format_time, story_text
from tallystick.text.reason_texts import reason_text
from tallystick.text.verdict_sentence import counted


@dataclass(frozen=True, kw_only=True)
class StakeRow:
    """Money of one class in one currency, with its bar on the scale of that currency."""

    break_class: BreakClass
    text: ClassText
    count: str
    amount: str
    bar: Markup


@dataclass(frozen=True, kw_only=True)
class DoubtRow:
    """One thing that could not be seen. holder and since: who keeps it from being seen, where anybody does."""

    text: ClassText
    doubt: str
    sentence: str
    holder: str
    since: str
    details: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class NoticeRow:
    """An observation that changes no verdict. pages: on-call was alerted."""

    text: ClassText
    notice: str
    sentence: str
    count: str
    pages: bool
    details: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class BreakRow:
    """One break, ready to read: its story, and the log or the legs drawn where the run kept them."""

    break_id: str
    leg: str
    amount: str
    match_key: str
    transaction_key: str
    copies: int
    story: str
    paragraphs: tuple[Paragraph, ...]
    strip: Markup | None
    strip_title: str
    legs: tuple[LegMark, ...]
    evidence: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class BreakSection:
    """The breaks of one class."""

    group: BreakGroup
    ruled_out: tuple[str, ...]
    summary: str
    hidden: str
    rows: tuple[BreakRow, ...]


@dataclass(frozen=True, kw_only=True)
class ItemRow:
    """One open item of this run."""

    item_id: str
    side: str
    match_key: str
    leg: str
    amount: str
    since: str
    due: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class AgeRow:
    """Open items of one age; money in words, empty where there is no item."""

    words: str
    waiting: int
    waiting_money: str
    broken: int
    broken_money: str


def stake_row(stake: Stake, largest: int, direction: Direction) -> StakeRow:
    text = BREAK_TEXTS[stake.break_class].for_direction(direction)
    amount = escape_untrusted(format_minor(stake.amount_minor, stake.currency)) if stake.currency else "not known"
    return StakeRow(
        break_class=stake.break_class,
        text=text,
        count=counted(stake.count, "break"),
        amount=amount,
        bar=share_bar(
            {"at stake": stake.amount_minor},
            whole=largest,
            fills={"at stake": "var(--bad)"},
            label=f"{text.title}: {amount}",
        ),
    )


def doubt_row(found: DoubtFound, direction: Direction) -> DoubtRow:
    details = dict(found.details)
    holder = details.pop("transactional_id", "") or details.pop("holder", "")
    since = details.pop("since_utc", None)
    return DoubtRow(
        text=DOUBT_TEXTS[found.doubt].for_direction(direction),
        doubt=found.doubt,
        sentence=story_text(found.sentence),
        holder=escape_untrusted(str(holder)) if holder else "",
        since=escape_untrusted(str(since)) if since else "",
        details=evidence_lines(details) if details else (),
    )


def notice_row(found: NoticeFound, direction: Direction) -> NoticeRow:
    in_a_table = found.notice is Notice.PROMISE_AT_RISK
    return NoticeRow(
        text=NOTICE_TEXTS[found.notice].for_direction(direction),
        notice=found.notice,
        sentence=story_text(found.sentence),
        count=f"{found.count:,}",
        pages=found.pages,
        details=evidence_lines(dict(found.details)) if found.details and not in_a_table else (),
    )


def break_row(told: ToldBreak, contract: Contract) -> BreakRow:
    item_break = told.item_break
    strip = strip_of(item_break)
    evidence = {name: value for name, value in item_break.evidence.items() if name != STRIP_KEY}
    return BreakRow(
        break_id=str(item_break.break_id),
        leg=escape_untrusted(item_break.leg),
        amount=amount_of(item_break),
        match_key=escape_untrusted(item_break.match_key),
        transaction_key=escape_untrusted(item_break.transaction_key),
        copies=item_break.copies,
        story=story_text(item_break.story),
        paragraphs=own_paragraphs(told),
        strip=draw_strip(strip) if strip else None,
        strip_title=escape_untrusted(f"{strip.topic_partition}, around offset {strip.kafka_offset}") if strip else "",
        legs=leg_marks(item_break, contract.legs),
        evidence=evidence_lines(evidence),
    )


STATE_WORDS = {
    ItemState.OPEN: "opened, or still waiting for its partner",
    ItemState.CLEARED: "cleared: the partner came",
    ItemState.BROKEN: "broken: a proven disagreement",
    ItemState.UNDECIDABLE: "undecidable: nobody can say whether it has its partner",
    ItemState.WRITTEN_OFF: "still written off: the other side followed it",
}


def item_row(item: OpenItem) -> ItemRow:
    return ItemRow(
        item_id=escape_untrusted(item.item_id),
        side=item.side,
        match_key=escape_untrusted(item.match_key),
        leg=escape_untrusted(item.leg),
        amount=escape_untrusted(format_minor(item.amount_minor, item.currency)) if item.currency else "not known",
        since=format_time(item.first_seen_utc),
        due=format_time(item.due_utc),
        reason=escape_untrusted(reason_text(item.reason)),
    )


def age_row(bucket: AgeBucket) -> AgeRow:
    return AgeRow(
        words=bucket.words,
        waiting=bucket.waiting.count,
        waiting_money=money_of(bucket.waiting),
        broken=bucket.broken.count,
        broken_money=money_of(bucket.broken),
    )


def money_of(standing: AgeTotals) -> str:
    """Return the sum of its money in words, with how many have none; empty where there is no item."""
    known = [escape_untrusted(format_money(standing.money))] if standing.money else []
    unknown = [f"{standing.unknown:,} not known"] if standing.unknown else []
    return " and ".join([*known, *unknown])
