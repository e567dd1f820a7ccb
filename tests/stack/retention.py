"""Retention that takes what topics hold, and the class of what is sent again after it."""

from tests.stack.live_books import LiveBooks

SENT_AGAIN = "duplicate_in_topic_cause_unknown"


def expire(books: LiveBooks) -> None:
    """Retention takes all that the topics hold."""
    books.wait_stable()
    for part in books.snapshot():
        books.delete_records_of(part.topic, part.partition, before=part.high_watermark)
