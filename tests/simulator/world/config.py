"""What is the same over a whole schedule: direction, kind of ledger, delivery modes."""

from typing import NamedTuple


class Config(NamedTuple):
    """origin_mode: how the first side is written; carrier_mode: how whoever writes the second one delivers.

    transactional: by transactions. plain: without a producer id. exactly: each once. at_least: a redelivery doubles.
    at_most: what is not delivered at once is lost. posts: of topic_to_ledger, how a row says that it takes one back,
    where the contract posts into the ledger.
    """

    direction: str = "topic_to_ledger"
    slice_by: str = "xmin"
    legs: int = 1
    partitions: int = 2
    key_is_unique: bool = False
    producer_mode: str = "transactional"
    carrier_mode: str = "exactly"
    contracts: int = 1
    posts: str = ""

    @property
    def topic_first(self) -> bool:
        return self.direction == "topic_to_ledger"
