"""As much of Spark's DataFrame as the match by hash asks for, over Arrow batches, in one process without threads."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from tallystick_spark.matching.bucket_blobs import SUMMARY


class Frame:
    """Batches of SUMMARY, not made before they are asked for."""

    def __init__(self, batches: Callable[[], Iterable[pa.RecordBatch]]) -> None:
        self._batches = batches

    @property
    def sparkSession(self) -> "Session":
        return SESSION

    def union(self, other: "Frame") -> "Frame":
        return Frame(lambda: [*self._batches(), *other._batches()])

    def repartition(self, tasks: int, column: str) -> "Frame":
        return self

    def sortWithinPartitions(self, column: str) -> "Frame":
        return Frame(lambda: _sorted(self._batches(), column))

    def mapInArrow(self, run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], shape: str) -> "Frame":
        return Frame(lambda: list(run(self._batches())))

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches(list(self._batches()), schema=SUMMARY).combine_chunks()


def _sorted(batches: Iterable[pa.RecordBatch], column: str) -> list[pa.RecordBatch]:
    table = pa.Table.from_batches([one for one in batches if one.num_rows], schema=SUMMARY).combine_chunks()
    return list(table.take(pa.compute.sort_indices(table[column])).to_batches())


class Session:
    """What is asked of a SparkSession: settings nobody reads, and frames of Arrow tables."""

    @property
    def conf(self) -> "Session":
        return self

    def set(self, name: str, value: str) -> None:
        pass

    def createDataFrame(self, table: pa.Table) -> Frame:
        return Frame(table.to_batches)


SESSION = Session()


class Inline:
    """A pool of no threads: what is submitted is done at once."""

    def __init__(self, workers: int | None = None) -> None:
        pass

    def __enter__(self) -> "Inline":
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def submit(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> "Done":
        return Done(call(*arguments, **named))


class Done:
    """The answer of what was submitted."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def result(self) -> Any:
        return self._answer
