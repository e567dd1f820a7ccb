"""Explores the repair's protocol to its end: python -m tests.protocol_model.main [--small] [--books NAME ...].

Prints a line as each of the books is through, and the story where something is wrong; figures in build/model.json.
"""

import argparse
import json
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .books import SMALL, WHOLE, Books
from .explore import Exploration, Explored
from .product import Product

OUT = Path(__file__).parents[2] / "build" / "model.json"
_TOLD_SECONDS = 60
_VERSIONS = ("tallystick", "confluent-kafka", "sqlalchemy", "pydantic", "tenacity")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--small", action="store_true", help="those that CI explores")
    asked.add_argument("--books", nargs="*", metavar="NAME", help="these alone")
    asked.add_argument("--states-max", type=int, help="stop each behind so many, and say so")
    given = asked.parse_args()
    every = SMALL if given.small else WHOLE
    figures = {}
    for name in given.books or every:
        exploration = Exploration(Product(every[name].scene), every[name].left, states_max=given.states_max)
        exploration.tell = Progress(name)
        found = exploration.run()
        print(line_of(name, found), flush=True)
        figures[name] = figures_of(every[name], found)
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(document_of(figures), indent=2) + "\n")
    return 0 if all(one["finished"] and not one["violation"] for one in figures.values()) else 1


class Progress:
    """A line a minute on stderr, while nothing else is said."""

    def __init__(self, name: str) -> None:
        self.name, self.told_at = name, time.monotonic()

    def __call__(self, depth: int, states: int, ahead: int) -> None:
        if time.monotonic() - self.told_at >= _TOLD_SECONDS:
            self.told_at = time.monotonic()
            print(f"{self.name}: depth {depth}, {states:,} states, {ahead:,} ahead", file=sys.stderr, flush=True)


def line_of(name: str, found: Explored) -> str:
    """For people."""
    told = (
        f"{name}: {found.states:,} states, {found.transitions:,} transitions, depth {found.depth}, "
        f"{found.seconds:,.1f} s; {found.nodes:,} places in which a start stands"
    )
    if found.violation:
        return f"{told}\n  WRONG, by the shortest way:\n{found.violation}"
    limit = (
        f"; the limit that the protocol has was reached {found.limit_reached:,} times" if found.limit_reached else ""
    )
    return f"{told}; {'nothing wrong' if found.finished else 'NOT FINISHED, nothing wrong so far'}{limit}"


def figures_of(books: Books, found: Explored) -> dict[str, Any]:
    return {
        "may_happen": books.left._asdict() | {"items": books.scene.items, "together": books.scene.together},
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "seconds": round(found.seconds, 1),
        "places_of_a_start": found.nodes,
        "finished": found.finished,
        "violation": str(found.violation) if found.violation else None,
        "second_payments_that_no_protocol_prevents": found.limit_reached,
        "calls": dict(found.calls.most_common()),
        "ends_of_starts": dict(found.ends.most_common()),
        "ends_of_actions": dict(found.settled.most_common()),
    }


def document_of(books: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "versions": {name: version(name) for name in _VERSIONS} | {"python": platform.python_version()},
        "states": sum(one["states"] for one in books.values()),
        "transitions": sum(one["transitions"] for one in books.values()),
        "seconds": round(sum(one["seconds"] for one in books.values()), 1),
        "books": books,
    }


if __name__ == "__main__":
    sys.exit(main())
