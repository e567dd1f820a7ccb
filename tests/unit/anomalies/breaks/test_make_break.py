"""What every break carries: who wrote its copy, and a few of the places where its key stands."""

import pytest

from tallystick.anomalies.breaks.make_break import NAMED_OF_A_SIDE_MAX, packed_with_origin
from tallystick.matching.match_case import RecordLocation
from tallystick.model.findings import Break
from tests.unit.anomalies.copies import doubled_in_topic, item_at
from tests.unit.anomalies.planted import found_breaks
from tests.unit.builders import IN_TOPIC, LEDGER, event, evidence_of, record_of, row, seen


@pytest.mark.parametrize(("rows", "named", "unnamed"), [(18, 18, None), (1_000, NAMED_OF_A_SIDE_MAX, 980)])
def test_a_break_of_a_key_that_stands_a_thousand_times_names_a_few_copies_of_each_side(
    rows: int, named: int, unnamed: int | None
) -> None:
    stand = [seen(LEDGER, RecordLocation.EARLIER_SLICE, n) for n in range(rows)]
    (one,) = doubled_in_topic(
        event(12), lookup_hits=[*stand, *(seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, n) for n in (3, 4))]
    )
    places = [copy["at"].split(":")[0] for copy in one.evidence["found_elsewhere"]]
    assert (places.count("ledger"), places.count("topic")) == (named, 2)
    assert places[:2] == (["topic"] * 2 if unnamed else ["ledger"] * 2)
    assert one.evidence.get("found_elsewhere_unnamed") == unnamed
    assert one.evidence["original"] == "topic:billing.payouts:0:3"


FIELDS = ("match_key", "transaction_key", "leg", "amount_minor", "currency", "copies")


def test_a_break_says_what_its_copy_is_and_keeps_it_beside_the_identity() -> None:
    written = {item_at(11): record_of(event(11), producer_id=7)}
    (alone,) = found_breaks(evidence_of(event(11, "ev-7", 70, "JPY", leg="fee")))
    joined: Break = packed_with_origin(alone, written, story=alone.story)
    for one in (alone, joined):
        assert [getattr(one, name) for name in FIELDS] == ["ev-7", "pay-of-ev-7", "fee", 70, "JPY", 1]
    assert (joined.break_id, joined.break_class, joined.story) == (alone.break_id, alone.break_class, alone.story)


def test_a_break_carries_the_identity_of_the_copy_it_is_about_or_of_the_record_its_row_followed() -> None:
    written = record_of(event(11), producer_id=7)
    (about_event,) = found_breaks(evidence_of(event(11), record_origins={item_at(11): written}))
    assert packed_with_origin(about_event, {item_at(11): written}, story="").evidence["identity"] == written.as_json()
    aborted = record_of(event(4), producer_id=7)
    (about_row,) = found_breaks(evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 4)]))
    joined: Break = packed_with_origin(about_row, {item_at(4): aborted}, story="")
    assert joined.evidence["identity"]["at"] == item_at(4)
    assert "identity" not in packed_with_origin(about_row, {}, story="").evidence
