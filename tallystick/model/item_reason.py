"""The reason for an item's state: a code, and what it names. Rules compare codes; nobody compares sentences.

Reasons are stored, and a cut's digest holds them, as the text that `Reason.stored` gives. So a code's value is the text
of old: what people are shown may be worded anew in tallystick/text/reason_texts.py, this may not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache

from tallystick.model.finding_names import BreakClass


class ReasonSide(StrEnum):
    """The name of the side that a reason speaks of. An input topic plays the ledger's part in topic_to_topic."""

    TOPIC = "topic"
    LEDGER = "ledger"
    INPUTS = "input topic"

    @property
    def row(self) -> str:
        """Return the name of one copy of the ledger's side."""
        return "input" if self is ReasonSide.INPUTS else "row"


class ReasonCode(StrEnum):
    """The value is what is stored, with places for what a reason names: {there} and {row} of its side, {about}."""

    WITHOUT_KEY = "it has no key that an event could have"
    MISROUTED = "its leg belongs to {about}"
    """about: the topic that has the leg."""
    EXTRA_WAS_FOLLOWED = "the other side followed it"
    EXTRA_ALONE = "the other side has no {row} for it"
    KEY_WAS_PAIRED = "its key was paired already"
    BESIDE_UNREAD = "another one of its key stands where no run has read it"
    IDLE_REVERSAL = "it takes back {about}, which is no {row} of its leg and money that a run judged one too many"
    """about: the item id of what it names."""
    FIELDS_DIFFER = "the compared fields differ"
    SUM_DIFFERS = "its parts add up to another sum"
    OTHER_MONEY_THAN_PAIRED = "it is not what was paired with its event: its money is another"
    ORIGIN_STILL_OPEN = "its event is in a producer transaction that is still open"
    WITHIN_GRACE = "within the partner's grace"
    BEYOND_CUT = "its partner lies beyond the cut of the {there}"
    BEYOND_EVERY_CUT = "its partner lies beyond the cut of the {there} in one run after another"
    BEFORE_BASELINE = "its partner lies before the baseline of the {there}"
    WRITTEN_ANEW = "its partner on the {there} was paired before: it was written anew"
    PAIRED_BEFORE = "its partner on the {there} was read before, and is not open any more"
    OFFSETS_EXPIRED = "its partner may have been among the offsets that expired unread"
    MAY_BE_OLDER = "it may be an older {row}, written anew, whose event was read before it left the log"
    """Of a row alone that nobody can tell from one that earlier cuts have read."""
    INPUT_OUT_OF_SIGHT = "its input may lie beyond the retained log and the index of keys"
    PARTNER_UNREAD = "its partner on the {there} could not be read"
    SIDE_HELD_BACK = "the {there} is held back before the deadline"
    ACKNOWLEDGED_OFFSET_EXPIRED = "what the offset held that was acknowledged for it cannot be said any more"
    CUT_AWAY = "the log was cut back below it while this run read it"
    GONE_UNREAD = "it left the log before this run could read what it may take back"
    PARTNER_CUT_AWAY = "the log was cut back below its partner while this run read it"
    TAKEN_BACK_ROW_GONE = "one of its key was taken back, and does not stand any more"
    SETTLED_WITHOUT_IT = "the {there} has settled past the deadline without it"
    PARTNER_CAME = "its partner came"
    TAKEN_BACK = "a compensation took it back"
    LEGS_CAME = "its other legs came"
    LEGS_STRAYED = "{about}: on a stray topic, posted from there"
    """about: the absent legs."""
    LEGS_OF_BEFORE_AWAITED = "waits for {about}, and its transaction is older than the books"
    """about: the absent legs. Ahead of LEGS_AWAITED, whose text would fit a stored one too."""
    LEGS_AWAITED = "waits for {about}"
    """about: the absent legs."""
    BREAK = "{break_class}"
    """The item answers for a break of this class."""
    UNKNOWN = "{text}"
    """A stored text of which this release knows no code. It is shown as it stands, and no rule goes by it."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """side: where the code's text has a {there} or {row}, else None. about: what the reason names besides, or ""."""

    code: ReasonCode
    side: ReasonSide | None = None
    about: str = ""

    @cached_property
    def stored(self) -> str:
        """The text that rows, JSON documents and digests hold: the same for ever."""
        return self.in_words(self.code.value)

    def in_words(self, template: str) -> str:
        """A text of this reason's code, with what the reason names in its places."""
        places = dict.fromkeys(("about", "break_class", "text"), self.about)
        if self.side is not None:
            places |= {"there": self.side.value, "row": self.side.row}
        return template.format(**places)

    def of_inputs(self) -> "Reason":
        """The same, where an input topic plays the ledger's part."""
        return replace(self, side=ReasonSide.INPUTS) if self.side is ReasonSide.LEDGER else self


@lru_cache(maxsize=4096)  # a broken window asks for the same few reasons a million times
def reason_of(code: ReasonCode, *, there: ReasonSide = ReasonSide.LEDGER, about: str = "") -> Reason:
    """A reason as the rules give it. there: the other side, for codes that speak of it; rows are the ledger's."""
    if "{there}" in code.value:
        return Reason(code=code, side=there, about=about)
    return Reason(code=code, side=ReasonSide.LEDGER if "{row}" in code.value else None, about=about)


def break_reason(break_class: BreakClass) -> Reason:
    """Return the reason of an item that answers for a break."""
    return reason_of(ReasonCode.BREAK, about=break_class.value)


def read_reason(stored: str) -> Reason:
    """The reason of a stored text: `read_reason(text).stored` is the text, whatever it says."""
    if stored in _BREAK_CLASSES:
        return reason_of(ReasonCode.BREAK, about=stored)
    if stored in _WITHOUT_NAMES:
        return _WITHOUT_NAMES[stored]
    for reason, pattern in _WITH_A_NAME:
        if found := pattern.fullmatch(stored):
            return replace(reason, about=found["about"])
    return reason_of(ReasonCode.UNKNOWN, about=stored)


_BREAK_CLASSES = frozenset(one.value for one in BreakClass)
_A_NAME = "\N{NULL}"


def _forms_of(code: ReasonCode) -> Iterator[Reason]:
    """Of every side that the code's text may speak of."""
    for there in (ReasonSide.LEDGER, ReasonSide.TOPIC):
        yield reason_of(code, there=there)
    yield reason_of(code).of_inputs()


def _pattern(reason: Reason) -> re.Pattern[str]:
    before, after = replace(reason, about=_A_NAME).stored.split(_A_NAME)
    return re.compile(f"{re.escape(before)}(?P<about>.*){re.escape(after)}", re.DOTALL)


_FORMS = [form for code in ReasonCode if code not in (ReasonCode.BREAK, ReasonCode.UNKNOWN) for form in _forms_of(code)]
_WITHOUT_NAMES = {form.stored: form for form in _FORMS if "{about}" not in form.code.value}
_WITH_A_NAME = [(form, _pattern(form)) for form in _FORMS if "{about}" in form.code.value]
