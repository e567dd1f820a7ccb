"""Writes times, and texts of strangers, so that a person can look at them. Pure."""

import unicodedata
from datetime import UTC, datetime

from tallystick.model.errors import TallystickError

TEXT_CHARACTERS_MAX = 300
STORY_CHARACTERS_MAX = 3000
"""Of a sentence of ours that quotes strangers: who it names and what they hold must not be cut off."""

_NEVER_SHOWN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
"""Unicode categories of controls, formats (direction marks among them), private use, surrogates and line separators."""


def format_time(moment: datetime) -> str:
    """2026-03-01 12:00:00 UTC, whatever zone the database answered in."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_window(start: datetime, end: datetime) -> str:
    """The interval's two ends; a date that both share stands once."""
    first, last = start.astimezone(UTC), end.astimezone(UTC)
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"{first:%Y-%m-%d %H:%M:%S} to {until} UTC"


def escape_untrusted(text: str, *, characters_max: int = TEXT_CHARACTERS_MAX) -> str:
    """A text from a payload, safe to look at: control and direction marks written out, and not endless.

    A right-to-left mark inside a match key would turn a page's own words around, an escape sequence a terminal's.
    Escaping HTML is the template's work.
    """
    shown = text[:characters_max]
    visible = "".join(_written_out(character) for character in shown)
    return visible if len(text) <= characters_max else f"{visible}... ({len(text):,} characters)"


def story_text(text: str) -> str:
    """A sentence of ours that quotes such texts, safe to look at."""
    return escape_untrusted(text, characters_max=STORY_CHARACTERS_MAX)


def printed_text(text: str) -> str:
    """Text on its way to a terminal or a log, whole: only its line ends act, and what else would is written out.

    Every stream of ours goes through here, whatever the sentence is made of: an error may quote a column's name.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(one if one == "\n" else _written_out(one) for one in text)


def given_text(option: str, text: str, *, expected: str, refused: type[TallystickError]) -> str:
    """Return the text that a person typed, without spaces around it. Raises refused where nothing is left, or it is no
    UTF-8, or holds a NUL.
    """
    given = text.strip()
    if not given or not any(character.isprintable() for character in given):
        raise refused(f"{option}: got {escape_untrusted(text)!r}; expected {expected}")
    if fault := unwritable(given):
        raise refused(f"{option}: got {fault}; expected {expected}, in UTF-8 and without NUL")
    return given


def unwritable(text: str) -> str:
    """Return what a text has that no database takes; nothing for a text that it takes."""
    if "\0" in text:
        return "a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:  # how Python keeps bytes of a command line that are none
        return "bytes that are not UTF-8"
    return ""


def _written_out(character: str) -> str:
    return f"\\u{ord(character):04x}" if unicodedata.category(character) in _NEVER_SHOWN else character


def parse_utc(text: str | None) -> datetime | None:
    """A moment as the look-ups keep it."""
    return datetime.fromisoformat(text) if text else None
