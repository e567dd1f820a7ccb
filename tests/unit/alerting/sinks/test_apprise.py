"""What Apprise succeeds at is taken, and an address that it does not know is refused."""

import pytest

from tallystick.alerting.alert_json import SinkFailed, SinkRefused
from tallystick.alerting.sinks import apprise
from tallystick.alerting.sinks.apprise import AppriseSink
from tests.alert_receiver import Receiver
from tests.unit.alerting.sinks.receivers import ALERT, by_apprise


def test_apprise_that_succeeds_is_taken_and_one_that_fails_is_not(receiver: Receiver) -> None:
    assert by_apprise(receiver).deliver(ALERT) == "taken by Apprise"
    receiver.answer = 500
    with pytest.raises(SinkFailed, match="Apprise could not deliver it"):
        by_apprise(receiver).deliver(ALERT)
    assert receiver.taken[0]["title"] == "[payouts] error: Phantom in topic"


@pytest.mark.parametrize("url", ["nosuchservice://s3cret", "s3cret"])
def test_an_address_that_apprise_does_not_know_is_refused(url: str) -> None:
    with pytest.raises(SinkRefused, match="no address that Apprise knows") as raised:
        AppriseSink(name="apprise:chat", url=url).deliver(ALERT)
    assert "s3cret" not in str(raised.value)


def test_where_apprise_is_not_installed_the_alert_says_how_to_install_it(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apprise, "is_installed", lambda _: False)
    with pytest.raises(SinkRefused, match=r"apprise: not installed.*'tallystick\[apprise\]'"):
        by_apprise(receiver).deliver(ALERT)
