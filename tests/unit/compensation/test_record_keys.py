"""In which record keys a payment's or match key stands, and in which it is but a part of another one."""

import pytest

from tallystick.compensation.record_keys import joined_keys, tells, written_forms

UUID = "0b5e1f2a-9c3d-4e5f-8a7b-6c5d4e3f2a1b"
FRAME = b"\0\0\0\0\x37"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"pay-1", "pay-1"),
        (b"eu:pay-1:2026", "pay-1"),
        (b'{"id":7,"of":"x"}', "7"),
        (b"17-7", "7"),
        (b"customer_7", "7"),
        (b'"a\\npay-1"', "pay-1"),
        (b'"\\u001fpay-1\\u001f"', "pay-1"),
        ("é7é".encode(), "7"),
        (b'"pay-\\u00e9\\"1"', 'pay-é"1'),
        ('"pay-é\\"1"'.encode(), 'pay-é"1'),
        (b'"pay-\\u00E9"', "pay-é"),
        (b'"pay\\/1"', "pay/1"),
        (b'"pay\\/\\u00E9"', "pay/é"),
        (b"a\tpay-1\tb", "pay-1"),
        (b"H" + UUID.encode() + b"H" + UUID.encode(), UUID),
        (FRAME + b"H" + UUID.encode(), UUID),
        (FRAME + b"\0\n$" + UUID.encode() + b"2x", UUID),
        (FRAME + b'{"id":"pay-1"}', "pay-1"),
    ],
)
def test_a_key_tells_of_what_stands_in_it_alone(key: bytes, text: str) -> None:
    forms = written_forms(text)
    assert tells(key, forms)
    assert joined_keys([key]).may_tell(forms)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"pay-17", "pay-1"),
        (b"customer-17", "7"),
        (b"71", "7"),
        (b"xpay-1", "pay-1"),
        (b"pay-1x", "pay-1"),
        (b'"pay-\\u00e9\\"17"', 'pay-é"1'),
        (b"a\tpay-17\tb", "pay-1"),
        (b"I" + UUID.encode(), UUID),
        (b"", "7"),
        (b"pay-1", ""),
    ],
)
def test_a_key_tells_nothing_of_what_is_a_part_of_a_longer_word_or_number_in_it(key: bytes, text: str) -> None:
    forms = written_forms(text, None)
    assert not tells(key, forms)
    assert not joined_keys([key]).may_tell(forms)


@pytest.mark.parametrize("key", [FRAME + b"7pay-1", FRAME + b"\x02xpay-1b", b"xpay-1\xff", b"\x7fxpay-1"])
def test_of_a_key_that_is_no_text_nobody_knows_where_in_it_a_word_ends(key: bytes) -> None:
    """It may tell, so nothing is done beside it; it does not tell, so it proves nothing."""
    forms = written_forms("pay-1")
    assert joined_keys([key]).may_tell(forms)
    assert not tells(key, forms)
    assert not joined_keys([key]).may_tell(written_forms("pay-2"))


def test_of_many_keys_one_tells_and_what_two_of_them_have_together_does_not() -> None:
    keys = [b"pay-1", b"pay-2", b"x", FRAME + b"pay-3", FRAME + b"pay-4"]
    for order in (keys, keys[::-1]):
        joined = joined_keys(order)
        for text in ("pay-1", "pay-2", "x", "pay-3", "pay-4"):
            assert joined.may_tell(written_forms(text))
        for text in ("pay-1x", "xpay-1", "pay-1pay-2", "pay-5", "ay-1"):
            assert not joined.may_tell(written_forms(text))
    assert not joined_keys([]).may_tell(written_forms("pay-1"))
