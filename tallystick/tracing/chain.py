"""Contracts that share a topic or a ledger, in the order in which an event passes them. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tallystick.contract.contract import Contract
from tallystick.model.direction import Direction


@dataclass(frozen=True, order=True)
class Corner:
    """A topic or a ledger, as contracts name it. Two connections to one server are two places."""

    connection: str
    name: str
    is_topic: bool = True


def topic_corners(contract: Contract) -> frozenset[Corner]:
    """Return the topics of its legs."""
    return frozenset(Corner(contract.kafka.connection, topic) for topic in contract.topics)


def ledger_corners(contract: Contract) -> frozenset[Corner]:
    """Return its ledger, or the input topics that play its part."""
    ledger = contract.ledger
    if contract.input_topics:
        return frozenset(Corner(ledger.connection, topic) for topic in contract.input_topics)
    return frozenset({Corner(ledger.connection, ledger.table, is_topic=False)})


def first_corners(contract: Contract) -> frozenset[Corner]:
    """Return the places of the side that is written first."""
    of_topics = contract.direction is Direction.TOPIC_TO_LEDGER
    return topic_corners(contract) if of_topics else ledger_corners(contract)


def second_corners(contract: Contract) -> frozenset[Corner]:
    """Return the places of the side that is written second."""
    of_topics = contract.direction is Direction.TOPIC_TO_LEDGER
    return ledger_corners(contract) if of_topics else topic_corners(contract)


def chains_of(contracts: Iterable[Contract]) -> tuple[tuple[Contract, ...], ...]:
    """Return the contracts grouped by what they share, each chain in the order of the event's way, by name else.

    A contract that shares nothing is a chain of its own. Where the way is a circle, names decide.
    """
    left = sorted(contracts, key=lambda contract: contract.name)
    chains = []
    while left:
        chain, corners = [left.pop(0)], set[Corner]()
        while True:
            corners |= {corner for one in chain for corner in first_corners(one) | second_corners(one)}
            more = [one for one in left if (first_corners(one) | second_corners(one)) & corners]
            if not more:
                break
            chain += more
            left = [one for one in left if one not in more]
        chains.append(_in_order(chain))
    return tuple(chains)


def upstream_of(contract: Contract, chain: Iterable[Contract]) -> frozenset[str]:
    """Return the names of the contracts that an event may have passed before it came to this one."""
    others = [one for one in chain if one.name != contract.name]
    found: set[str] = set()
    corners = first_corners(contract)
    while more := [one for one in others if one.name not in found and second_corners(one) & corners]:
        found |= {one.name for one in more}
        corners |= {corner for one in more for corner in first_corners(one)}
    return frozenset(found)


def _in_order(chain: list[Contract]) -> tuple[Contract, ...]:
    by_name = {contract.name: contract for contract in sorted(chain, key=lambda contract: contract.name)}
    before = {
        name: [other for other, one in by_name.items() if other != name and second_corners(one) & first_corners(mine)]
        for name, mine in by_name.items()
    }
    try:
        order = tuple(TopologicalSorter(before).static_order())
    except CycleError:
        order = tuple(by_name)
    return tuple(by_name[name] for name in order)
