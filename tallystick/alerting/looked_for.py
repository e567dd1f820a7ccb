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
    places = set().union(*map(_places, found))
    if before is not None and "places" in before.details:
        places |= _told_and_unseen(result, before)
    told = {"places": sorted(places), "producers": _producers(found)}
    return replace(alert, details={**alert.details, **{name: value for name, value in told.items() if value}})


def _told_and_unseen(result: RunResult, before: Alert) -> set[str]:
    """Return what of an incident's places the run could not look at; of one that names none, all that it could not. An
    open transaction on a partition that hangs may be the one that nobody will end.
    """
    unseen = set(result.unseen.get(before.name, ()))
    if before.name == Doubt.HANGING_TRANSACTION:
        held = [found for found in result.doubts if found.doubt is Doubt.HELD_BY_OPEN_TRANSACTION]
        unseen = unseen.union(*map(_places, held))
    return unseen & set(before.details["places"]) if "places" in before.details else unseen


def _places(found: DoubtFound | NoticeFound) -> set[str]:
    """Return the partition, "ledger", or the topics whose settings may lose records."""
    details = found.details
    if "partition" in details:
        return {f"{details['topic']}[{details['partition']}]" if details["topic"] else "ledger"}
    return {line["scope"] for line in details.get("lines", ()) if line["loses"]}


def _producers(found: Collection[DoubtFound | NoticeFound]) -> list[str]:
    """Return who holds what: an acknowledged incident is another one where another producer does, or on another
    partition.
    """
    told = ("topic", "partition", "producer_id")
    places = (one.details for one in found if all(name in one.details for name in told))
    return sorted({" ".join(str(place[name]) for name in told) for place in places})
