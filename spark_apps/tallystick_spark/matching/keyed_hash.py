"""Hashes by which two sides are matched: SipHash-2-4 under a secret of one scan (ADR 22).

Whoever writes an event or a row writes it before the secret is drawn, so nobody can choose two keys of one hash. No
seed gives xxhash64 that: of some pairs of keys its hashes are equal under all seeds. What is kept and compared from run
to run, the content digests, knows no secret: see `xxhash`.
"""

import secrets
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

try:
    from tallystick_spark.matching._text_hashes import siphash_texts as _siphash_texts
except ImportError:  # no compiler was there when Tallystick was installed: pandas says the same, in more time
    _siphash_texts = None  # type: ignore[assignment]

_SECRET_BYTES = 12
_CODE_LETTERS = 3
"""A currency's code: so few bytes that a seed of xxhash64 is enough."""


def new_secret() -> str:
    """A key of 16 characters, which are 96 random bits."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def keyed_hashes(values: Iterable[bytes | str], secret: str) -> np.ndarray:
    """Return the hash of each value; of a text, of its UTF-8. Shape: int64."""
    some = list(values)
    boxed = np.empty(len(some), dtype=object)
    boxed[:] = some
    return _siphash(boxed, secret)


def keyed_texts(texts: pa.Array, secret: str) -> np.ndarray:
    """Return the same of a column without nulls. Shape: int64."""
    column = texts.cast(pa.binary())
    if _siphash_texts is None or not len(column):
        return _siphash(column.to_numpy(zero_copy_only=False), secret)
    _, ends, characters = column.buffers()
    hashed = _siphash_texts(ends, characters or b"", column.offset, len(column), secret.encode())
    return np.frombuffer(hashed, dtype=np.int64)


def keyed_currencies(currencies: pa.Array, secret: str) -> np.ndarray:
    """Return the same of a column of few different texts. Shape: int64."""
    codes = currencies.dictionary_encode()
    hashes: np.ndarray = keyed_texts(codes.dictionary, secret)[codes.indices.to_numpy()]
    return hashes


def _siphash(boxed: np.ndarray, secret: str) -> np.ndarray:
    """SipHash-2-4 of bytes and texts, by pandas' C code. Shape: int64."""
    from pandas.util import hash_array  # a third of a second, which who only plans a scan need not wait for

    return np.asarray(hash_array(boxed, hash_key=secret, categorize=False)).view(np.int64)


def keyed_currency(secret: str) -> Column:
    """Return the hash of a currency where Spark compares the sides. Spark has no SipHash, so the number differs."""
    short = F.xxhash64(F.lit(secret), "currency")
    return F.when(F.octet_length("currency") <= _CODE_LETTERS, short).otherwise(keyed_long_text("currency", secret))


def keyed_long_text(column: str, secret: str) -> Column:
    """Return the hash of a text of any length where Spark compares the sides."""
    return F.xxhash64(F.sha2(F.concat(F.lit(secret), column), 256))
