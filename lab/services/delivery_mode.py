"""The three promises a pipeline can make about delivery."""

from enum import StrEnum


class DeliveryMode(StrEnum):
    """How the lab's services write; what each fault leaves behind depends on it."""

    AT_MOST_ONCE = "at_most_once"  # progress is saved before the work; acks=1, no retries
    AT_LEAST_ONCE = "at_least_once"  # progress is saved after the work; acks=all, retries, no idempotence
    EXACTLY_ONCE = "exactly_once"  # progress is saved in the same transaction as the work
