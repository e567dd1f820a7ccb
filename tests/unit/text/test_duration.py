"""A span is told in the units that people use."""

from datetime import timedelta

import pytest

from tallystick.text.duration import span_text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (0, "0 s"), (59, "59 s"), (3_600, "1 h"), (11_520, "3 h 12 min"), (187_200, "2 d 4 h")],
)
def test_a_span_is_told_in_the_units_that_people_use(seconds: int, words: str) -> None:
    assert span_text(timedelta(seconds=seconds)) == words
