"""An event whose key an earlier cut has read comes home with its row, also where the two pair by themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallystick_spark.matching import hash_scan
from tallystick_spark.matching.bucket_blobs import BlobKind, ScanPlan
from tallystick_spark.matching.hash_scan import Places
from tallystick_spark.matching.keyed_hash import keyed_hashes
from tests.unit.builders import TOPIC

SECRET = "0123456789abcdef"
PLAN = ScanPlan(topics=(TOPIC,), legs=1, secret=SECRET)


def event(key: str, offset: int) -> dict[str, Any]:
    return {"topic": TOPIC, "partition": 0, "kafka_offset": offset, "match_key": key}


@dataclass
class Log:
    """A TopicSide that has these events."""

    events: Sequence[Mapping[str, Any]]

    def events_at(self, places: Places, heads: object) -> list[Mapping[str, Any]]:
        return [one for one in self.events if one["kafka_offset"] in places[TOPIC, 0]]


@dataclass
class Table:
    """A LedgerSide that has a row of each of these keys, and one whose key has the same hash as all of them."""

    keys: Sequence[str]

    def rows_of(self, plan: ScanPlan, key_hashes: Any, places: Any) -> list[dict[str, str]]:
        assert not places.any()
        wanted = [key for key in self.keys if np.isin(keyed_hashes([key], plan.secret), key_hashes).all()]
        return [{"match_key": key} for key in [*wanted, "of the same hash"]]


def with_repeated(*repeated: int, told: Sequence[int], home: Sequence[Mapping[str, Any]]) -> Any:
    log = Log([event("paired", 1), event("alone", 2), event("in a torn transaction", 3), event("new", 4)])
    here = hash_scan._Home(
        events=home,
        rows=[],
        told={
            BlobKind.EXCEPTION_EVENTS: np.array([[9, 1, offset] for offset in told], dtype=np.int64).reshape(-1, 3),
            BlobKind.INCOMPLETE: np.empty((0, 2), dtype=np.int64),
        },
    )
    places = hash_scan._places_of(PLAN, {(TOPIC, 0): np.array(repeated, dtype=np.int64)})
    table = Table(["paired", "in a torn transaction", "new"])
    return hash_scan._with_repeated(log, table, PLAN, here, places, {})  # type: ignore[arg-type]


def test_one_that_paired_by_itself_comes_home_with_its_row() -> None:
    home, again = with_repeated(1, told=[], home=[])
    assert [one["match_key"] for one in home.events] == ["paired"]
    assert [one["match_key"] for one in home.rows] == ["paired"]
    assert again == {"paired"}
    assert home.told[BlobKind.EXCEPTION_EVENTS][:, 1:].tolist() == [[1, 1]]


def test_one_that_is_home_already_is_asked_for_no_second_time() -> None:
    home, again = with_repeated(2, told=[2], home=[event("alone", 2)])
    assert ([one["match_key"] for one in home.events], home.rows, again) == (["alone"], [], {"alone"})
    assert home.told[BlobKind.EXCEPTION_EVENTS][:, 1:].tolist() == [[1, 2]]


def test_one_that_is_home_for_its_transaction_brings_its_row() -> None:
    home, again = with_repeated(3, told=[], home=[event("in a torn transaction", 3)])
    assert [one["kafka_offset"] for one in home.events] == [3]
    assert [one["match_key"] for one in home.rows] == ["in a torn transaction"]
    assert again == {"in a torn transaction"}
