"""A receiver on this host that keeps what it is sent."""

from collections.abc import Iterator

import pytest

from tests.alert_receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as told:
        yield told
