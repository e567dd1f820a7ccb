"""The books of the model: one contract, the events that its topic lacks, and what is planned of them in two cuts."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from types import MappingProxyType
from uuid import UUID

from tallystick.compensation.plan import Candidate, CurrentRow, Plan
from tallystick.compensation.planning import make_plan
from tallystick.compensation.republished_event import event_value
from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut, LedgerSlice, LedgerSnapshot
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import Break, DoubtFound, break_id
from tallystick.model.run_result import RunResult
from tallystick.model.stored_run import OutstandingBreak, RunSummary, StoredRun
from tallystick.model.verdict import Verdict
from tests.run_results import run_figures

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONTRACT_NAME, TOPIC = "payouts", "billing.payouts"
FIRST_CUT = 5
"""The run that found the breaks. A run of the model is a later one, and the second plan is of the first of those."""
CUTS = (FIRST_CUT, FIRST_CUT + 1)


@dataclass(frozen=True)
class Scene:
    """How many events are missing, and how many of them go into one producer transaction."""

    items: int = 1
    together: int = 500

    @cached_property
    def contract(self) -> Contract:
        return Contract.model_validate(
            {
                "contract": CONTRACT_NAME,
                "version": 1,
                "owner": "payouts-team",
                "direction": "ledger_to_topic",
                "schedule": "0 * * * *",
                "start_date": NOON,
                "kafka": {"connection": "kafka_billing"},
                "legs": {"payout": TOPIC},
                "ledger": {"connection": "ledger_billing", "table": "billing.payout"},
                "compensation": {
                    "classes": [BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED],
                    "max_items": 9,
                    "max_amount_minor": {"EUR": 9000},
                },
            }
        )

    @cached_property
    def rows(self) -> tuple[CurrentRow, ...]:
        return tuple(_row(f"ev-{n}") for n in range(self.items))

    @cached_property
    def breaks(self) -> tuple[OutstandingBreak, ...]:
        return tuple(_missing(row) for row in self.rows)

    @cached_property
    def plans(self) -> MappingProxyType[int, Plan]:
        """By cut."""
        candidates = [Candidate(outstanding=one, rows=(row,)) for one, row in zip(self.breaks, self.rows, strict=True)]
        return MappingProxyType({n: make_plan(self.contract, run_of(n), candidates, dry_run=False) for n in CUTS})

    @cached_property
    def originals(self) -> tuple[tuple[bytes, bytes], ...]:
        """Key and value of each event as its own producer writes it."""
        items = self.plans[FIRST_CUT].items
        return tuple((item.transaction_key.encode(), event_value(item, self.contract.event)) for item in items)

    @cached_property
    def cut_of_plan(self) -> MappingProxyType[UUID, int]:
        return MappingProxyType({plan.plan_id: n for n, plan in self.plans.items()})

    @cached_property
    def place_of_action(self) -> MappingProxyType[UUID, int]:
        items = self.plans[FIRST_CUT].items
        return MappingProxyType({item.action_id: n for n, item in enumerate(items)})

    @cached_property
    def action_ids(self) -> tuple[UUID, ...]:
        return tuple(self.place_of_action)

    @cached_property
    def place_of_break(self) -> MappingProxyType[UUID, int]:
        return MappingProxyType({one.item_break.break_id: n for n, one in enumerate(self.breaks)})


@cache
def summary_of(n: int, *, lost: bool) -> RunSummary:
    """lost: offsets were gone before the run could read them."""
    return RunSummary(
        contract=CONTRACT_NAME,
        cut_n=n,
        verdict=Verdict.BROKEN,
        doubts=(DoubtFound(doubt=Doubt.LOG_EXPIRED, sentence=""),) if lost else (),
        breaks=0,
        money_minor={},
        window_start_utc=NOON,
        window_end_utc=NOON,
        scheduler_run_id="run",
        recorded_at=NOON,
        completed_by_cut=None,
    )


@cache
def run_of(n: int) -> StoredRun:
    """A run with a verdict and without a doubt."""
    snapshot = LedgerSnapshot(low_mark=1, high_mark=1, system_identifier="1", timeline=1, lsn="0/0")
    cut = Cut(
        contract=CONTRACT_NAME,
        n=n,
        window_start_utc=NOON,
        window_end_utc=NOON,
        marked_at_utc=NOON,
        now_utc=NOON,
        topic_slices=(),
        ledger_slice=LedgerSlice(position_start=1, position_end=1, snapshot=snapshot, mark=1, baseline_position=1),
    )
    result = RunResult(
        contract=CONTRACT_NAME,
        cut_n=n,
        verdict=Verdict.BROKEN,
        doubts=(),
        breaks=(),
        items=(),
        figures=run_figures(matched_rows=0),
        digest="",
    )
    return StoredRun(
        result=result,
        window_start_utc=NOON,
        window_end_utc=NOON,
        now_utc=NOON,
        scheduler_run_id="run",
        attempt=1,
        recorded_at=NOON,
        cut=cut,
    )


def _row(key: str) -> CurrentRow:
    return CurrentRow(
        row_id=f"row-{key}",
        match_key=key,
        transaction_key=f"pay-{key}",
        leg="payout",
        amount_minor=100,
        currency="EUR",
        occurred_at="2026-03-01T11:00:00+00:00",
    )


def _missing(row: CurrentRow) -> OutstandingBreak:
    break_class = BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED
    found = Break(
        break_id=break_id(contract=CONTRACT_NAME, break_class=break_class, match_key=row.match_key, position=""),
        break_class=break_class,
        match_key=row.match_key,
        transaction_key=row.transaction_key,
        leg=row.leg,
        amount_minor=row.amount_minor,
        currency=row.currency,
        copies=1,
        story="",
        evidence={"at": f"ledger:{row.row_id}"},
    )
    seen_by = ((f"ledger:{row.row_id}", FIRST_CUT),)
    return OutstandingBreak(item_break=found, cut_n=FIRST_CUT, first_seen_utc=NOON, seen_by=seen_by)
