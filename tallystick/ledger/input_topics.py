"""The ledger of topic_to_topic: the input topics that a service consumes and transforms.

Its slices are the cut's own topic slices, held to the LSO and tiled like the outputs', so there is no second position:
the ledger's slice stays empty at 0. Who holds an input, what expired of it, and its census are told as for any topic.
Where an input lies, its offset says; what the log has forgotten, the key index (tallystick/ledger/key_index.py).
"""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime

from kafka.admin import KafkaAdminClient

from tallystick.connections.connections import Connections, KafkaSettings, kafka_settings
from tallystick.contract.contract import Contract
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.ledger.protocol import HorizonHolder, LedgerDescription, LedgerRow
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.model.cut import FileChange, LedgerAnchor, LedgerSlice, LedgerSnapshot

_NOWHERE = LedgerSnapshot(low_mark=0, high_mark=0, system_identifier="", timeline=0, lsn="0/0")


@dataclass(frozen=True, kw_only=True)
class InputTopics:
    """An open connection to the cluster of a contract's input topics."""

    admin: KafkaAdminClient
    topics: tuple[str, ...]

    def describe(self) -> LedgerDescription:
        """Describe the topics. Raises TopicNotFound. The scan asks the index for keys that stand elsewhere too."""
        read_topic_snapshot(self.admin, self.topics)
        return LedgerDescription(key_is_unique=True)

    def read_snapshot(self) -> LedgerSnapshot:
        return _NOWHERE

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        return _NOWHERE, None

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        return ledger_slice

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        return None

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        return None

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        """Return None: a log changes nothing below a stable offset. Where it does, log_rewritten says so."""
        return None

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        return ()

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        return ()

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> None:
        return None

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> None:
        return None

    def sum_of_positions(self, *, below: int) -> None:
        return None

    def scattered_sum_of_positions(self, *, below: int) -> None:
        return None

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        """Return nothing by position: tallystick/pipeline/lookups.py asks the index and the log by offset."""
        return {}

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        return ()

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        return ()

    def held_snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()


def input_kafka(contract: Contract, connections: Connections) -> KafkaSettings:
    """Return the settings that reach the input topics. Raises ConnectionNotGiven."""
    return kafka_settings(connections.ledger_dsn, connection_id=contract.ledger.connection)


@contextmanager
def open_input_topics(contract: Contract, connections: Connections) -> Iterator[InputTopics]:
    """Connect to the cluster of the input topics. Raises BrokerUnreachable."""
    with open_admin(input_kafka(contract, connections)) as admin:
        yield InputTopics(admin=admin, topics=contract.input_topics)
