"""L2: partners after their deadline are counted, and how late they may be."""

from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.open_item import ItemState
from tests.unit.anomalies.findings import all_findings, notices
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import HOUR, NOON, T2L, event, evidence_of, item_of, row


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.LATE_PARTNER,
            fires=evidence_of(event(11), carried=[item_of(row(1), ItemState.BROKEN)]),
            twin=evidence_of(event(11), carried=[item_of(row(1), ItemState.OPEN)]),  # nobody had proven it alone
            twin_is=frozenset({Notice.PAIRED_ACROSS_WINDOWS}),
        ),
    )


def test_late_partners_are_counted_and_how_late_they_may_be() -> None:
    carried = [item_of(row(n, f"ev-{n}"), ItemState.BROKEN, due_utc=NOON - n * HOUR) for n in (1, 2)]
    evidence = evidence_of(event(11, "ev-1"), event(12, "ev-2"), carried=carried)
    assert notices(evidence) == {Notice.LATE_PARTNER: 2}
    (found,) = [one for one in all_findings(evidence) if isinstance(one, NoticeFound)]
    assert found.details == {"late_seconds_max": 7_200}


def test_a_row_read_from_an_open_transaction_did_not_wait_for_its_event() -> None:
    early = item_of(row(1), ItemState.BROKEN, reason="open_read_in_ledger")
    assert notices(evidence_of(event(11), direction=T2L, carried=[early])) == {Notice.PAIRED_ACROSS_WINDOWS: 1}
