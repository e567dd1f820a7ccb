"""L2: partners after their deadline are counted, and how late they may be."""

from dataclasses import replace
from uuid import UUID

from tallystick.kafka_cluster.state import ExecutedAction
from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.open_item import ItemState, OpenItem
from tests.unit.anomalies.builders import by_action
from tests.unit.anomalies.copies import written
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


REPUBLISHED = UUID(int=7)
BROKEN_ROWS = [item_of(row(n, f"ev-{n}"), ItemState.BROKEN, due_utc=NOON - n * HOUR) for n in (1, 2)]


def repaired_by(action_id: UUID, *, of: OpenItem = BROKEN_ROWS[0]) -> Evidence:
    """Two broken rows whose events came, of which the first one's names an action."""
    copies = event(11, "ev-1"), event(12, "ev-2")
    first, second = (written(copy) for copy in copies)
    origins = {first.item_id: by_action(first, str(action_id)), second.item_id: second}
    action = ExecutedAction(action_id=REPUBLISHED, executed_utc=NOON, item=of)
    evidence = evidence_of(*copies, carried=BROKEN_ROWS, record_origins=origins)
    return replace(evidence, cluster=replace(evidence.cluster, actions=(action,)))


def told(evidence: Evidence) -> tuple[str, int, dict[str, int]]:
    (found,) = (one for one in all_findings(evidence) if isinstance(one, NoticeFound))
    return found.sentence, found.count, dict(found.details)


def test_a_repair_of_ours_is_told_apart_from_a_late_partner() -> None:
    assert told(repaired_by(REPUBLISHED)) == (
        "1 item found its partner after its deadline, the latest up to 7200 s late. 1 broken item found our own "
        "repair.",
        2,
        {"late_seconds_max": 7_200, "repaired": 1},
    )
    both_late = "2 items found their partner after their deadline, the latest up to 7200 s late.", 2
    assert told(repaired_by(UUID(int=8)))[:2] == both_late
    assert told(repaired_by(REPUBLISHED, of=BROKEN_ROWS[1]))[:2] == both_late


def test_a_row_that_our_repair_posted_is_no_late_partner_and_another_one_is() -> None:
    alone = item_of(event(11), ItemState.BROKEN)
    for posted, sentence in (((row(1).item_id,), "1 broken item found our own repair."), (("ledger:2",), None)):
        evidence = evidence_of(row(1), direction=T2L, carried=[alone])
        said = told(replace(evidence, cluster=replace(evidence.cluster, posted=posted)))
        assert (said[0] == sentence, "late_seconds_max" in said[2]) == (sentence is not None, sentence is None)


def test_a_row_read_from_an_open_transaction_did_not_wait_for_its_event() -> None:
    early = item_of(row(1), ItemState.BROKEN, reason="open_read_in_ledger")
    assert notices(evidence_of(event(11), direction=T2L, carried=[early])) == {Notice.PAIRED_ACROSS_WINDOWS: 1}
