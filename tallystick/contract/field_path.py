"""Names of fields inside a JSON payload: a key, or a path of keys such as data.order.id.

A name of letters, digits, _ and - stands as it is. Any other stands in double quotes, as in data."order.id". A path has
one spelling only, so that two contracts that name the same field have the same text for it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any

NAMES_MAX = 16
"""Names in one path."""
LENGTH_MAX = 250
"""Characters of one path."""
_PLAIN = "[A-Za-z_][A-Za-z0-9_-]*"
_NAME = rf'(?:{_PLAIN}|"[^"\\\x00-\x1f]+")'
PATH_PATTERN = rf"^{_NAME}(?:\.{_NAME})*$"
PATH_MEANING = (
    "a key of the JSON payload, or a path of keys with dots between them: letters, digits, _ and -; a key with other "
    'characters stands in double quotes, as in data."order.id"'
)
_WHOLE, _EACH, _NEEDS_NO_QUOTES = re.compile(PATH_PATTERN), re.compile(_NAME), re.compile(_PLAIN)
_ELSEWHERE = (
    (re.compile(r"^\$"), "expected a path without $ before it, such as data.order.id"),
    (
        re.compile(r"[\[\]*]"),
        "expected keys of objects only: a member of a list has no name of its own, and a path leads to one value",
    ),
    (re.compile("`"), 'expected double quotes in place of backticks, as in data."order.id"'),
    (re.compile(r"\\"), 'expected no backslash: a key with a dot stands in double quotes, as in data."order.id"'),
    (re.compile("[/:]"), "expected dots between the keys of a path, as in data.order.id"),
)
"""Spellings that other programs use for a path, each with what to write here."""
ABSENT = object()
"""The value of a path that a document does not have."""


@lru_cache(maxsize=1024)
def names_of(path: str) -> tuple[str, ...]:
    """Return the keys on the way to a field, from the outermost to its own."""
    return tuple(name.strip('"') for name in _EACH.findall(path))


def path_of(names: Iterable[str]) -> str:
    """Return the path of these keys, in its one spelling. A key that no path can hold gives none that is read."""
    return ".".join(name if _NEEDS_NO_QUOTES.fullmatch(name) else f'"{name}"' for name in names)


def checked_path(text: str) -> str:
    """Return a path as it is. Raises ValueError with the reason where it is none, or not in its one spelling."""
    if not _WHOLE.fullmatch(text):
        reason = next((reason for sign, reason in _ELSEWHERE if '"' not in text and sign.search(text)), None)
        raise ValueError(reason or f"expected {PATH_MEANING}")
    if len(names_of(text)) > NAMES_MAX or len(text) > LENGTH_MAX:
        raise ValueError(f"expected at most {NAMES_MAX} keys and {LENGTH_MAX} characters")
    if text != path_of(names_of(text)):
        raise ValueError(f"expected {path_of(names_of(text))}: only keys with other characters stand in quotes")
    return text


def refuse_fields_inside_fields(paths: Collection[str]) -> None:
    """Raise ValueError where one path leads through the value of another: no payload has both."""
    for outer, inner in combinations(sorted(set(paths), key=names_of), 2):
        if names_of(inner)[: len(names_of(outer))] == names_of(outer):
            raise ValueError(f"expected one value at each path: {inner} lies inside {outer}, which is a field itself")


def document_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document that has these values at these paths, and nothing else. Of one path the last value counts."""
    document: dict[str, Any] = {}
    for path, value in values.items():
        *parents, name = names_of(path)
        inside = document
        for parent in parents:
            inside = inside.setdefault(parent, {})
        inside[name] = value
    return document


def value_at(document: Any, path: str) -> Any:
    """Return the value at a path; ABSENT where the document has none."""
    for name in names_of(path):
        if not isinstance(document, Mapping) or name not in document:
            return ABSENT
        document = document[name]
    return document


def values_by_path(document: Mapping[str, Any], *, outside: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of everything that is no object. outside: the keys that led to the document.

    A key that no path can hold is left out.
    """
    for name, value in document.items():
        names = (*outside, name)
        if isinstance(value, Mapping) and len(names) < NAMES_MAX:
            yield from values_by_path(value, outside=names)
        elif not isinstance(value, Mapping) and _WHOLE.fullmatch(path := path_of(names)) and len(path) <= LENGTH_MAX:
            yield path, value
