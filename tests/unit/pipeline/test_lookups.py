"""What look-ups found is kept with the verdict and comes back as it was."""

import json

from tallystick.ledger.unread_rows import UnreadRows
from tallystick.matching.match_case import RecordLocation
from tallystick.matching.record_location import locate_record
from tallystick.pipeline.lookups import LookUps
from tests.unit.builders import IN_TOPIC, LEDGER, NOON, seen
from tests.unit.pipeline.lookup_cases import BASELINE, CUT, record


def test_look_ups_are_the_same_after_they_were_stored() -> None:
    found = LookUps(
        topic_settled_until_utc=NOON,
        ledger_settled_until_utc=None,
        older_rows=40,
        legs_lost_within=168,
        unread_rows=UnreadRows(snapshot="90:95:92", rows=2),
        by_key={"ev-1": (seen(LEDGER, RecordLocation.PENDING, 1), locate_record(record(4), CUT, BASELINE))},
        by_transaction={"pay-1": {"payout": (seen(IN_TOPIC, RecordLocation.ABORTED, 12),)}},
    )
    stored = json.loads(json.dumps(found.to_json()))
    assert LookUps.from_json(stored) == found
    assert LookUps.from_json(stored).to_json() == found.to_json()
    del stored["legs_lost_within"]
    assert LookUps.from_json(stored).legs_lost_within is None  # a run of old, which is judged again as it was then


def test_look_ups_that_found_nothing_are_too() -> None:
    found = LookUps(topic_settled_until_utc=None, ledger_settled_until_utc=NOON, older_rows=None)
    assert LookUps.from_json(json.loads(json.dumps(found.to_json()))) == found
