"""Which side is written first."""

from enum import StrEnum


class Direction(StrEnum):
    """Which side is written first. The first side is captured last, so that the second cannot be ahead of it.

    topic_to_topic: the ledger's part is played by the input topics, which are written first.
    """

    LEDGER_TO_TOPIC = "ledger_to_topic"
    TOPIC_TO_LEDGER = "topic_to_ledger"
    TOPIC_TO_TOPIC = "topic_to_topic"

    @property
    def topic_follows(self) -> bool:
        """Is the topic of the legs written second?"""
        return self is not Direction.TOPIC_TO_LEDGER
