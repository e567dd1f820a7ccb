"""The classes that the planted copies must give: each class fires on its case, and not on the twin without it.

The copies are those that the run's own scan brought home.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallystick.anomalies.registry import AnomalyRule
from tallystick.judging.canary_evidence import (
    ORIGIN_HEADER,
    Change,
    around,
    bled,
    clock_off,
    counted,
    expiring,
    failed_over,
    held_by,
    held_horizon,
    looked_up,
    moved_start,
    oddities,
    offsetting,
    other_column,
    out_of_order,
    partner_of_earlier,
    parts_of_another_sum,
    posted_by_us,
    read_uncommitted,
    repaired_in_vain,
    rewritten,
    set_back,
    settings,
    slices,
    stood,
    too_late,
    torn,
    totals,
    trailing,
    unreadable,
    unreplicated,
    unsettled,
    with_plant,
)
from tallystick.kafka_cluster.state import ClusterState
from tallystick.kafka_log.record import ACTION_HEADER
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry, RecordLocation
from tallystick.matching.scan_result import CANARY
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.findings import Break, DoubtFound, NoticeFound
from tallystick.model.open_item import ItemState

Name = BreakClass | Doubt | Notice

_L2T, _T2L = (Direction.LEDGER_TO_TOPIC, Direction.TOPIC_TO_TOPIC), (Direction.TOPIC_TO_LEDGER,)


NO_KEY = "row-without-key"
"""The plant that has no key."""


def planted_key(plant: str) -> str:
    """Return the match key of the plant of that name."""
    return "" if plant == NO_KEY else f"{CANARY}{plant}"


@dataclass(frozen=True, kw_only=True)
class CanaryCase:
    """One class. plant: the name of what is planted under one key, whose copies the case takes; "" takes none.

    seen: where a look-up would have found an event of the key. written: who wrote its events, in log order. changed:
    what else differs. only: the directions that know the class; none: all. is_bare: the plant alone is the case.
    """

    name: Name
    plant: str = ""
    seen: RecordLocation | None = None
    written: tuple[Mapping[str, Any], ...] = ()
    changed: Change = lambda evidence: evidence
    only: tuple[Direction, ...] = ()
    is_bare: bool = False

    def fires(self, calm: Evidence, copies: Sequence[Entry]) -> Evidence:
        evidence = with_plant(calm, self.of_plant(copies), seen=self.seen, written=self.written)
        return self.changed(evidence)

    def twin(self, calm: Evidence, copies: Sequence[Entry]) -> Evidence:
        """Remove what makes it this class: a bare plant leaves the pair that agrees, any other case the bare plant."""
        return calm if self.is_bare else with_plant(calm, self.of_plant(copies))

    def of_plant(self, copies: Sequence[Entry]) -> tuple[Entry, ...]:
        """Return the copies that the case takes."""
        return tuple(copy for copy in copies if self.plant and copy.match_key == planted_key(self.plant))


def missed_cases(calm: Evidence, copies: Sequence[Entry], classes: Sequence[AnomalyRule]) -> Iterator[str]:
    """Return the names of classes that do not fire on their case, fire on its twin, or bring along another break or
    doubt.
    """
    for case in CASES:
        if case.only and calm.contract.direction not in case.only:
            continue
        if case.plant and not case.of_plant(copies):
            yield str(case.name)
            continue
        fired = _found(case.fires(calm, copies), classes)
        others = {name for name in fired - {case.name} if not isinstance(name, Notice)}
        if case.name not in fired or others - _ABOUT.get(case.name, set()):
            yield str(case.name)
        elif case.name in _found(case.twin(calm, copies), [one for one in classes if case.name in one.names]):
            yield f"{case.name} (twin)"


def _found(evidence: Evidence, classes: Sequence[AnomalyRule]) -> set[Name]:
    return {name_of(found) for rule in classes for found in rule.judge(evidence)}


def name_of(found: Break | DoubtFound | NoticeFound) -> Name:
    """Return the class that a finding is called by."""
    match found:
        case Break():
            return found.break_class
        case DoubtFound():
            return found.doubt
        case NoticeFound():
            return found.notice


_ABOUT: Mapping[Name, set[Name]] = {
    Notice.OFFSETTING_ERRORS: {BreakClass.AMOUNT_MISMATCH},
    Notice.CURSOR_STOPPED: {Doubt.HELD_BY_OPEN_TRANSACTION},
    Notice.BACKLOG_GROWS: {Doubt.HELD_BY_OPEN_TRANSACTION},
}
"""What a case is about, besides its own class."""

CASES: tuple[CanaryCase, ...] = (
    CanaryCase(name=BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, plant="row-alone", only=_L2T, is_bare=True),
    CanaryCase(
        name=BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY, plant="row-alone", seen=RecordLocation.ABORTED, only=_L2T
    ),
    CanaryCase(name=BreakClass.LOST_ACKNOWLEDGED_WRITE, plant="row-alone", seen=RecordLocation.LOST, only=_L2T),
    CanaryCase(name=BreakClass.MISROUTED_IN_TOPIC, plant="row-alone", seen=RecordLocation.STRAY),
    CanaryCase(name=BreakClass.MISSING_IN_LEDGER, plant="event-alone", only=_T2L, is_bare=True),
    CanaryCase(name=BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE, written=({}, {}), plant="event-twice"),
    CanaryCase(
        name=BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
        written=({"producer_id": 1}, {"producer_id": 2}),
        plant="event-twice",
    ),
    CanaryCase(
        name=BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE,
        written=({"producer_id": 1}, {"producer_id": 1, "producer_epoch": 1, "session": "two"}),
        plant="event-twice",
    ),
    CanaryCase(
        name=BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED,
        written=(
            {"producer_id": 1, "source": "in:0:4"},
            {"producer_id": 2, "source": "in:0:4", "session": "two"},
        ),
        plant="event-twice",
    ),
    CanaryCase(
        name=BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED,
        written=({"producer_id": 1, "headers": {ACTION_HEADER: "a-1"}}, {"producer_id": 2}),
        plant="event-twice",
    ),
    CanaryCase(
        name=BreakClass.COMPENSATED_TWICE,
        written=tuple({"producer_id": number, "headers": {ACTION_HEADER: "a-1"}} for number in (1, 2)),
        plant="event-twice",
    ),
    CanaryCase(name=BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN, is_bare=True, plant="event-twice"),
    CanaryCase(name=BreakClass.DUPLICATE_IN_LEDGER, plant="row-twice", is_bare=True),
    CanaryCase(name=BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED, plant="row-twice", changed=posted_by_us, only=_T2L),
    CanaryCase(name=BreakClass.PHANTOM_IN_TOPIC, plant="event-alone", only=_L2T, is_bare=True),
    CanaryCase(name=BreakClass.PHANTOM_IN_LEDGER, plant="row-alone", only=_T2L, is_bare=True),
    CanaryCase(name=BreakClass.ROW_WITHOUT_KEY, plant=NO_KEY, is_bare=True),
    CanaryCase(
        name=BreakClass.FOREIGN_IN_TOPIC, plant="event-alone", written=({"headers": {ORIGIN_HEADER: "stranger"}},)
    ),
    CanaryCase(name=BreakClass.ABORTED_READ_IN_LEDGER, plant="row-alone", seen=RecordLocation.ABORTED, only=_T2L),
    CanaryCase(name=BreakClass.OPEN_READ_IN_LEDGER, plant="row-alone", seen=RecordLocation.OPEN, only=_T2L),
    CanaryCase(name=BreakClass.AMOUNT_MISMATCH, plant="amount", is_bare=True),
    CanaryCase(name=BreakClass.CURRENCY_MISMATCH, plant="currency", is_bare=True),
    CanaryCase(name=BreakClass.COLUMN_MISMATCH, changed=other_column),
    CanaryCase(name=BreakClass.GROUP_SUM_MISMATCH, changed=parts_of_another_sum),
    CanaryCase(name=BreakClass.OUT_OF_ORDER_IN_TOPIC, changed=out_of_order),
    CanaryCase(name=BreakClass.TORN_TRANSACTION, changed=torn(aborted_by=None)),
    CanaryCase(name=BreakClass.TORN_BY_PROTOCOL, changed=torn(aborted_by=1)),
    CanaryCase(name=BreakClass.BLED_INTO_TRANSACTION, plant="event-alone", written=({"producer_id": 1},), changed=bled),
    CanaryCase(name=BreakClass.COMPENSATION_NOT_EFFECTIVE, plant="row-alone", changed=repaired_in_vain, only=_L2T),
    CanaryCase(name=Doubt.HELD_BY_OPEN_TRANSACTION, changed=slices(mark=21)),
    CanaryCase(name=Doubt.HANGING_TRANSACTION, changed=held_by(lists_partition=False)),
    CanaryCase(name=Doubt.HELD_BY_PREPARED_TRANSACTION, changed=held_by(timeout_ms=2_147_483_647)),
    CanaryCase(name=Doubt.HELD_BY_REPLICATION, changed=unreplicated),
    CanaryCase(name=Doubt.HELD_BY_LEDGER_HORIZON, changed=held_horizon),
    CanaryCase(name=Doubt.PARTNER_NOT_SETTLED, plant="row-alone", changed=unsettled),
    CanaryCase(name=Doubt.LOG_EXPIRED, changed=slices(expired=1)),
    CanaryCase(name=Doubt.LOG_COMPACTED, changed=counted(compacted=1)),
    CanaryCase(name=Doubt.LOG_REWRITTEN, changed=around(rewritten)),
    CanaryCase(name=Doubt.LOG_TRUNCATED, changed=stood(lso=19, high_watermark=19)),
    CanaryCase(name=Doubt.TOPIC_RECREATED, changed=stood(topic_id="another")),
    CanaryCase(name=Doubt.TORN_CUT, changed=around(moved_start)),
    CanaryCase(name=Doubt.UNEXPLAINED_GAP, changed=counted(unexplained=1)),
    CanaryCase(name=Doubt.READERS_DISAGREE, changed=counted(spark_rows=8)),
    CanaryCase(name=Doubt.UNREADABLE_PAYLOAD, changed=unreadable),
    CanaryCase(name=Doubt.FORGED_REPAIR, changed=looked_up(forged_repairs=("topic:forged:0:0",))),
    CanaryCase(name=Doubt.LEDGER_REWRITTEN, changed=looked_up(older_rows=0)),
    CanaryCase(name=Doubt.LEDGER_FAILED_OVER, changed=failed_over),
    CanaryCase(name=Doubt.LEDGER_IDS_REUSED, changed=set_back),
    CanaryCase(name=Doubt.KEY_INDEX_LOST, changed=looked_up(lost_indexes=(1,))),
    CanaryCase(name=Doubt.ROW_IDS_REPEAT, changed=oddities(repeated_row_ids=("1",))),
    CanaryCase(name=Doubt.VACUOUS_RUN, changed=totals(ledger_rows=0)),
    CanaryCase(name=Doubt.CANARY_MISSED, changed=oddities(missed_canaries=("canary",))),
    CanaryCase(name=Notice.EMPTY_TRANSACTION, changed=counted(empty_transactions=1)),
    CanaryCase(name=Notice.LATE_PARTNER, plant="event-alone", changed=partner_of_earlier(ItemState.BROKEN)),
    CanaryCase(name=Notice.PAIRED_ACROSS_WINDOWS, plant="event-alone", changed=partner_of_earlier(ItemState.OPEN)),
    CanaryCase(name=Notice.RETENTION_OVERTAKES, changed=expiring),
    CanaryCase(name=Notice.CURSOR_STOPPED, changed=trailing((20, 21), (20, 22), (20, 23))),
    CanaryCase(name=Notice.BACKLOG_GROWS, changed=trailing((17, 17), (18, 20), (19, 23))),
    CanaryCase(name=Notice.REPRESENTATION_DIFFERS, changed=oddities(differently_written=1)),
    CanaryCase(name=Notice.OFFSETTING_ERRORS, plant="amount", changed=offsetting),
    CanaryCase(name=Notice.UNFILTERED_READER, changed=read_uncommitted),
    CanaryCase(name=Notice.TIMESTAMP_SKEW, changed=too_late),
    CanaryCase(name=Notice.HOST_CLOCK_OFF, changed=clock_off),
    CanaryCase(
        name=Notice.PROMISE_AT_RISK,
        changed=around(lambda part: ClusterState(topic_settings=(settings(part, min_insync_replicas=1),))),
    ),
)
"""Every class of the registry, in its order."""
