"""The places that alerts of what each run looks at anew were told of, and whether a run could look there. Pure.

A run that could not look ends nothing by its silence: settings that it may not read, a broker that names no
transactions, a cut that was closed.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from tallystick.alerting.alert import PAGING_DOUBTS, Alert
from tallystick.model.finding_names import Doubt, Notice
from tallystick.model.findings import DoubtFound, NoticeFound
from tallystick.model.run_result import RunResult

SEEN_ANEW: frozenset[str] = frozenset((*Notice, *PAGING_DOUBTS))
"""Names of alerts of what is looked at anew by each run."""


def not_looked_for(result: RunResult, firing: Mapping[str, Alert]) -> set[str]:
    """Return the names of firing alerts of which the run's silence says nothing: all where its cut was closed, else
    those that were told of a place at which it could not look.
    """
    if any(found.doubt is Doubt.CUT_CLOSED for found in result.doubts):
        return set(SEEN_ANEW)
    return {name for name in SEEN_ANEW & set(firing) if _told_and_unseen(result, firing[name])}


def with_places(
    alert: Alert, found: Collection[DoubtFound | NoticeFound], result: RunResult, before: Alert | None
) -> Alert:
    """Return the alert with the places that it is about, and with those of its incident that this run could not look
    at. before: its newest alert, where that is no resolve.
    """
    places, producers = set().union(*map(_places, found)), _producers(found)
    if before is not None and "places" in before.details:
        unseen = _told_and_unseen(result, before)
        places |= unseen
        producers |= {one for one in before.details.get("producers", ()) if _held_place(one) in unseen}
    told = {"places": sorted(places), "producers": sorted(producers)}
    return replace(alert, details={**alert.details, **{name: value for name, value in told.items() if value}})


def _told_and_unseen(result: RunResult, before: Alert) -> set[str]:
    """Return what of an incident's places the run could not look at; of one that names none, all that it could not. An
    open transaction on a partition that hangs may be the one that nobody will end, unless another producer's.
    """
    unseen = set(result.unseen.get(before.name, ()))
    if before.name == Doubt.HANGING_TRANSACTION:
        held = [found for found in result.doubts if found.doubt is Doubt.HELD_BY_OPEN_TRANSACTION]
        unseen = unseen.union(*(_places(one) for one in held if _may_be_told_of(one, before)))
    return unseen & set(before.details["places"]) if "places" in before.details else unseen


def _may_be_told_of(held: DoubtFound, before: Alert) -> bool:
    """Return whether the incident may be about this transaction: of a producer that it names, or of a nameless one."""
    told = before.details.get("producers")
    return told is None or held.details.get("producer_id") is None or not _producers((held,)).isdisjoint(told)


def _places(found: DoubtFound | NoticeFound) -> set[str]:
    """Return the partition, "ledger", or the topics whose settings may lose records."""
    details = found.details
    if "partition" in details:
        return {f"{details['topic']}[{details['partition']}]" if details["topic"] else "ledger"}
    return {line["scope"] for line in details.get("lines", ()) if line["loses"]}


def _producers(found: Collection[DoubtFound | NoticeFound]) -> set[str]:
    """Return who holds what: an acknowledged incident is another one where another producer does, or on another
    partition.
    """
    told = ("topic", "partition", "producer_id")
    places = (one.details for one in found if all(name in one.details for name in told))
    return {" ".join(str(place[name]) for name in told) for place in places}


def _held_place(producer: str) -> str:
    """Return the partition that one of `_producers` holds."""
    topic, partition, _ = producer.split(" ")
    return f"{topic}[{partition}]"
