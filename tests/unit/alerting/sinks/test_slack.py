"""Slack shows strangers' texts without mentions or links, and says what is over."""

import json
from dataclasses import replace

from tests.alert_receiver import Receiver
from tests.unit.alerting.sinks.receivers import ALERT, RESOLVED, slack


def test_slack_shows_strangers_texts_without_mentions_or_links(receiver: Receiver) -> None:
    slack(receiver).deliver(replace(ALERT, summary="held by <!channel> & <https://evil|here>"))
    (message,) = receiver.taken
    assert "<" not in json.dumps(message)
    assert "&lt;!channel&gt; &amp;" in message["text"]
    assert all(len(block["text"]["text"]) <= 3000 for block in message["blocks"] if block["type"] == "section")


def test_slack_makes_links_of_our_own_addresses_only(receiver: Receiver) -> None:
    """Without `verbatim` Slack makes one of whatever looks like an address, or like a channel."""
    text = "https://evil.example/pay #general @here"
    slack(receiver).deliver(replace(ALERT, summary=text, details=ALERT.details | {"sentences": [text]}))
    (message,) = receiver.taken
    texts = [part for block in message["blocks"] for part in (block.get("text"), *block.get("elements", ())) if part]
    shown = [one for one in texts if "evil" in one["text"] or ALERT.dedup_key in one["text"]]
    assert len(shown) == 3
    assert all(one.get("verbatim") is True for one in shown)
    assert [one["text"].partition(":")[0] for one in texts if one["type"] == "mrkdwn" and "verbatim" not in one] == [
        "Runbook"
    ]
    assert not message["unfurl_links"] and not message["unfurl_media"]


def test_slack_says_what_is_over(receiver: Receiver) -> None:
    slack(receiver).deliver(RESOLVED)
    assert receiver.taken[0]["blocks"][0]["text"]["text"] == "Resolved: Phantom in topic"
