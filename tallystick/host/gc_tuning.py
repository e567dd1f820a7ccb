"""Fewer searches for garbage while many values are made that are kept and point at no other in a circle.

Python looks through all that is alive for such circles whenever enough was made; among a million kept values that costs
more than the work itself. What nobody points at is freed at once, with or without it.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLD = 1_000_000
"""So many more values made than freed until the next search."""


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Inside, and in what is decorated with it, garbage is searched for seldom; the threshold of before comes back."""
    before = gc.get_threshold()
    gc.set_threshold(_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def short_process() -> Iterator[None]:
    """Relax it for a process that ends with the block, of whose lasting values no search is made when it ends either.

    Python makes one as soon as the threshold is what it was, and one more at its end, which free nothing that the
    system would not: half a second for the modules of a run.
    """
    with relaxed_gc():
        try:
            yield
        finally:
            gc.freeze()
