"""The direction: which side is written first."""

from enum import StrEnum


class Direction(StrEnum):
    """The side that is written first. It is captured last, so that the second cannot be ahead of it.

    topic_to_topic: the ledger's part is played by the input topics, which are written first.
    """

    LEDGER_TO_TOPIC = "ledger_to_topic"
    TOPIC_TO_LEDGER = "topic_to_ledger"
    TOPIC_TO_TOPIC = "topic_to_topic"

    @property
    def topic_follows(self) -> bool:
        """Return whether the topic of the legs is written second."""
        return self is not Direction.TOPIC_TO_LEDGER
