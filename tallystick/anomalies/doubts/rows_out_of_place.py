"""Sentences about rows whose transaction ids lie where no cut reads them, and about rows that went after one did."""

from collections.abc import Iterable

from tallystick.ledger.earlier_rows import AHEAD, BEFORE, WITHOUT_ID, Place
from tallystick.text.verdict_sentence import counted

_PLACES_TOLD = 5
_TEXTS = {
    WITHOUT_ID: "without a written_xid",
    BEFORE: "with one from before the first slice",
    AHEAD: "with one that the server has not given out",
}


def unread_sentence(places: Iterable[Place]) -> str:
    """Say that no cut reads some rows: they have no id, or not that of the transaction that wrote them."""
    found = [place for place in places if place.surplus]
    rows = sum(place.surplus for place in found)
    told = [
        f"{place.surplus} {_place(place)} (newest row ids there: {_named(place)})" for place in found[:_PLACES_TOLD]
    ]
    return (
        f"{counted(rows, 'row')} came where no cut reads them: {'; '.join(told)}{_and_more(found)}. What they lack on "
        "the topic is not found. What to do: let their owner set written_xid to the id of the transaction that does "
        "so, and a later cut reads them; and let nothing but its default fill the column"
    )


def gone_sentence(places: Iterable[Place]) -> str:
    """Say that rows which cuts have read are gone."""
    found = [place for place in places if place.gone]
    rows = sum(place.gone for place in found)
    told = [f"{place.gone} of {place.expected} {_place(place)}" for place in found[:_PLACES_TOLD]]
    return (
        f"{counted(rows, 'row')} went that earlier cuts had read: {'; '.join(told)}{_and_more(found)}. What they were "
        "paired with is without them now. Where the owner archives old rows, the contract says so: "
        "earlier_rows: archived"
    )


def changed_sentence(places: Iterable[Place]) -> str:
    """Say that rows differ from what a cut read."""
    found = [place for place in places if place.says_otherwise]
    told = [f"{place.name} (newest row ids there: {', '.join(place.row_ids)})" for place in found[:_PLACES_TOLD]]
    return (
        f"rows of {counted(len(found), 'slice')} that earlier cuts have read say other things now: {'; '.join(told)}"
        f"{_and_more(found)}. What they were paired with may say otherwise. What to do: compare them with their events"
    )


def _and_more(found: list[Place]) -> str:
    return "; and more" * (len(found) > _PLACES_TOLD)


def _named(place: Place) -> str:
    return ", ".join(place.row_ids) + ", ..." * (place.surplus > len(place.row_ids))


def _place(place: Place) -> str:
    return _TEXTS.get(place.name, f"with one in {place.name}{', which was read' * place.was_read}")
