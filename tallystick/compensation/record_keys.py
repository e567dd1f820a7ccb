"""The answer whether a record's key tells of which payment or event the record is, where its value cannot be read.

A payment's or match key counts where it stands in the record key alone: with no ASCII letter or digit right before or
behind it. An escape of JSON before it is none, nor is a byte from 0x80 on. Behind a byte that says its length, as Avro
and Protobuf write it, it stands alone whatever these are.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

_JSON_ESCAPE = re.compile(rb"\\(?:[bfnrt]|u[0-9A-Fa-f]{4})\Z")
_LONGEST_ESCAPE = 6
_JSON_DIGITS = re.compile(r"\\u([0-9a-f]{4})")
_CONTROL_BYTE = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def written_forms(*texts: str | None) -> frozenset[bytes]:
    """Return what a record key may have of these: each as it is, and as JSON writes it, which may escape a slash and
    write the digits of an escape in upper case.
    """
    written = {text for text in texts if text}
    written |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in written for ascii_only in (True, False)}
    written |= {_JSON_DIGITS.sub(lambda escape: rf"\u{escape[1].upper()}", form) for form in written}
    written |= {form.replace("/", r"\/") for form in written}
    return frozenset(form.encode() for form in written)


def tells(key: bytes, forms: Iterable[bytes]) -> bool:
    """Return whether one of these stands in the key alone."""
    return any(_stands_alone(key, at, form) for form in forms for at in _places(key, form))


@dataclass(frozen=True, kw_only=True)
class JoinedKeys:
    """Many record keys, a NUL between two, so that all are looked through at once. texts: those that are text, in which
    no NUL is.
    """

    texts: bytes
    others: bytes

    def may_tell(self, forms: Collection[bytes]) -> bool:
        """Return whether one of these stands in a key alone, or is in one that is no text at all: of its bytes nobody
        knows which are a letter, and which an id, a length or a tag.
        """
        return tells(self.texts, forms) or any(form in self.others for form in forms)


def joined_keys(keys: Collection[bytes]) -> JoinedKeys:
    texts = {key for key in keys if _is_text(key)}
    return JoinedKeys(texts=b"\0".join(texts), others=b"\0".join(key for key in keys if key not in texts))


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return not _CONTROL_BYTE.search(key)


def _places(key: bytes, form: bytes) -> Iterator[int]:
    at = key.find(form)
    while at >= 0:
        yield at
        at = key.find(form, at + 1)


def _stands_alone(key: bytes, at: int, form: bytes) -> bool:
    end = at + len(form)
    before, behind = key[max(at - _LONGEST_ESCAPE, 0) : at], key[end : end + 1]
    if before and before[-1] in (len(form), 2 * len(form)):
        return True
    return not behind.isalnum() and (not before[-1:].isalnum() or _JSON_ESCAPE.search(before) is not None)
