"""What may happen in each exploration: together they are the model. CI explores the small ones to their end, `make
model` the whole ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .scene import Scene
from .world import Left


@dataclass(frozen=True)
class Books:
    left: Left
    scene: Scene = field(default_factory=Scene)


SMALL: Mapping[str, Books] = {
    "two executors and a strike": Books(Left(starts=2, strikes=1)),
    "a late original and retention": Books(Left(starts=1, strikes=1, originals=1, runs=1, retentions=1)),
    "a write-off": Books(Left(starts=1, strikes=1, runs=1, write_offs=1)),
    "progress made anew, and reopened": Books(Left(starts=1, strikes=1, runs=1, retentions=1, remakes=1, reopenings=1)),
    "the switch": Books(Left(starts=1, strikes=1, switches=2)),
    "two events, a transaction each": Books(Left(starts=1, strikes=1), Scene(items=2, together=1)),
}

WHOLE: Mapping[str, Books] = {
    "a late original, retention and a write-off": Books(
        Left(starts=2, strikes=1, originals=1, runs=1, retentions=1, write_offs=1)
    ),
    "a late original and retention over two runs": Books(Left(starts=1, strikes=3, originals=1, runs=2, retentions=1)),
    "progress made anew, and reopened": Books(Left(starts=2, strikes=2, runs=1, retentions=1, remakes=1, reopenings=1)),
    "the switch": Books(Left(starts=3, strikes=2, switches=2)),
    "two events, a transaction each": Books(Left(starts=2, strikes=1, originals=1), Scene(items=2, together=1)),
    "two events, one transaction": Books(Left(starts=2, strikes=1, originals=1), Scene(items=2)),
    "two executors, five starts, three strikes": Books(Left(starts=5, strikes=3)),
}
