"""The hash that sides are matched by is SipHash, and made alike of a list and of a column."""

import struct

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

from tallystick_spark.matching import keyed_hash
from tallystick_spark.matching._text_hashes import siphash_texts, xxhash_texts
from tallystick_spark.matching.keyed_hash import keyed_currencies, keyed_hashes, keyed_texts, new_secret
from tests.unit.builders import MORE

SECRET = "0123456789abcdef"
ALWAYS_EQUAL = ("H\u075c\u10b6\u07c4\u01f1\u063f\u056c\u0109", "h\u041bI'jMx\u01f1\u063f&a7s")


@pytest.mark.parametrize(
    ("value", "sip_hash"),
    [(b"", 0x726FDB47DD0E0E31), (bytes(range(15)), 0xA129CA6149BE45E5)],
    ids=["empty", "15 bytes"],
)
def test_it_is_siphash_by_its_authors_vectors(value: bytes, sip_hash: int) -> None:
    """Mixed once more, which loses nothing. Source: Aumasson and Bernstein, SipHash, appendix A."""
    key = "".join(map(chr, range(16)))
    (found,) = keyed_hashes([value], key)
    assert int(found) % 2**64 == mixed(sip_hash)


def mixed(number: int) -> int:
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return number ^ number >> 31


@given(texts=st.lists(st.text(), max_size=20), skipped=st.integers(0, 3))
def test_bytes_texts_and_columns_have_one_hash(texts: list[str], skipped: int) -> None:
    expected = keyed_hashes(texts, SECRET).tolist()
    assert len(expected) == len(texts)
    assert keyed_hashes([text.encode() for text in texts], SECRET).tolist() == expected
    column = pa.array(texts, pa.string())[skipped:]
    assert keyed_texts(column, SECRET).tolist() == expected[skipped:]
    assert keyed_currencies(column, SECRET).tolist() == expected[skipped:]


@given(texts=st.lists(st.text(max_size=40), max_size=20), skipped=st.integers(0, 3))
def test_a_column_s_hashes_are_the_same_without_a_compiler(texts: list[str], skipped: int) -> None:
    column = pa.array(texts, pa.string())[skipped:]
    expected = keyed_texts(column, SECRET).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_hash, "_siphash_texts", None)
        assert keyed_texts(column, SECRET).tolist() == expected


@MORE
@given(
    places=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 30), max_size=9),
    data=st.binary(max_size=20),
    first=st.integers(-2, 9),
    rows=st.integers(-1, 9),
    more=st.sampled_from([0, 8, 16, 24, 64]),
)
@example(places=[0, 3, 20], data=b"x" * 20, first=0, rows=2, more=16)
@example(places=[0, 21], data=b"x" * 20, first=0, rows=1, more=8)
def test_buffers_that_do_not_fit_are_refused(places: list[int], data: bytes, first: int, rows: int, more: int) -> None:
    ends = struct.pack(f"{len(places)}i", *places)
    for hash_texts in (xxhash_texts, siphash_texts):
        try:
            hashes = hash_texts(ends, data, first, rows, bytes(more))
        except ValueError:
            continue
        asked = places[first : first + rows + 1] if rows else []
        assert len(hashes) == 8 * rows and asked == sorted(asked)
        assert not asked or (asked[0] >= 0 and asked[-1] <= len(data))


def test_texts_that_xxhash64_cannot_tell_apart_under_any_seed_are_two() -> None:
    one, other = (text.encode() for text in ALWAYS_EQUAL)
    assert all(xxh64_intdigest(one, seed) == xxh64_intdigest(other, seed) for seed in (0, 42, 2**64 - 1, 987_654_321))
    assert len(set(keyed_hashes(ALWAYS_EQUAL, SECRET).tolist())) == 2


def test_each_secret_gives_other_hashes() -> None:
    secrets = {new_secret() for _ in range(10)}
    assert {len(secret) for secret in secrets} == {16}
    assert len({int(keyed_hashes(["a"], secret)[0]) for secret in secrets}) == len(secrets) == 10
